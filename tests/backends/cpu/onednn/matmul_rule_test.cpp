#include "backends/cpu/onednn/matmul_rule.h"

#include "core/isa.h"
#include "core/parallel.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/on_threads.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#  include <immintrin.h>
#endif

using namespace nitinol;
using namespace nitinol::test;

namespace {

struct Sizes {
  int64_t m, k, n;
};

/// a[m, k] and b[k, n] by rows ('N') or by columns ('T').
cpu::MatmulDescription describe(const Sizes& sizes, const std::string& layouts) {
  const auto& [m, k, n] = sizes;
  cpu::MatmulDescription description;
  description.sizes = {{{m, k}, {k, n}, {m, n}}};
  using Strides = std::vector<int64_t>;
  description.strides = {{layouts[0] == 'N' ? Strides{k, 1} : Strides{1, m},
                          layouts[1] == 'N' ? Strides{n, 1} : Strides{1, k},
                          {n, 1}}};
  return description;
}

bool is_by_gemm(const Sizes& sizes, const std::string& layouts = "NN") {
  return cpu::fastest_way(describe(sizes, layouts)) == cpu::MatmulWay::gemm;
}

/// One product for each line of the rule, and its neighbours on the other side.
const std::vector<Sizes> swept = {{12, 800, 1040}, {8, 130, 1027}, {7, 130, 1027},  {64, 400, 1030},
                                  {32, 256, 1024}, {33, 129, 512}, {65, 257, 1024}, {8, 300, 70},
                                  {9, 300, 70},    {1, 1000, 300}, {1000, 300, 1},  {1, 777, 1}};

/// A matrix that lies by columns if `layout` is 'T', and may begin anywhere in a cache line.
Tensor matrix(Generator& numbers, int64_t rows, int64_t columns, char layout, int64_t first) {
  const Tensor line = randn({rows * columns + first}, f32, numbers);
  const Tensor part = slice(line, 0, {first, rows * columns + first});
  return layout == 'N' ? reshape(part, {rows, columns}) : transpose(reshape(part, {columns, rows}));
}

/// The largest error of c = a b, as a part of the sum of the magnitudes of the products.
double relative_error(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor exact = matmul(a.to(f64), b.to(f64));
  const Tensor magnitude = matmul(abs(a).to(f64), abs(b).to(f64));
  return max(abs(c.to(f64) - exact) / magnitude).item<double>();
}

}  // namespace

TEST_CASE("products go the way that was measured to be faster", "[matmul]") {
  if (current_isa() != Isa::avx512) return;
  CHECK(is_by_gemm({128, 768, 3072}));
  CHECK(is_by_gemm({512, 768, 3072}));
  CHECK(is_by_gemm({768, 512, 3072}, "TN"));
  CHECK(is_by_gemm({32, 256, 1024}));
  CHECK(is_by_gemm({32, 128, 1024}));
  CHECK(is_by_gemm({256, 1600, 1024}, "TN"));
  CHECK(is_by_gemm({512, 768, 2304}));
  CHECK(is_by_gemm({4, 1024, 1024}, "NT"));
  CHECK(is_by_gemm({1, 64, 64}));
  CHECK(is_by_gemm({64, 64, 1}));
  CHECK(is_by_gemm({1, 64, 64}, "TT"));

  CHECK_FALSE(is_by_gemm({32, 1024, 256}, "NT"));
  CHECK_FALSE(is_by_gemm({1024, 1024, 1024}));
  CHECK_FALSE(is_by_gemm({256, 32, 1024}, "TN"));
  CHECK_FALSE(is_by_gemm({512, 768, 768}));
  CHECK_FALSE(is_by_gemm({64, 128, 1024}));
  CHECK_FALSE(is_by_gemm({4, 1024, 1024}, "TT"));
  CHECK_FALSE(is_by_gemm({1, 64, 1}));

  cpu::MatmulDescription halves = describe({128, 768, 3072}, "NN");
  halves.dtype = bf16;
  CHECK(cpu::fastest_way(halves) == cpu::MatmulWay::primitive);
}

TEST_CASE("a product has the same bits however often and from wherever it is asked for",
          "[matmul]") {
  Generator numbers(11);
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    for (const auto& [m, k, n] : swept) {
      for (const std::string layouts : {"NN", "TN", "NT", "TT"}) {
        INFO(m << "x" << k << "x" << n << " " << layouts << ", " << threads << " threads");
        const Tensor a = matrix(numbers, m, k, layouts[0], 0);
        const Tensor b = matrix(numbers, k, n, layouts[1], 0);
        const Tensor c = matmul(a, b);
        CHECK(relative_error(a, b, c) < 2e-6);
        CHECK(same_bits(matmul(a, b), c));
        const auto compiled =
            compile([](const Tensor& x, const Tensor& y) { return matmul(x, y); });
        CHECK(same_bits(settle(compiled, a, b), c));
        Tensor elsewhere;
        std::thread([&] { elsewhere = matmul(a, b); }).join();
        CHECK(same_bits(elsewhere, c));
      }
    }
  }
}

#if defined(__x86_64__)
TEST_CASE("products keep denormal numbers, whatever mode the caller computes in", "[matmul]") {
  const Threads scope(1);
  for (const auto& [m, k, n] : swept) {
    INFO(m << "x" << k << "x" << n);
    const Tensor a = full({m, k}, 0x1p-70), b = full({k, n}, 0x1p-70);
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040);  // flush to zero, denormals are zero
    const Tensor c = matmul(a, b);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(mode);
    CHECK((after | 0x3F) == (mode | 0x8040 | 0x3F));
    CHECK(same_bits(c, full({m, n}, static_cast<double>(k) * 0x1p-140)));
  }
}
#endif

TEST_CASE("a product has the same bits wherever its operands lie", "[matmul]") {
  Generator numbers(12);
  for (const auto& [m, k, n] : swept) {
    for (const std::string layouts : {"NN", "TN", "NT"}) {
      const Tensor a = matrix(numbers, m, k, layouts[0], 0);
      const Tensor b = matrix(numbers, k, n, layouts[1], 0);
      const Tensor c = matmul(a, b);
      for (const int64_t first : {1, 7}) {
        INFO(m << "x" << k << "x" << n << " " << layouts << " from element " << first);
        const auto moved = [&](const Tensor& x, char layout) {
          const Tensor line = reshape(layout == 'N' ? x : transpose(x), {x.size()});
          const Tensor part = slice(concat({zeros({first}), line}), 0, {first, first + x.size()});
          const Shape& shape = x.shape();
          return layout == 'N' ? reshape(part, shape)
                               : transpose(reshape(part, {shape[1], shape[0]}));
        };
        CHECK(same_bits(matmul(moved(a, layouts[0]), moved(b, layouts[1])), c));
      }
    }
  }
}
