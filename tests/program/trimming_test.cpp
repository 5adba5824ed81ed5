// Which images a Plan makes smaller, and that nobody can tell from the bits.
#include "program/trimming.h"

#include "core/isa.h"
#include "tests/jit/calls.h"
#include "tests/jit/passes/pass_text.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <functional>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

using Function = std::function<Tensor(const Tensor&)>;

Tensor normal(uint64_t seed, const Shape& shape, DType dtype = f32) {
  Generator numbers(seed);
  return randn(shape, f32, numbers).to(dtype);
}

/// Bytes that the convolutions of f's Plan write at a call, whose result has eager's bits.
std::vector<std::size_t> written(const Function& f, const Tensor& x) {
  const auto compiled = compile(Function(f), {.check = Check::never});
  for (int i = 0; i < 4; ++i) CHECK(same_bits(compiled(x), f(x)));
  std::vector<std::size_t> bytes;
  const jit::PlanReport plan = compiled.explain().signatures.at(0).plan;
  for (const auto& step : plan.steps) {
    if (step.ops == std::vector<std::string>{"conv2d"}) bytes.push_back(step.bytes_written);
  }
  return bytes;
}

std::size_t bytes_of(int64_t n, int64_t h, int64_t w, int64_t c) {
  return static_cast<std::size_t>(n * h * w * c) * sizeof(float);
}

/// Where the device's code for convolutions is known to give parts the bits of the whole.
bool can_trim() {
  return current_isa() != Isa::baseline && default_device() == Device{};
}

}  // namespace

TEST_CASE("rows and columns that no window reads are not made", "[jit][trimming]") {
  const Tensor x = normal(1, {2, 3, 13, 15}), weight = normal(2, {8, 3, 3, 3}),
               bias = normal(3, {8});
  const auto f = [&](const Tensor& images) {
    return max_pool2d(relu(conv2d(images, weight, bias)), 2);
  };
  for (const int threads : {1, 2, 3}) {
    const Threads scope(threads);
    if (can_trim()) CHECK(written(f, x) == std::vector{bytes_of(2, 10, 12, 8)});
    const WithoutPasses off({"trim_images"});
    CHECK(written(f, x) == std::vector{bytes_of(2, 11, 13, 8)});
  }
}

TEST_CASE("what trimmed images are made of is trimmed too", "[jit][trimming]") {
  if (!can_trim()) return;
  const Tensor x = normal(1, {2, 1, 28, 28}), first = normal(2, {16, 1, 3, 3}),
               second = normal(3, {8, 16, 3, 3}), bias = normal(4, {16});
  const auto f = [&](const Tensor& images) {
    const Tensor y = max_pool2d(relu(conv2d(images, first, bias)), 2);
    return max_pool2d(conv2d(y, second), 2);
  };
  // 26 by 26, 13 by 13 and 11 by 11 of which 10 by 10 are read, so 12 by 12, so 24 by 24.
  CHECK(written(f, x) == std::vector{bytes_of(2, 24, 24, 16), bytes_of(2, 10, 10, 8)});
}

TEST_CASE("trimmed convolutions have the bits of whole ones", "[jit][trimming]") {
  std::size_t trimmed = 0;
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    for (const int64_t size : {7, 9, 12, 17}) {
      for (const Conv2dOptions& options :
           {Conv2dOptions{}, Conv2dOptions{.padding = 1}, Conv2dOptions{.stride = 2, .padding = 1},
            Conv2dOptions{.dilation = 2}, Conv2dOptions{.padding = {0, 2}, .groups = 2}}) {
        for (const MaxPool2dOptions& windows :
             {MaxPool2dOptions{}, MaxPool2dOptions{.stride = 3, .padding = 1},
              MaxPool2dOptions{.stride = 1}}) {
          const Tensor x = normal(1, {2, 4, size, size + 1}),
                       weight = normal(2, {16, 4 / options.groups, 3, 3}), bias = normal(3, {16});
          const auto f = [&](const Tensor& images) {
            const Tensor y = conv2d(images, weight, bias, options);
            return max_pool2d(tanh(relu(y) * 0.5), 2, windows);
          };
          const Tensor whole = conv2d(x, weight, options);
          const std::vector<std::size_t> bytes = written(f, x);
          REQUIRE(bytes.size() == 1);
          if (bytes[0] < static_cast<std::size_t>(whole.size()) * sizeof(float)) ++trimmed;
        }
      }
    }
  }
  if (can_trim()) CHECK(trimmed > 40);
}

TEST_CASE("images that others read, or that come from elsewhere, stay whole", "[jit][trimming]") {
  const Tensor x = normal(1, {2, 3, 13, 13}), weight = normal(2, {8, 3, 3, 3}),
               image = normal(3, {2, 8, 11, 11}), row = normal(4, {11});
  const std::vector whole = {bytes_of(2, 11, 11, 8)};
  const auto pooled = [&](const Tensor& y) { return max_pool2d(y, 2); };
  const auto conv = [&](const Tensor& images) { return conv2d(images, weight); };
  CHECK(written([&](const Tensor& t) { return sum(conv(t)) + pooled(conv(t)); }, x) == whole);
  CHECK(written([&](const Tensor& t) { return pooled(conv(t) + image); }, x) == whole);
  CHECK(written([&](const Tensor& t) { return pooled(conv(t) * row); }, x) == whole);
  CHECK(written([&](const Tensor& t) { return max_pool2d(conv(t), 11); }, x) == whole);
  CHECK(written([&](const Tensor& t) { return pooled(cumsum(conv(t), 2)); }, x) == whole);
}

TEST_CASE("gradients are of whole images", "[jit][trimming]") {
  const Tensor x = normal(1, {2, 3, 13, 13}), weight = normal(2, {8, 3, 3, 3});
  const auto f = [&](const Tensor& images) {
    return sum(square(max_pool2d(relu(conv2d(images, weight)), 2)));
  };
  const auto gradient = [&](const Tensor& images) { return grad(f)(images); };
  const auto compiled = compile(gradient, {.check = Check::never});
  for (int i = 0; i < 4; ++i) CHECK(same_bits(compiled(x), gradient(x)));
}

TEST_CASE("images of other dtypes stay whole", "[jit][trimming]") {
  for (const DType dtype : {f64, f16, i32}) {
    const Tensor x = normal(1, {2, 3, 9, 9}, dtype), weight = normal(2, {8, 3, 3, 3}, dtype);
    const auto f = [&](const Tensor& images) { return max_pool2d(conv2d(images, weight), 2); };
    CHECK(written(f, x) == std::vector{static_cast<std::size_t>(2 * 7 * 7 * 8) * size_of(dtype)});
  }
}
