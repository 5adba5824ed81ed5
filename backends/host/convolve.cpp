// Each element of the result is a sum over the pairs of an input pixel and an output pixel that a
// tap of the kernel connects. The three calls differ in which of the three operands is the result,
// so in which indices are given and which are summed over.
#include "backends/host/convolve.h"

#include "backends/host/elements.h"
#include "backends/host/split.h"
#include "core/native.h"

#include <algorithm>

namespace nitinol::host {
namespace {

/// One operand of four axes.
template <class Stored>
struct FourAxes {
  Stored* data;
  Shape shape;
  Strides strides;
  [[nodiscard]] Stored& at(int64_t i, int64_t j, int64_t k, int64_t l) const {
    return data[i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3]];
  }
};

template <DType dtype>
class Convolution {
 public:
  using Stored = typename Elements<dtype>::Stored;
  using Value = typename Elements<dtype>::Value;

  Convolution(const LibraryCall& call, const Launch& launch) : windows_(call.windows) {
    const auto block = [&](std::size_t k) {
      return FourAxes<Stored>{static_cast<Stored*>(launch.buffers[k]), call.operands[k].shape,
                              call.operands[k].strides};
    };
    const bool is_input = call.kind == LibraryCall::Kind::conv2d_input;
    const bool is_weight = call.kind == LibraryCall::Kind::conv2d_weight;
    x_ = block(is_input ? 2 : 0);
    weight_ = block(is_weight ? 2 : 1);
    y_ = block(is_input ? 0 : is_weight ? 1 : 2);
    in_group_ = weight_.shape[1];
    out_group_ = weight_.shape[0] / windows_.groups;
  }

  /// Rows of the result; work on one of them is independent of the others.
  void forward(int64_t row) const {
    const int64_t n = row / y_.shape[1], i = row % y_.shape[1];
    for (int64_t j = 0; j < y_.shape[2]; ++j) {
      for (int64_t o = 0; o < y_.shape[3]; ++o) {
        const int64_t first = o / out_group_ * in_group_;
        Value sum = 0;
        for_each_input(i, j, [&](Tap tap, int64_t h, int64_t w) {
          for (int64_t c = 0; c < in_group_; ++c)
            sum = plus_product(sum, x_.at(n, h, w, first + c), weight_.at(o, c, tap.a, tap.b));
        });
        y_.at(n, i, j, o) = stored<dtype>(sum);
      }
    }
  }

  void input(int64_t row) const {
    const int64_t n = row / x_.shape[1], h = row % x_.shape[1];
    for (int64_t w = 0; w < x_.shape[2]; ++w) {
      for (int64_t c = 0; c < x_.shape[3]; ++c) {
        const int64_t first = c / in_group_ * out_group_;
        Value sum = 0;
        for_each_output(h, w, [&](Tap tap, int64_t i, int64_t j) {
          for (int64_t o = first; o < first + out_group_; ++o)
            sum = plus_product(sum, y_.at(n, i, j, o), weight_.at(o, c % in_group_, tap.a, tap.b));
        });
        x_.at(n, h, w, c) = stored<dtype>(sum);
      }
    }
  }

  void weight(int64_t row) const {
    const int64_t o = row / in_group_, c = row % in_group_;
    const int64_t channel = o / out_group_ * in_group_ + c;
    for (int64_t a = 0; a < windows_.kernel[0]; ++a) {
      for (int64_t b = 0; b < windows_.kernel[1]; ++b)
        weight_.at(o, c, a, b) = stored<dtype>(sum_of_pairs({a, b}, channel, o));
    }
  }

 private:
  /// A row and a column of the kernel.
  struct Tap {
    int64_t a, b;
  };

