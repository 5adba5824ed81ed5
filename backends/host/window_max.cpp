// For each window and some channels at a time: the largest elements and their places in the image.
// Channels are the innermost axis, so the inner loops run in vectors.
//
// Where the elements alone are wanted, as by max_pool2d without a gradient, places are not kept,
// and one pass goes through a row of windows.
//
// Adding goes through the window again and adds zeros where the largest element is not. In vectors
// that is fewer steps than one for each channel, and a sum that began as +0 does not notice.
#include "backends/host/window_max.h"

#include "backends/host/elements.h"
#include "backends/host/per_isa.h"
#include "backends/host/split.h"
#include "core/isa.h"
#include "core/native.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace nitinol::host {
namespace {

constexpr int64_t block = 64;  ///< channels at a time

/// A window's rows and columns that lie on the image.
struct Extent {
  int64_t top, bottom, left, right;
};

Extent extent_of(const Windows& windows, const Shape& x, int64_t i, int64_t j) {
  const int64_t top = i * windows.stride[0] - windows.padding[0];
  const int64_t left = j * windows.stride[1] - windows.padding[1];
  return {std::max<int64_t>(top, 0), std::min(top + windows.kernel[0], x[1]),
          std::max<int64_t>(left, 0), std::min(left + windows.kernel[1], x[2])};
}

/// One window of one image: `x` is the image's first element of the channels in question.
template <DType dtype>
struct ImageWindow {
  const typename Elements<dtype>::Stored* x;
  Extent extent;
  int64_t row, column, channel;  ///< strides of x
  int64_t channels;              ///< at most `block`
};

/// The largest elements per channel.
template <DType dtype>
using Largest = std::array<typename Elements<dtype>::Value, block>;
/// Where they are, as positions (row * width + column) of the image.
using Places = std::array<int32_t, block>;

template <DType dtype, bool is_packed>
[[gnu::always_inline]] inline void find_largest(const ImageWindow<dtype>& window, int32_t width,
                                                Largest<dtype>& largest, Places& places) {
  using Value = typename Elements<dtype>::Value;
  const int64_t step = is_packed ? 1 : window.channel;
  const auto [top, bottom, left, right] = window.extent;
  const auto* const start = window.x + top * window.row + left * window.column;
  for (int64_t c = 0; c < window.channels; ++c) {
    largest[static_cast<std::size_t>(c)] = value_of<dtype>(start[c * step]);
    places[static_cast<std::size_t>(c)] = static_cast<int32_t>(top * width + left);
  }
  for (int64_t h = top; h < bottom; ++h) {
    for (int64_t w = left; w < right; ++w) {
      const auto* const pixel = window.x + h * window.row + w * window.column;
      const auto place = static_cast<int32_t>(h * width + w);
      for (int64_t c = 0; c < window.channels; ++c) {
        const auto i = static_cast<std::size_t>(c);
        const Value value = value_of<dtype>(pixel[c * step]);
        const bool is_larger = (value > largest[i]) | (value != value);
        largest[i] = is_larger ? value : largest[i];
        places[i] = is_larger ? place : places[i];
      }
    }
  }
}

template <DType dtype>
struct Find {
  template <class Width>
  void operator()(Width, const ImageWindow<dtype>& window, int32_t width, Largest<dtype>& largest,
                  Places& places) const {
    if (window.channel == 1)
      find_largest<dtype, true>(window, width, largest, places);
    else
      find_largest<dtype, false>(window, width, largest, places);
  }
};

/// A row of windows of one image, whose largest elements alone are wanted. Channels are contiguous.
template <class T>
struct RowOfWindows {
  const T* x;
  int64_t top, bottom;  ///< rows of x that are on the image
  int64_t row, column;  ///< strides of x
  int64_t width, channels;
  T* out;
  int64_t columns, out_column;  ///< of out, and their stride
};

template <class T>
struct FindRow {
  template <class Width>
  void operator()(Width, const RowOfWindows<T>& row, const Windows& windows) const {
    constexpr int64_t usual = 128 / static_cast<int64_t>(sizeof(T));
    for (int64_t j = 0; j < row.columns; ++j) {
      const int64_t start = j * windows.stride[1] - windows.padding[1];
      const Extent extent = {row.top, row.bottom, std::max<int64_t>(start, 0),
                             std::min(start + windows.kernel[1], row.width)};
      int64_t c = 0;
      for (; c + usual <= row.channels; c += usual) find<usual>(row, extent, j, c, usual);
      if (c < row.channels) find<usual>(row, extent, j, c, row.channels - c);
    }
  }

