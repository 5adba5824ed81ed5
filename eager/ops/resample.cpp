#include "eager/ops/resample.h"

#include "core/error.h"
#include "core/library.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace nitinol {
namespace {

void check_floating(const char* where, const Tensor& x) {
  if (is_floating(x.dtype())) return;
  throw Error(ErrorKind::dtype, {.where = where,
                                 .what = "the input is " + describe(x),
                                 .expected = "floating numbers",
                                 .got = std::string(name_of(x.dtype())),
                                 .fix = "Cast it: x.to(f32)."});
}

[[noreturn]] void throw_shape(const char* where, const std::string& what,
                              const std::string& expected, const Tensor& x, const char* fix = "") {
  throw Error(ErrorKind::shape, {.where = where,
                                 .what = what,
                                 .expected = expected,
                                 .got = to_string(x.shape()),
                                 .fix = fix});
}

/// Throws unless x is [batch, channels, as many axes as sizes] with elements.
void check_sized(const char* where, const Tensor& x, const Dims& size) {
  check_floating(where, x);
  bool fits = size.size() >= 1 && x.rank() == 2 + size.size();
  for (int i = 0; fits && i < size.size(); ++i) fits = size[i] >= 1 && x.shape()[2 + i] >= 1;
  if (fits) return;
  throw_shape(where, fmt::format("{} to the size {}", describe(x), to_string(size)),
              "[batch, channels, axes with elements...] and a size of at least 1 for each of these",
              x, "A single sample needs unsqueeze(x, 0).");
}

/// A number for each element of an axis as it stands in a tensor of `rank` axes.
Tensor along(const Tensor& numbers, int axis, int rank) {
  Shape line = Shape::filled(rank, 1);
  line[axis] = numbers.shape()[0];
  return reshape(numbers, line);
}

/// 0, 1, ... of a new axis, in float64.
Tensor places(int64_t count, Device device) {
  return arange(static_cast<double>(count), f64, device);
}

/// Where the middles of `to` new elements are among the `from` old ones.
Tensor middles(int64_t from, int64_t to, bool aligns_corners, Device device) {
  const auto old = static_cast<double>(from);
  const auto now = static_cast<double>(to);
  if (aligns_corners) return places(to, device) * (to > 1 ? (old - 1) / (now - 1) : 0.0);
  return (places(to, device) + 0.5) * (old / now) - 0.5;
}

Tensor clipped(const Tensor& i, int64_t size) {
  return cast(clamp(i, 0.0, static_cast<double>(size - 1)), i64);
}

Tensor nearest_along(const Tensor& x, int axis, int64_t to) {
  const int64_t from = x.shape()[axis];
  return take(x, floor_divide(arange(to, i64, x.device()) * from, to), axis);
}

Tensor linear_along(const Tensor& x, int axis, int64_t to, bool aligns_corners) {
  const int64_t from = x.shape()[axis];
  const Tensor at =
      clamp(middles(from, to, aligns_corners, x.device()), 0.0, static_cast<double>(from - 1));
  const Tensor low = floor(at);
  const Tensor share = along(cast(at - low, x.dtype()), axis, x.rank());
  const Tensor a = take(x, clipped(low, from), axis);
  const Tensor b = take(x, clipped(low + 1.0, from), axis);
  return a * (1 - share) + b * share;
}

/// The weight of an element at distance d (R. Keys, 1981).
Tensor cubic_weight(const Tensor& d) {
  constexpr double a = -0.75;
  const Tensor near = ((a + 2) * d - (a + 3)) * d * d + 1.0;
  const Tensor far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return where(d <= 1.0, near, far);
}

/// An element beside a place, and its share of what is there.
struct Tap {
  Tensor at, share;
};
/// The four that a cubic is of.
std::vector<Tap> cubic_taps(const Tensor& place) {
  const Tensor low = floor(place);
  std::vector<Tap> taps;
  for (int k = -1; k <= 2; ++k) {
    const Tensor at = low + static_cast<double>(k);
    taps.push_back({at, cubic_weight(abs(place - at))});
  }
  return taps;
}

Tensor cubic_along(const Tensor& x, int axis, int64_t to, bool aligns_corners) {
  const int64_t from = x.shape()[axis];
  Tensor sum;
  for (const Tap& tap : cubic_taps(middles(from, to, aligns_corners, x.device()))) {
    const Tensor weight = along(cast(tap.share, x.dtype()), axis, x.rank());
    const Tensor part = take(x, clipped(tap.at, from), axis) * weight;
    sum = sum.is_defined() ? sum + part : part;
  }
  return sum;
}

/// First elements of the windows that cover an axis, and those behind their last.
struct Cover {
  Tensor first, end;
  int64_t longest;
};
Cover cover(int64_t from, int64_t to, Device device) {
  const Tensor i = arange(to, i64, device);
  int64_t longest = 0;
  for (int64_t k = 0; k < to; ++k)
    longest = std::max(longest, ((k + 1) * from + to - 1) / to - k * from / to);
  return {floor_divide(i * from, to), floor_divide((i + 1) * from + (to - 1), to), longest};
}

Tensor mean_along(const Tensor& x, int axis, int64_t to) {
  const int64_t from = x.shape()[axis];
  if (to == 1) return mean(x, {axis}, keepdims);
  // A product with rows that hold one over the length of their windows.
  const Cover windows = cover(from, to, x.device());
  const Tensor i = arange(from, i64, x.device());
  const Tensor first = unsqueeze(windows.first, 1);
  const Tensor end = unsqueeze(windows.end, 1);
  const Tensor share = where(i >= first && i < end, 1.0 / cast(end - first, x.dtype()), 0);
  return moveaxis(matmul(moveaxis(x, axis, -1), transpose(share, 0, 1)), -1, axis);
}

Tensor max_along(const Tensor& x, int axis, int64_t to) {
  const int64_t from = x.shape()[axis];
  if (to == 1) return max(x, {axis}, keepdims);
  // Windows that are shorter than the longest have their last element again, which counts once.
  const Cover windows = cover(from, to, x.device());
  const Tensor within = arange(windows.longest, i64, x.device());
  const Tensor i = minimum(unsqueeze(windows.first, 1) + within, unsqueeze(windows.end, 1) - 1);
  return max(take(x, i, axis), {axis + 1});
}

using AlongAxis = std::function<Tensor(const Tensor& x, int axis, int64_t to)>;

/// Each of the last axes in turn.
Tensor resized(const Tensor& x, const Dims& size, const AlongAxis& f) {
  Tensor y = widened(x);
  for (int i = 0; i < size.size(); ++i) y = f(y, 2 + i, size[i]);
  return cast(y, x.dtype());
}

}  // namespace

