#include "eager/ops/conv.h"

#include "eager/channels_last.h"
#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

using namespace nitinol;

namespace {

bool is_row_major(const Tensor& x) {
  return is_contiguous(x.shape(), x.internals().strides);
}

/// By the definition, one window at a time.
Tensor naive(const Tensor& x, const Tensor& weight, int64_t stride) {
  const int64_t kh = weight.shape()[2], kw = weight.shape()[3];
  std::vector<Tensor> rows;
  for (int64_t i = 0; i + kh <= x.shape()[2]; i += stride) {
    std::vector<Tensor> columns;
    for (int64_t j = 0; j + kw <= x.shape()[3]; j += stride) {
      const Tensor part = slice(slice(x, 2, {i, i + kh}), 3, {j, j + kw});
      columns.push_back(sum(unsqueeze(part, 1) * weight, {2, 3, 4}));
    }
    rows.push_back(stack(columns, -1));
  }
  return stack(rows, 2);
}

}  // namespace

TEST_CASE("conv2d is the sum over each window", "[eager][conv]") {
  const Tensor x = randn({2, 3, 7, 6}, f64), weight = randn({4, 3, 3, 2}, f64);
  const Tensor expected = naive(x, weight, 1);
  CHECK(conv2d(x, weight).shape() == Shape{2, 4, 5, 5});
  CHECK(max(abs(conv2d(x, weight) - expected)).item<double>() < 1e-12);
  CHECK(max(abs(conv2d(x, weight, {.stride = 2}) - naive(x, weight, 2))).item<double>() < 1e-12);
  const Tensor bias = randn({4}, f64);
  const Tensor biased = conv2d(x, weight, bias);
  CHECK(max(abs(biased - (expected + reshape(bias, {4, 1, 1})))).item<double>() < 1e-12);
  const Tensor padded = pad(x, {{0, 0}, {0, 0}, {2, 2}, {1, 1}}, 0.0);
  CHECK(same_library_bits(conv2d(x, weight, {.padding = {2, 1}}), conv2d(padded, weight)));
}

TEST_CASE("conv2d takes images in any layout and promotes dtypes", "[eager][conv]") {
  const Tensor x = randn({2, 8, 9, 7}), weight = randn({16, 8, 3, 3});
  const Tensor expected = conv2d(x, weight);
  const Tensor last = permute(copy(permute(x, {0, 2, 3, 1})), {0, 3, 1, 2});
  CHECK(same_library_bits(conv2d(last, weight), expected));
  CHECK(same_library_bits(conv2d(transpose(copy(transpose(x))), weight), expected));
  const Tensor flipped = conv2d(x, flip(copy(flip(weight))));
  if (x.device().kind == Device::Kind::cuda)  // cuDNN's filters are packed; others are our own
    CHECK(max(abs(flipped - expected)).item<float>() < 1e-4F);
  else
    CHECK(same_bits(flipped, expected));
  CHECK(conv2d(x, weight.to(f64)).dtype() == f64);
  CHECK(conv2d(ones({1, 1, 3, 3}, i32), ones({1, 1, 2, 2}, u8)).to_vector<int32_t>() ==
        std::vector<int32_t>{4, 4, 4, 4});
  CHECK(conv2d(x.to(bf16), weight.to(bf16)).dtype() == bf16);
}

TEST_CASE("conv2d of nothing", "[eager][conv]") {
  CHECK(conv2d(zeros({0, 3, 5, 5}), ones({2, 3, 3, 3})).shape() == Shape{0, 2, 3, 3});
  const Tensor none = conv2d(zeros({1, 0, 3, 3}), ones({2, 0, 3, 3}), ones({2}));
  CHECK(none.to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("elementwise results keep the layout of images that lie channels last",
          "[eager][channels_last]") {
  const Tensor x = channels_first(randn({2, 5, 4, 3}));
  const Tensor plain = copy(x);
  CHECK_FALSE(is_row_major(x));
  CHECK(is_row_major(plain));
  const auto last = [](const Tensor& t) { return is_row_major(channels_last(t)); };
  CHECK(last(relu(x)));
  CHECK(same_bits(relu(x), relu(plain)));
  CHECK(last(x + relu(x)));
  CHECK(last(2.0 - x));
  CHECK(last(x.to(f64)));
  CHECK(last(where(x > 0, x, 0.0)));
  const Tensor column = randn({3, 1, 1}), row = randn({4});
  CHECK(last(x * column + row));
  CHECK(same_bits(x * column + row, plain * column + row));
  CHECK(last(x + randn({2, 1, 1, 1})));
  CHECK(is_row_major(x + plain));
  CHECK(same_bits(x + plain, plain + plain));
  CHECK(is_row_major(copy(x)));
  CHECK(last(x + expand(tensor(1.0F), x.shape())));
}

TEST_CASE("layouts change no bit of a gradient", "[eager][channels_last]") {
  const Tensor first = randn({3, 4, 5, 6});
  const Tensor last = channels_first(copy(channels_last(first)));
  const auto gradient = [](const Tensor& x) {
    const Variable scale = parameter(full({4, 1, 1}, 1.5));
    sum(square(relu(x * scale))).backward();
    return scale.grad();
  };
  CHECK(same_bits(gradient(first), gradient(last)));
}

TEST_CASE("compiled images lie as eager's, with the same bits", "[jit][channels_last]") {
  const auto f = [](const Tensor& x, const Tensor& w) {
    const Tensor y = relu(conv2d(x, w, {.padding = 1}) * 0.5 + 0.25);
    return std::pair(y, conv2d(y, transpose(w, 0, 1), {.padding = 1}) + x);
  };
  const Tensor x = randn({2, 8, 7, 9}), w = randn({24, 8, 3, 3});
  const auto g = compile(f);
  const auto expected = f(x, w);
  for (int i = 0; i < 4; ++i) {
    const auto got = g(x, w);
    CHECK(same_bits(got.first, expected.first));
    CHECK(same_bits(got.second, expected.second));
    CHECK(got.first.internals().strides == expected.first.internals().strides);
    CHECK(got.second.internals().strides == expected.second.internals().strides);
  }
  CHECK(g.explain().plan_calls > 0);
}