  /// Of `count` channels; a constant after inlining, so that loops over them become a few vectors.
  template <int64_t most>
  [[gnu::always_inline]] static void find(const RowOfWindows<T>& row, const Extent& extent,
                                          int64_t j, int64_t channel, int64_t count) {
    alignas(64) std::array<T, most> largest;
    const T* const x = row.x + extent.left * row.column + channel;
    for (int64_t c = 0; c < count; ++c)
      largest[static_cast<std::size_t>(c)] = x[extent.top * row.row + c];
    for (int64_t h = extent.top; h < extent.bottom; ++h) {
      for (int64_t w = 0; w < extent.right - extent.left; ++w) {
        const T* const pixel = x + h * row.row + w * row.column;
        for (int64_t c = 0; c < count; ++c) {
          T& most_yet = largest[static_cast<std::size_t>(c)];
          const bool is_larger = (pixel[c] > most_yet) | (pixel[c] != pixel[c]);
          most_yet = is_larger ? pixel[c] : most_yet;
        }
      }
    }
    T* const out = row.out + j * row.out_column + channel;
    for (int64_t c = 0; c < count; ++c) out[c] = largest[static_cast<std::size_t>(c)];
  }
};

/// Values to be added at their places to the sums of an image, of which `sums` is the first of the
/// channels in question.
template <DType dtype>
struct Addends {
  Extent extent;
  int64_t channels;
  const typename Elements<dtype>::Stored* values;
  int64_t step;  ///< stride of values
  typename Elements<dtype>::Value* sums;
  int64_t pixel;  ///< stride of sums from one pixel to the next
};

template <DType dtype>
struct AddPicked {
  using Value = typename Elements<dtype>::Value;
  template <class Width>
  void operator()(Width, const Addends<dtype>& addends, int32_t width, const Places& places) const {
    std::array<Value, block> values;
    for (int64_t c = 0; c < addends.channels; ++c)
      values[static_cast<std::size_t>(c)] = value_of<dtype>(addends.values[c * addends.step]);
    for (int64_t h = addends.extent.top; h < addends.extent.bottom; ++h) {
      for (int64_t w = addends.extent.left; w < addends.extent.right; ++w) {
        const auto place = static_cast<int32_t>(h * width + w);
        Value* const sums = addends.sums + place * addends.pixel;
        for (int64_t c = 0; c < addends.channels; ++c) {
          const auto i = static_cast<std::size_t>(c);
          sums[c] = native::add(sums[c], places[i] == place ? values[i] : Value{0});
        }
      }
    }
  }
};

template <DType dtype>
class Pool {
 public:
  using Stored = typename Elements<dtype>::Stored;
  using Value = typename Elements<dtype>::Value;

  Pool(const LibraryCall& call, const Launch& launch)
      : windows_(call.windows),
        x_(call.operands[0]),
        second_(call.operands[1]),
        out_(call.operands[2]),
        x_data_(static_cast<const Stored*>(launch.buffers[0])),
        second_data_(static_cast<const Stored*>(launch.buffers[1])),
        out_data_(static_cast<Stored*>(launch.buffers[2])),
        picks_x_(x_data_ == second_data_ && x_ == second_),
        find_(PerIsa<Find<dtype>, const ImageWindow<dtype>&, int32_t, Largest<dtype>&, Places&>::at(
            current_isa())),
        add_(PerIsa<AddPicked<dtype>, const Addends<dtype>&, int32_t, const Places&>::at(
            current_isa())) {}

  /// Row `row` of all rows of the results.
  void pick(int64_t row) const {
    const int64_t n = row / out_.shape[1], i = row % out_.shape[1];
    if constexpr (std::is_same_v<Stored, Value>) {
      if (picks_x_ && x_.strides[3] == 1 && out_.strides[3] == 1) return pick_largest(n, i);
    }
    for_each_window(n, i, out_.shape[2],
                    [&](const Extent&, int64_t j, int64_t first, int64_t count,
                        const Largest<dtype>& largest, const Places& places) {
                      Stored* const to = out_data_ + offset(out_, n, i, j, first);
                      for (int64_t c = 0; c < count; ++c) {
                        const auto k = static_cast<std::size_t>(c);
                        to[c * out_.strides[3]] =
                            picks_x_ ? stored<dtype>(largest[k])
                                     : second_data_[place_of(n, places[k], first + c)];
                      }
                    });
  }

  /// The whole of image n.
  void put(int64_t n) const {
    const Shape& shape = out_.shape;
    const int64_t count = shape[1] * shape[2] * shape[3];
    // Sums go to the result itself where it holds the type that is computed in, row-major.
    const bool is_direct = std::is_same_v<Stored, Value> && is_contiguous(shape, out_.strides);
    std::vector<Value> sums(is_direct ? 0 : static_cast<std::size_t>(count));
    Value* total = sums.data();
    if constexpr (std::is_same_v<Stored, Value>) {
      if (is_direct) {
        total = out_data_ + n * count;
        std::fill_n(total, count, Value{0});
      }
    }
    for (int64_t i = 0; i < second_.shape[1]; ++i) add_row(n, i, total);
    if (is_direct) return;
    for (int64_t h = 0; h < shape[1]; ++h) {
      for (int64_t w = 0; w < shape[2]; ++w) {
        for (int64_t c = 0; c < shape[3]; ++c)
          out_data_[offset(out_, n, h, w, c)] = stored<dtype>(*total++);
      }
    }
  }