Tensor interpolate(const Tensor& x, const Dims& size, const InterpolateOptions& options) {
  check_sized("interpolate", x, size);
  const bool aligns = options.aligns_corners;
  const bool may_align =
      options.mode == Interpolation::linear || options.mode == Interpolation::cubic;
  if (aligns && !may_align) {
    throw Error(ErrorKind::value, {.where = "interpolate",
                                   .what = "corners that are aligned",
                                   .expected = "the mode linear or cubic",
                                   .got = "nearest or area",
                                   .fix = {}});
  }
  switch (options.mode) {
    case Interpolation::linear:
      return resized(x, size, [aligns](const Tensor& y, int axis, int64_t to) {
        return linear_along(y, axis, to, aligns);
      });
    case Interpolation::cubic:
      return resized(x, size, [aligns](const Tensor& y, int axis, int64_t to) {
        return cubic_along(y, axis, to, aligns);
      });
    case Interpolation::area:
      return adaptive_avg_pool(x, size);
    case Interpolation::nearest:
      break;
  }
  return resized(x, size, nearest_along);
}

Tensor adaptive_avg_pool(const Tensor& x, const Dims& size) {
  check_sized("adaptive_avg_pool", x, size);
  return resized(x, size, mean_along);
}

Tensor adaptive_max_pool(const Tensor& x, const Dims& size) {
  check_sized("adaptive_max_pool", x, size);
  return resized(x, size, max_along);
}

Tensor pixel_shuffle(const Tensor& x, Integer factor) {
  const int64_t f = factor;
  if (x.rank() != 4 || f < 1 || x.shape()[1] % (f * f) != 0) {
    throw_shape("pixel_shuffle", fmt::format("{} by {}", describe(x), f),
                "[n, c * factor^2, h, w] and a factor of at least 1", x);
  }
  const Shape& s = x.shape();
  const int64_t channels = s[1] / (f * f);
  const Tensor parts = reshape(x, {s[0], channels, f, f, s[2], s[3]});
  return reshape(permute(parts, {0, 1, 4, 2, 5, 3}), {s[0], channels, s[2] * f, s[3] * f});
}

Tensor pixel_unshuffle(const Tensor& x, Integer factor) {
  const int64_t f = factor;
  if (x.rank() != 4 || f < 1 || x.shape()[2] % f != 0 || x.shape()[3] % f != 0) {
    throw_shape("pixel_unshuffle", fmt::format("{} by {}", describe(x), f),
                "[n, c, h, w] and a factor that divides h and w", x);
  }
  const Shape& s = x.shape();
  const Tensor parts = reshape(x, {s[0], s[1], s[2] / f, f, s[3] / f, f});
  return reshape(permute(parts, {0, 1, 3, 5, 2, 4}), {s[0], s[1] * f * f, s[2] / f, s[3] / f});
}

