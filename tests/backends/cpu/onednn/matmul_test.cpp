#include "backends/host/convert.h"
#include "core/library.h"
#include "core/parallel.h"
#include "tests/backends/kernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

OperandLayout contiguous(DType dtype, const Shape& shape) {
  return {.dtype = dtype, .shape = shape, .strides = strides_of(shape)};
}

OperandLayout transposed(DType dtype, const Shape& shape) {
  OperandLayout layout = contiguous(dtype, shape);
  const int last = shape.size() - 1;
  layout.strides[last - 1] = 1;
  layout.strides[last] = std::max<int64_t>(shape[last - 1], 1);
  return layout;
}

LibraryCall matmul(const OperandLayout& a, const OperandLayout& b, const OperandLayout& c,
                   int threads = 2) {
  return {.kind = LibraryCall::Kind::matmul, .operands = {a, b, c}, .threads = threads};
}

int64_t span_of(const OperandLayout& layout) {
  int64_t last = 0;
  for (int i = 0; i < layout.shape.size(); ++i) {
    last += std::max<int64_t>(layout.shape[i] - 1, 0) * layout.strides[i];
  }
  return last + 1;
}

template <class T>
std::vector<T> run(const LibraryCall& call, std::vector<T>& a, std::vector<T>& b,
                   Device::Kind kind) {
  std::vector<T> c(static_cast<std::size_t>(span_of(call.operands[2])), T(-1));
  const Call launch = {.buffers = {a.data(), b.data(), c.data()},
                       .sizes = {},
                       .strides = {},
                       .threads = call.threads};
  launch.run(call, kind);
  return c;
}

/// Small integers: every product and sum is exact, so all orders agree.
template <class T>
std::vector<T> small(int64_t count, uint64_t seed) {
  RandomNumbers numbers(seed);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(numbers.below(9) - 4);
  return values;
}

template <class T>
void check(const LibraryCall& call) {
  auto a = small<T>(span_of(call.operands[0]), 1), b = small<T>(span_of(call.operands[1]), 2);
  CHECK(run(call, a, b, Device::Kind::cpu) == run(call, a, b, Device::Kind::reference));
}

/// The layouts that one pair of shapes may come in.
std::vector<OperandLayout> layouts(DType dtype, const Shape& shape) {
  std::vector<OperandLayout> all = {contiguous(dtype, shape), transposed(dtype, shape)};
  OperandLayout spread = contiguous(dtype, shape);  // every second element
  for (int i = 0; i < shape.size(); ++i) spread.strides[i] *= 2;
  all.push_back(spread);
  OperandLayout rows = contiguous(dtype, shape);  // rows with a gap
  for (int i = 0; i + 1 < shape.size(); ++i)
    rows.strides[i] = rows.strides[i] / std::max<int64_t>(shape.back(), 1) * (shape.back() + 3);
  all.push_back(rows);
  OperandLayout repeated = contiguous(dtype, shape);  // one row
  repeated.strides[shape.size() - 2] = 0;
  all.push_back(repeated);
  return all;
}

}  // namespace

TEST_CASE("matmul takes operands of any layout", "[matmul]") {
  struct Sizes {
    int64_t m, k, n;
  };
  for (const auto& [m, k, n] : {Sizes{1, 1, 1},
                                {3, 4, 5},
                                {1, 7, 9},
                                {8, 1, 3},
                                {6, 5, 1},
                                {33, 70, 65},
                                {0, 3, 2},
                                {2, 0, 3},
                                {2, 3, 0},
                                {16, 130, 1024},
                                {9, 128, 1050},
                                {64, 256, 1030}}) {
    CAPTURE(m, k, n);
    for (const OperandLayout& a : layouts(f32, {m, k})) {
      for (const OperandLayout& b : layouts(f32, {k, n})) {
        CAPTURE(to_string(a.strides), to_string(b.strides));
        check<float>(matmul(a, b, contiguous(f32, {m, n})));
      }
    }
  }
}

TEST_CASE("matmul of an empty depth is zero", "[matmul]") {
  const LibraryCall call =
      matmul(contiguous(f32, {2, 0}), contiguous(f32, {0, 3}), contiguous(f32, {2, 3}));
  std::vector<float> a(1), b(1);
  CHECK(run(call, a, b, Device::Kind::cpu) == std::vector<float>(6, 0.0F));
}