 private:
  void pick_largest(int64_t n, int64_t i) const {
    const Extent extent = extent_of(windows_, x_.shape, i, 0);
    using Find = PerIsa<FindRow<Stored>, const RowOfWindows<Stored>&, const Windows&>;
    Find::at(current_isa())({.x = x_data_ + n * x_.strides[0],
                             .top = extent.top,
                             .bottom = extent.bottom,
                             .row = x_.strides[1],
                             .column = x_.strides[2],
                             .width = x_.shape[2],
                             .channels = x_.shape[3],
                             .out = out_data_ + offset(out_, n, i, 0, 0),
                             .columns = out_.shape[2],
                             .out_column = out_.strides[2]},
                            windows_);
  }

  void add_row(int64_t n, int64_t i, Value* total) const {
    for_each_window(n, i, second_.shape[2],
                    [&](const Extent& extent, int64_t j, int64_t first, int64_t count,
                        const Largest<dtype>&, const Places& places) {
                      add_({.extent = extent,
                            .channels = count,
                            .values = second_data_ + offset(second_, n, i, j, first),
                            .step = second_.strides[3],
                            .sums = total + first,
                            .pixel = out_.shape[3]},
                           static_cast<int32_t>(x_.shape[2]), places);
                    });
  }

  /// Calls f(extent, j, first channel, channels, largest, places) for the windows in row i of image
  /// n, of which there are `columns`.
  template <class F>
  void for_each_window(int64_t n, int64_t i, int64_t columns, const F& f) const {
    Largest<dtype> largest;
    Places places;
    for (int64_t j = 0; j < columns; ++j) {
      const Extent extent = extent_of(windows_, x_.shape, i, j);
      for (int64_t first = 0; first < x_.shape[3]; first += block) {
        const int64_t count = std::min(block, x_.shape[3] - first);
        find_({.x = x_data_ + offset(x_, n, 0, 0, first),
               .extent = extent,
               .row = x_.strides[1],
               .column = x_.strides[2],
               .channel = x_.strides[3],
               .channels = count},
              static_cast<int32_t>(x_.shape[2]), largest, places);
        f(extent, j, first, count, largest, places);
      }
    }
  }

  static int64_t offset(const OperandLayout& layout, int64_t n, int64_t h, int64_t w, int64_t c) {
    const Strides& s = layout.strides;
    return n * s[0] + h * s[1] + w * s[2] + c * s[3];
  }

  /// Of an element of the second operand.
  [[nodiscard]] int64_t place_of(int64_t n, int32_t place, int64_t c) const {
    return offset(second_, n, place / x_.shape[2], place % x_.shape[2], c);
  }

  const Windows& windows_;
  const OperandLayout &x_, &second_, &out_;
  const Stored* x_data_;
  const Stored* second_data_;
  Stored* out_data_;
  bool picks_x_;
  void (*find_)(const ImageWindow<dtype>&, int32_t, Largest<dtype>&, Places&);
  void (*add_)(const Addends<dtype>&, int32_t, const Places&);
};

/// Units of work that are worth waking a thread, if one is worth `elements`.
int64_t grain_for(int64_t elements) {
  return std::max<int64_t>(16384 / std::max<int64_t>(elements, 1), 1);
}

}  // namespace

void window_max(const LibraryCall& call, const Launch& launch) {
  const Shape& out = call.operands[2].shape;
  const int64_t taps = call.windows.kernel[0] * call.windows.kernel[1];
  with_number_type(call.operands[0].dtype, [&](auto dtype) {
    const Pool<dtype.value> pool(call, launch);
    split(out[0] * out[1], grain_for(out[2] * out[3] * taps), launch.threads,
          [&](int64_t first, int64_t last) {
            for (int64_t row = first; row < last; ++row) pool.pick(row);
          });
  });
}

void window_max_input(const LibraryCall& call, const Launch& launch) {
  const Shape& out = call.operands[2].shape;
  with_number_type(call.operands[0].dtype, [&](auto dtype) {
    const Pool<dtype.value> pool(call, launch);
    split(out[0], grain_for(element_count(out) / std::max<int64_t>(out[0], 1)), launch.threads,
          [&](int64_t first, int64_t last) {
            for (int64_t n = first; n < last; ++n) pool.put(n);
          });
  });
}

}  // namespace nitinol::host