  /// Calls f(tap, h, w) for the input pixels that output pixel (i, j) reads.
  template <class F>
  void for_each_input(int64_t i, int64_t j, F f) const {
    for (int64_t a = 0; a < windows_.kernel[0]; ++a) {
      const int64_t h = input_of(0, i, a);
      if (h < 0 || h >= x_.shape[1]) continue;
      for (int64_t b = 0; b < windows_.kernel[1]; ++b) {
        const int64_t w = input_of(1, j, b);
        if (w >= 0 && w < x_.shape[2]) f(Tap{a, b}, h, w);
      }
    }
  }
  /// Calls f(tap, i, j) for the output pixels that read input pixel (h, w).
  template <class F>
  void for_each_output(int64_t h, int64_t w, F f) const {
    for (int64_t a = 0; a < windows_.kernel[0]; ++a) {
      const int64_t i = output_of(0, h, a);
      if (i < 0) continue;
      for (int64_t b = 0; b < windows_.kernel[1]; ++b) {
        const int64_t j = output_of(1, w, b);
        if (j >= 0) f(Tap{a, b}, i, j);
      }
    }
  }
  /// Over the pairs of an input and an output pixel that a tap connects.
  [[nodiscard]] Value sum_of_pairs(Tap tap, int64_t in, int64_t out) const {
    Value sum = 0;
    for (int64_t n = 0; n < y_.shape[0]; ++n) {
      for (int64_t i = 0; i < y_.shape[1]; ++i) {
        const int64_t h = input_of(0, i, tap.a);
        if (h < 0 || h >= x_.shape[1]) continue;
        for (int64_t j = 0; j < y_.shape[2]; ++j) {
          const int64_t w = input_of(1, j, tap.b);
          if (w < 0 || w >= x_.shape[2]) continue;
          sum = plus_product(sum, x_.at(n, h, w, in), y_.at(n, i, j, out));
        }
      }
    }
    return sum;
  }

  [[nodiscard]] int64_t input_of(std::size_t axis, int64_t output, int64_t tap) const {
    return output * windows_.stride[axis] - windows_.padding[axis] + tap * windows_.dilation[axis];
  }

  /// The output pixel whose window has `input` at `tap`, or -1.
  [[nodiscard]] int64_t output_of(std::size_t axis, int64_t input, int64_t tap) const {
    const int64_t start = input + windows_.padding[axis] - tap * windows_.dilation[axis];
    if (start < 0 || start % windows_.stride[axis] != 0) return -1;
    const int64_t output = start / windows_.stride[axis];
    return output < y_.shape[static_cast<int>(axis) + 1] ? output : -1;
  }

  static Value plus_product(Value sum, Stored a, Stored b) {
    return native::add(sum, native::mul(value_of<dtype>(a), value_of<dtype>(b)));
  }

  const Windows& windows_;
  FourAxes<Stored> x_, weight_, y_;
  int64_t in_group_, out_group_;
};

}  // namespace

void convolve(const LibraryCall& call, const Launch& launch) {
  const Shape& result = call.operands[2].shape;
  const bool is_weight = call.kind == LibraryCall::Kind::conv2d_weight;
  const int64_t rows = result[0] * result[1];
  // Products for a row of the result.
  const Shape& y = call.operands[is_weight ? 1 : 2].shape;
  const int64_t work = is_weight ? element_count(y) / std::max<int64_t>(y[3], 1)
                                 : result[2] * result[3] * call.operands[1].shape[1];
  const int64_t taps = call.windows.kernel[0] * call.windows.kernel[1];
  const int64_t grain = std::max<int64_t>(4096 / std::max<int64_t>(work * taps, 1), 1);
  with_number_type(call.operands[2].dtype, [&](auto dtype) {
    const Convolution<dtype.value> convolution(call, launch);
    split(rows, grain, launch.threads, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        if (is_weight)
          convolution.weight(row);
        else if (call.kind == LibraryCall::Kind::conv2d_input)
          convolution.input(row);
        else
          convolution.forward(row);
      }
    });
  });
}

}  // namespace nitinol::host