TEST_CASE("matmul batches broadcast", "[matmul]") {
  const auto with_batch = [](OperandLayout layout, Strides batch) {
    for (int i = 0; i < batch.size(); ++i) layout.strides[i] = batch[i];
    return layout;
  };
  const OperandLayout c = contiguous(f32, {4, 3, 5, 6});
  const OperandLayout a = contiguous(f32, {4, 3, 5, 7}), b = contiguous(f32, {4, 3, 7, 6});
  check<float>(matmul(a, b, c));
  check<float>(matmul(a, with_batch(b, {0, 0}), c));  // one tall product
  check<float>(matmul(with_batch(a, {0, 0}), b, c));
  check<float>(matmul(with_batch(a, {0, 35}), with_batch(b, {42, 0}), c));
  check<float>(matmul(with_batch(a, {7, 300}), b, c));  // batch inside the rows
  check<float>(matmul(with_batch(transposed(f32, {4, 3, 5, 7}), {0, 35}),
                      with_batch(transposed(f32, {4, 3, 7, 6}), {42, 0}), c));
  for (const OperandLayout& left : layouts(f32, {2, 3, 4, 5})) {
    check<float>(matmul(left, contiguous(f32, {2, 3, 5, 2}), contiguous(f32, {2, 3, 4, 2})));
  }
  check<float>(matmul(contiguous(f32, {8, 1, 64}), with_batch(contiguous(f32, {8, 64, 10}), {0}),
                      contiguous(f32, {8, 1, 10})));
}

TEST_CASE("matmul of f64 and integers sums in the order of k", "[matmul]") {
  for (const OperandLayout& a : layouts(f64, {13, 40})) {
    for (const OperandLayout& b : layouts(f64, {40, 37})) {
      RandomNumbers numbers(3);
      auto x = numbers.reals<double>(span_of(a)), y = numbers.reals<double>(span_of(b));
      const auto expected =
          run(matmul(a, b, contiguous(f64, {13, 37})), x, y, Device::Kind::reference);
      for (const int threads : {1, 2, 3}) {
        CHECK(run(matmul(a, b, contiguous(f64, {13, 37}), threads), x, y, Device::Kind::cpu) ==
              expected);
      }
    }
  }
  const auto shapes = [](DType dtype) {
    return matmul(contiguous(dtype, {2, 9, 30}), contiguous(dtype, {2, 30, 70}),
                  contiguous(dtype, {2, 9, 70}));
  };
  check<int8_t>(shapes(i8));
  check<uint8_t>(shapes(u8));
  check<int16_t>(shapes(i16));
  check<int32_t>(shapes(i32));
  check<int64_t>(shapes(i64));
}

TEST_CASE("matmul of half precision types", "[matmul]") {
  for (const DType dtype : {f16, bf16}) {
    for (const OperandLayout& a : layouts(dtype, {2, 5, 30})) {
      for (const OperandLayout& b : layouts(dtype, {2, 30, 12})) {
        auto x = small<float>(span_of(a), 4), y = small<float>(span_of(b), 5);
        const auto halves = [&](const std::vector<float>& values) {
          std::vector<uint16_t> result;
          for (const float v : values) {
            result.push_back(dtype == f16 ? host::float_to_half(v) : host::float_to_bfloat(v));
          }
          return result;
        };
        auto xh = halves(x), yh = halves(y);
        const LibraryCall call = matmul(a, b, contiguous(dtype, {2, 5, 12}));
        CHECK(run(call, xh, yh, Device::Kind::cpu) == run(call, xh, yh, Device::Kind::reference));
      }
    }
  }
}

TEST_CASE("one matmul may run on many threads at once", "[matmul]") {
  const LibraryCall call = matmul(contiguous(f32, {100, 130}), contiguous(f32, {130, 90}),
                                  contiguous(f32, {100, 90}), 1);
  RandomNumbers numbers(6);
  auto a = numbers.reals<float>(13000), b = numbers.reals<float>(11700);
  const auto expected = run(call, a, b, Device::Kind::cpu);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (run(call, a, b, Device::Kind::cpu) != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("matmul is close to the exact product", "[matmul]") {
  RandomNumbers numbers(7);
  auto a = numbers.reals<float>(12800), b = numbers.reals<float>(9600);
  const LibraryCall call =
      matmul(contiguous(f32, {64, 200}), contiguous(f32, {200, 48}), contiguous(f32, {64, 48}));
  const auto c = run(call, a, b, Device::Kind::cpu);
  double worst = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t j = 0; j < 48; ++j) {
      double sum = 0, magnitude = 0;
      for (std::size_t k = 0; k < 200; ++k) {
        const double term =
            static_cast<double>(a[i * 200 + k]) * static_cast<double>(b[k * 48 + j]);
        sum += term;
        magnitude += std::abs(term);
      }
      worst = std::max(worst, std::abs(sum - static_cast<double>(c[i * 48 + j])) / magnitude);
    }
  }
  CHECK(worst < 200 * 6e-8);
}