// ---- grids

namespace {

/// Mirrored at `low` and `high` until it lies between them.
Tensor reflected(const Tensor& x, double low, double high) {
  if (high <= low) return x * 0.0;
  const double span = high - low;
  const Tensor away = abs(x - low);
  const Tensor turns = floor(away / span);
  const Tensor rest = away - turns * span;
  const Tensor is_odd = turns - floor(turns * 0.5) * 2.0 > 0.5;
  return where(is_odd, span - rest, rest) + low;
}

/// Where among `size` elements a number between -1 and 1 is.
Tensor unnormalised(const Tensor& at, int64_t size, bool aligns_corners) {
  const auto count = static_cast<double>(size);
  return aligns_corners ? (at + 1.0) * ((count - 1) / 2) : ((at + 1.0) * count - 1.0) * 0.5;
}

/// What stands there of `size` elements, if the place may be beyond them.
Tensor within(const Tensor& place, int64_t size, const GridSampleOptions& options) {
  const auto count = static_cast<double>(size);
  if (options.border == Border::zeros) return place;
  if (options.border == Border::edge) return clamp(place, 0.0, count - 1);
  const Tensor inside =
      options.aligns_corners ? reflected(place, 0, count - 1) : reflected(place, -0.5, count - 0.5);
  return clamp(inside, 0.0, count - 1);
}

/// The elements of `size` that a place is between; of a cubic each may lie beyond the ends by
/// itself. The nearest one has no share.
std::vector<Tap> taps_of(const Tensor& normalised, int64_t size, const GridSampleOptions& options) {
  const Tensor place = unnormalised(normalised, size, options.aligns_corners);
  if (options.mode == Interpolation::nearest) return {{round(within(place, size, options)), {}}};
  if (options.mode == Interpolation::linear) {
    const Tensor found = within(place, size, options);
    const Tensor first = floor(found), rest = found - first;
    return {{first, 1 - rest}, {first + 1.0, rest}};
  }
  std::vector<Tap> taps = cubic_taps(place);
  for (Tap& tap : taps) tap.at = within(tap.at, size, options);
  return taps;
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options) {
  check_floating("grid_sample", x);
  check_floating("grid_sample", grid);
  if (x.rank() != 4 || grid.rank() != 4 || grid.shape()[3] != 2 ||
      grid.shape()[0] != x.shape()[0] || x.shape()[2] * x.shape()[3] == 0) {
    throw_shape("grid_sample", fmt::format("x is {} and the grid {}", describe(x), describe(grid)),
                "images [n, c, h, w] with elements and a grid [n, oh, ow, 2]", grid);
  }
  if (options.mode == Interpolation::area) {
    throw Error(ErrorKind::value, {.where = "grid_sample",
                                   .what = "the mode",
                                   .expected = "nearest, linear or cubic",
                                   .got = "area",
                                   .fix = {}});
  }
  const int64_t batch = x.shape()[0];
  const int64_t channels = x.shape()[1];
  const int64_t height = x.shape()[2];
  const int64_t width = x.shape()[3];
  const int64_t rows = grid.shape()[1];
  const int64_t columns = grid.shape()[2];
  const Tensor given = widened(grid);
  const std::vector<Tap> across = taps_of(slice(given, 3, {0, 1}), width, options);
  const std::vector<Tap> down = taps_of(slice(given, 3, {1, 2}), height, options);
  const Tensor pixels = reshape(widened(x), {batch, channels, height * width});
  /// The pixels at whole rows and columns, 0 outside.
  const auto at = [&](const Tensor& row, const Tensor& column) {
    const Tensor i = clipped(row, height) * width + clipped(column, width);
    const Tensor found = gather(pixels, 2, reshape(i, {batch, 1, rows * columns}));
    const Tensor is_inside = row >= 0.0 && row < static_cast<double>(height) && column >= 0.0 &&
                             column < static_cast<double>(width);
    return where(reshape(is_inside, {batch, 1, rows * columns}), found, 0);
  };
  const auto flat = [&](const Tensor& share) {
    return cast(reshape(share, {batch, 1, rows * columns}), pixels.dtype());
  };
  if (options.mode == Interpolation::nearest)
    return cast(reshape(at(down[0].at, across[0].at), {batch, channels, rows, columns}), x.dtype());
  Tensor sum;
  for (const Tap& row : down) {
    for (const Tap& column : across) {
      const Tensor part = at(row.at, column.at) * flat(row.share * column.share);
      sum = sum.is_defined() ? sum + part : part;
    }
  }
  return cast(reshape(sum, {batch, channels, rows, columns}), x.dtype());
}

// ---- windows as columns

namespace {

struct Grid {
  int64_t rows, columns;
};
/// How many windows lie along both axes.
Grid grid_of(const char* where, const Tensor& x, int64_t height, int64_t width, const Pair& kernel,
             const UnfoldOptions& o) {
  const auto least = [](const Pair& pair) { return std::min(pair.rows(), pair.columns()); };
  if (least(kernel) >= 1 && least(o.stride) >= 1 && least(o.padding) >= 0 &&
      least(o.dilation) >= 1) {
    const Windows windows = {.kernel = {kernel.rows(), kernel.columns()},
                             .stride = {o.stride.rows(), o.stride.columns()},
                             .padding = {o.padding.rows(), o.padding.columns()},
                             .dilation = {o.dilation.rows(), o.dilation.columns()}};
    const Grid grid = {windows.count(0, height), windows.count(1, width)};
    if (grid.rows > 0 && grid.columns > 0) return grid;
  }
  throw_shape(where,
              fmt::format("windows of {} by {} on {} by {}", kernel.rows(), kernel.columns(),
                          height, width),
              "a window that fits, strides and dilations of at least 1, padding of at least 0", x);
}

}  // namespace

Tensor unfold(const Tensor& x, Pair kernel, const UnfoldOptions& options) {
  if (x.rank() != 4) throw_shape("unfold", "the input is " + describe(x), "[n, c, h, w]", x);
  const Shape& s = x.shape();
  const Grid grid = grid_of("unfold", x, s[2], s[3], kernel, options);
  const int64_t down = options.padding.rows();
  const int64_t across = options.padding.columns();
  const Tensor padded = down + across == 0 ? x : pad(x, {{}, {}, {down, down}, {across, across}});
  const auto part = [](const Tensor& y, int axis, int64_t at, int64_t count, int64_t stride) {
    return slice(y, axis, {at, at + (count - 1) * stride + 1, stride});
  };
  std::vector<Tensor> columns;
  for (int64_t a = 0; a < kernel.rows(); ++a) {
    const Tensor rows =
        part(padded, 2, a * options.dilation.rows(), grid.rows, options.stride.rows());
    for (int64_t b = 0; b < kernel.columns(); ++b)
      columns.push_back(
          part(rows, 3, b * options.dilation.columns(), grid.columns, options.stride.columns()));
  }
  const int64_t size = kernel.rows() * kernel.columns();
  return reshape(stack(columns, 2), {s[0], s[1] * size, grid.rows * grid.columns});
}

Tensor fold(const Tensor& columns, Pair size, Pair kernel, const UnfoldOptions& options) {
  const Grid grid = grid_of("fold", columns, size.rows(), size.columns(), kernel, options);
  const int64_t elements = kernel.rows() * kernel.columns();
  const bool fits = columns.rank() == 3 && columns.shape()[1] % elements == 0 &&
                    columns.shape()[2] == grid.rows * grid.columns;
  if (!fits) {
    throw_shape("fold", "the columns are " + describe(columns),
                fmt::format("[n, c * {}, {}]", elements, grid.rows * grid.columns), columns);
  }
  const int64_t batch = columns.shape()[0];
  const int64_t channels = columns.shape()[1] / elements;
  const Tensor parts = reshape(columns, {batch, channels, elements, grid.rows, grid.columns});
  const int64_t down = options.padding.rows();
  const int64_t across = options.padding.columns();
  const Shape whole = {batch, channels, size.rows() + 2 * down, size.columns() + 2 * across};
  const Tensor nothing = zeros({}, columns.dtype(), columns.device());
  Tensor sum;
  for (int64_t k = 0; k < elements; ++k) {
    const Dims starts = {0, 0, k / kernel.columns() * options.dilation.rows(),
                         k % kernel.columns() * options.dilation.columns()};
    const Tensor piece =
        reshape(slice(parts, 2, {k, k + 1}), {batch, channels, grid.rows, grid.columns});
    const Tensor placed = place(expand(nothing, whole), piece, starts, piece.shape(),
                                {1, 1, options.stride.rows(), options.stride.columns()});
    sum = sum.is_defined() ? sum + placed : placed;
  }
  return slice(slice(sum, 2, {down, down + size.rows()}), 3, {across, across + size.columns()});
}

}  // namespace nitinol
