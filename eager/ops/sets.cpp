#include "eager/ops/sets.h"

#include "core/error.h"
#include "eager/infer.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/index.h"
#include "eager/ops/join.h"
#include "eager/ops/masks.h"
#include "eager/ops/order.h"
#include "eager/ops/reduce.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

namespace nitinol {
namespace {

/// Whether each of sorted elements is the first of its kind.
Tensor begins_run(const Tensor& sorted) {
  if (sorted.size() == 0) return zeros({0}, boolean, sorted.device());
  const Tensor differs = slice(sorted, 0, {.start = 1}) != slice(sorted, 0, {.stop = -1});
  return concat({ones({1}, boolean, sorted.device()), differs});
}

/// Lengths of the runs that begin at these places of `size` elements.
Tensor lengths_of(const Tensor& begins, int64_t size) {
  const Tensor end = full({1}, size, i64, begins.device());
  const Tensor ends = concat({slice(begins, 0, {.start = 1}), end});
  return begins.size() == 0 ? begins : ends - begins;
}

/// The elements in order, where they come from, and the runs of equal ones: sorted once.
struct Runs {
  Runs(const Tensor& x, std::source_location place)
      : line(flatten(x)),
        order(argsort(line)),
        sorted(gather(line, 0, order)),
        is_first(begins_run(sorted)),
        begins(nonzero(is_first, {}, place)[0]) {}

  [[nodiscard]] Tensor values() const { return take(sorted, begins); }
  /// Runs are numbered along the sorted elements, which then go back to where they were.
  [[nodiscard]] Tensor inverse(const Shape& shape) const {
    if (line.size() == 0) return zeros(shape, i64, line.device());
    return reshape(scatter_add(cumsum(is_first, 0) - 1, order, line.size()), shape);
  }

  Tensor line, order, sorted, is_first, begins;
};

Device device_of(const Argument& x) {
  return x.tensor() != nullptr ? x.tensor()->device() : default_device();
}

}  // namespace

Unique unique_all(const Tensor& x, std::source_location place) {
  const Runs runs(x, place);
  return {.values = runs.values(),
          .indices = take(runs.order, runs.begins),
          .inverse_indices = runs.inverse(x.shape()),
          .counts = lengths_of(runs.begins, x.size())};
}

UniqueCounts unique_counts(const Tensor& x, std::source_location place) {
  const Tensor sorted = sort(flatten(x));
  const Tensor begins = nonzero(begins_run(sorted), {}, place)[0];
  return {.values = take(sorted, begins), .counts = lengths_of(begins, x.size())};
}

UniqueInverse unique_inverse(const Tensor& x, std::source_location place) {
  const Runs runs(x, place);
  return {.values = runs.values(), .inverse_indices = runs.inverse(x.shape())};
}

Tensor unique_values(const Tensor& x, std::source_location place) {
  const Tensor sorted = sort(flatten(x));
  return masked_select(sorted, begins_run(sorted), {}, place);
}

Tensor isin(const Argument& x, const Argument& elements) {
  const DType dtype = common_dtype("isin", {&x, &elements});
  const Device device = device_of(x.tensor() != nullptr ? x : elements);
  const Promoted sought("isin", x, dtype, device), given("isin", elements, dtype, device);
  const Tensor sorted = sort(flatten(*given.get()));
  if (sorted.size() == 0) return zeros(sought.get()->shape(), boolean, sorted.device());
  const Tensor places = searchsorted(sorted, *sought.get());
  return take(sorted, clamp(places, 0, sorted.size() - 1)) == *sought.get();
}

Tensor bincount(const Tensor& x, std::optional<Tensor> weights, Integer minlength,
                std::optional<Integer> length, std::source_location place) {
  if (minlength < 0)
    throw_value("bincount", "minlength", "at least 0", fmt::format("{}", int64_t{minlength}));
  if (length && *length < 0)
    throw_value("bincount", "length", "at least 0", fmt::format("{}", int64_t{*length}));
  if (weights && weights->shape() != x.shape()) {
    throw Error(ErrorKind::shape,
                {.where = "bincount",
                 .what = fmt::format("weights {} of {}", describe(*weights), describe(x)),
                 .expected = to_string(x.shape()),
                 .got = to_string(weights->shape()),
                 .fix = "There is a weight for each element."});
  }
  const Tensor numbers = flatten(x);
  int64_t rows = length ? *length : minlength;
  if (!length && numbers.size() > 0) {
    const auto least = min(numbers).item<int64_t>(place);
    if (least < 0)
      throw_value("bincount", "an integer is negative", "at least 0", fmt::format("{}", least));
    rows = std::max(rows, max(numbers).item<int64_t>(place) + 1);
  }
  // Below 0 nothing counts from the end.
  const Tensor places = length ? where(numbers < 0, rows, numbers) : numbers;
  const Tensor counted =
      weights ? flatten(*weights) : expand(ones({}, i64, x.device()), numbers.shape());
  return scatter_add(counted, places, rows);
}

Histogram histogram(const Tensor& x, Integer bins, double low, double high) {
  if (bins <= 0) throw_value("histogram", "bins", "at least 1", fmt::format("{}", int64_t{bins}));
  if (!(low < high))
    throw_value("histogram", "the range", "low < high", fmt::format("{} and {}", low, high));
  const DType dtype = is_floating(x.dtype()) ? promote(x.dtype(), f32) : f64;
  const Tensor edges = linspace(low, high, bins + 1, dtype, x.device());
  const Tensor numbers = cast(flatten(x), dtype);
  const Tensor range = searchsorted(edges, numbers, Side::right) - 1;
  const Tensor is_last = numbers == slice(edges, 0, {.start = -1});
  const Tensor is_counted = ((range >= 0) & (range < int64_t{bins})) | is_last;
  const Tensor places = where(is_counted, minimum(range, int64_t{bins} - 1), 0);
  return {.counts = scatter_add(cast(is_counted, i64), places, bins), .edges = edges};
}

}  // namespace nitinol
