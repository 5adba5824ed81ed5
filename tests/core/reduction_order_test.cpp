// The canonical order of reduction, written down a second time, plainly, and frozen as bits: a
// change of any constant or tree in core or the backends shows here.
#include "core/kernel.h"
#include "core/library.h"
#include "tests/backends/kernels.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

template <class T>
T pairwise(std::vector<T> values) {
  while (values.size() > 1) {
    std::vector<T> next;
    for (std::size_t i = 0; i + 1 < values.size(); i += 2)
      next.push_back(values[i] + values[i + 1]);
    if (values.size() % 2 == 1) next.push_back(values.back());
    values = std::move(next);
  }
  return values[0];
}

template <class T>
T lanes_sum(const std::vector<T>& x) {
  constexpr std::size_t lanes = sizeof(T) == 8 ? 32 : 64;
  std::vector<T> blocks;
  for (std::size_t start = 0; start < x.size(); start += 4096) {
    std::vector<T> sums(lanes, T(-0.0));
    const std::size_t end = std::min<std::size_t>(start + 4096, x.size());
    for (std::size_t first = start; first < end; first += 1024) {
      std::vector<T> run(lanes, T(-0.0));
      for (std::size_t i = first; i < std::min(first + 1024, end); ++i) {
        run[(i - first) % lanes] += x[i];
      }
      for (std::size_t l = 0; l < lanes; ++l) sums[l] += run[l];
    }
    for (std::size_t half = lanes / 2; half > 0; half /= 2) {
      for (std::size_t l = 0; l < half; ++l) sums[l] += sums[l + half];
    }
    blocks.push_back(sums[0]);
  }
  return pairwise(blocks);
}

/// Column `column` of a row-major matrix.
template <class T>
T sequential_sum(const std::vector<T>& x, std::size_t columns, std::size_t column) {
  std::vector<T> blocks;
  const std::size_t rows = x.size() / columns;
  for (std::size_t start = 0; start < rows; start += 16) {
    T sum = T(-0.0);
    for (std::size_t i = start; i < std::min(start + 16, rows); ++i) sum += x[i * columns + column];
    blocks.push_back(sum);
  }
  return pairwise(blocks);
}

template <class T>
T backend_lanes_sum(std::vector<T>& x, Device::Kind kind, int threads) {
  T result = 0;
  const Call call = {.buffers = {x.data(), &result},
                     .sizes = {static_cast<int64_t>(x.size())},
                     .strides = {1, 0},
                     .threads = threads};
  call.run(reduction(Combine::add, dtype_of<T>(), dtype_of<T>(), Order::lanes), kind);
  return result;
}

/// Running sums, in runs of 16 and runs of those.
template <class T>
std::vector<T> scan(const std::vector<T>& x) {
  std::vector<T> sums(x.size()), totals;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sums[i] = i % 16 == 0 ? x[i] : sums[i - 1] + x[i];
    if (i % 16 == 15) totals.push_back(sums[i]);
  }
  if (x.size() <= 16) return sums;
  const std::vector<T> before = scan(totals);
  for (std::size_t i = 16; i < x.size(); ++i) sums[i] = before[i / 16 - 1] + sums[i];
  return sums;
}

/// Of `columns` equal columns, whose elements lie `columns` apart.
template <class T>
std::vector<T> backend_scan(const std::vector<T>& x, int64_t columns, Device::Kind kind,
                            int threads) {
  const auto rows = static_cast<int64_t>(x.size());
  std::vector<T> spread(x.size() * static_cast<std::size_t>(columns)), sums(spread.size());
  for (std::size_t i = 0; i < spread.size(); ++i)
    spread[i] = x[i / static_cast<std::size_t>(columns)];
  const OperandLayout layout = {
      .dtype = dtype_of<T>(), .shape = {rows, columns}, .strides = {columns, 1}};
  const Call call = {
      .buffers = {spread.data(), sums.data()}, .sizes = {}, .strides = {}, .threads = threads};
  call.run(LibraryCall{.kind = LibraryCall::Kind::scan,
                       .operands = {layout, layout},
                       .windows = {},
                       .axis = 0,
                       .threads = threads},
           kind);
  std::vector<T> last;
  for (std::size_t i = 0; i < x.size(); ++i)
    last.push_back(sums[(i + 1) * static_cast<std::size_t>(columns) - 1]);
  return last;
}

struct Golden {
  int64_t length;
  uint32_t f32;
  uint64_t f64;
};

constexpr Golden lanes_golden[] = {
    {1, 0x42499c00, 0x40659ee000000000},     {2, 0x4397d700, 0x40659ea4881907b7},
    {63, 0x458b16d6, 0x40b3944e74a43b42},    {64, 0x458b2be6, 0x40b3ae0f74a43b42},
    {65, 0x459159d6, 0x40b4674474a43b42},    {1000, 0x47715389, 0x40f1019f700767d2},
    {4095, 0x48775cce, 0x411031eb6c034ed8},  {4096, 0x4877699b, 0x411031eb36fd8235},
    {4097, 0x48779eed, 0x411031eb32b5cccf},  {12289, 0x493fe590, 0x4127b300e4c32298},
    {28673, 0x49e04d7d, 0x413bfa0edb626479}, {100003, 0x4ac44b86, 0x415877f4825f202f},
};

struct GoldenColumn {
  int64_t rows;
  uint32_t f32;
  uint64_t f64;
};

constexpr GoldenColumn sequential_golden[] = {
    {1, 0x41b1d800, 0xbf792c9094315718},    {2, 0x41b1ca91, 0x40342e6d36f6bceb},
    {255, 0x46907728, 0x40cd8e95e46097e8},  {256, 0x46907722, 0x40cd8e95467defcb},
    {257, 0x4690771c, 0x40cd8e8e3ae0cac0},  {769, 0x47455e7b, 0x40e67f907a6233a1},
    {1793, 0x47dfe080, 0x40fab699fe62fb8e}, {20001, 0x4999f80c, 0x41337e1ad322ff08},
};

constexpr Golden scan_golden[] = {
    {1, 0xbbd8afe6, 0xbfacc9bdc3d6646c},     {16, 0x44b06848, 0x4084594f31ce9ee4},
    {17, 0x44b06762, 0x408457a9bdbe285b},    {256, 0x4687d7b5, 0x40c8038f1758797f},
    {257, 0x46885567, 0x40c8038afd31c2b2},   {4097, 0x487f9f0b, 0x410f89aaa347707e},
    {70000, 0x4a888b64, 0x415106fdf5a2bdb3},
};

}  // namespace

TEST_CASE("sums over the innermost axis have these bits", "[reduction]") {
  for (const Golden& golden : lanes_golden) {
    CAPTURE(golden.length);
    auto x = RandomNumbers(1).reals<float>(golden.length);
    auto y = RandomNumbers(2).reals<double>(golden.length);
    CHECK(std::bit_cast<uint32_t>(lanes_sum(x)) == golden.f32);
    CHECK(std::bit_cast<uint64_t>(lanes_sum(y)) == golden.f64);
    for (const auto kind : {Device::Kind::cpu, Device::Kind::reference}) {
      for (const int threads : {1, 2, 3}) {
        CHECK(std::bit_cast<uint32_t>(backend_lanes_sum(x, kind, threads)) == golden.f32);
        CHECK(std::bit_cast<uint64_t>(backend_lanes_sum(y, kind, threads)) == golden.f64);
      }
    }
  }
}

TEST_CASE("running sums have these bits", "[reduction]") {
  for (const Golden& golden : scan_golden) {
    CAPTURE(golden.length);
    const auto x = RandomNumbers(6).reals<float>(golden.length);
    const auto y = RandomNumbers(7).reals<double>(golden.length);
    const std::vector<float> f32_sums = scan(x);
    const std::vector<double> f64_sums = scan(y);
    CHECK(std::bit_cast<uint32_t>(f32_sums.back()) == golden.f32);
    CHECK(std::bit_cast<uint64_t>(f64_sums.back()) == golden.f64);
    for (const auto kind : {Device::Kind::cpu, Device::Kind::reference}) {
      for (const int64_t columns : {1, 3, 40}) {
        CAPTURE(columns);
        CHECK(backend_scan(x, columns, kind, 2) == f32_sums);
        CHECK(backend_scan(y, columns, kind, 1) == f64_sums);
      }
    }
  }
}

TEST_CASE("any number of blocks, whole or not, joins in the same tree", "[reduction]") {
  for (const int64_t blocks : {2, 3, 5, 31, 64, 65, 147}) {
    for (const int64_t rest : {0, 1, 4095}) {
      CAPTURE(blocks, rest);
      auto x = RandomNumbers(5).reals<float>(blocks * 4096 + rest);
      const auto expected = std::bit_cast<uint32_t>(lanes_sum(x));
      for (const auto kind : {Device::Kind::cpu, Device::Kind::reference}) {
        for (const int threads : {1, 3}) {
          CHECK(std::bit_cast<uint32_t>(backend_lanes_sum(x, kind, threads)) == expected);
        }
      }
    }
  }
}

TEST_CASE("sums over another axis have these bits", "[reduction]") {
  constexpr int64_t columns = 3;
  for (const GoldenColumn& golden : sequential_golden) {
    CAPTURE(golden.rows);
    auto x = RandomNumbers(3).reals<float>(golden.rows * columns);
    auto y = RandomNumbers(4).reals<double>(golden.rows * columns);
    CHECK(std::bit_cast<uint32_t>(sequential_sum(x, columns, 1)) == golden.f32);
    CHECK(std::bit_cast<uint64_t>(sequential_sum(y, columns, 1)) == golden.f64);
    for (const auto kind : {Device::Kind::cpu, Device::Kind::reference}) {
      for (const int threads : {1, 2, 3}) {
        std::vector<float> sums(columns);
        Call call = {.buffers = {x.data(), sums.data()},
                     .sizes = {columns, golden.rows},
                     .strides = {1, columns, 1, 0},
                     .threads = threads};
        call.run(reduction(Combine::add, f32, f32, Order::sequential), kind);
        CHECK(std::bit_cast<uint32_t>(sums[1]) == golden.f32);
        std::vector<double> wide(columns);
        call.buffers = {y.data(), wide.data()};
        call.run(reduction(Combine::add, f64, f64, Order::sequential), kind);
        CHECK(std::bit_cast<uint64_t>(wide[1]) == golden.f64);
      }
    }
  }
}

TEST_CASE("few columns, of which some blocks are summed at once, join in the same tree",
          "[reduction]") {
  for (const int64_t columns : {1, 2, 5, 16, 17}) {
    for (const int64_t rows : {16, 31, 33, 16 * 64, 16 * 147 + 5, 16 * 700}) {
      CAPTURE(columns, rows);
      auto x = RandomNumbers(8).reals<float>(rows * columns);
      for (const int threads : {1, 3}) {
        std::vector<float> sums(static_cast<std::size_t>(columns));
        const Call call = {.buffers = {x.data(), sums.data()},
                           .sizes = {columns, rows},
                           .strides = {1, columns, 1, 0},
                           .threads = threads};
        call.run(reduction(Combine::add, f32, f32, Order::sequential), Device::Kind::cpu);
        for (std::size_t c = 0; c < sums.size(); ++c)
          CHECK(std::bit_cast<uint32_t>(sums[c]) ==
                std::bit_cast<uint32_t>(sequential_sum(x, sums.size(), c)));
      }
    }
  }
}

TEST_CASE("a sum of negative zeros is one, a sum of nothing is not", "[reduction]") {
  for (const auto kind : {Device::Kind::cpu, Device::Kind::reference}) {
    std::vector<float> zeros(100, -0.0F), nothing;
    CHECK(std::bit_cast<uint32_t>(backend_lanes_sum(zeros, kind, 1)) == 0x80000000);
    CHECK(std::bit_cast<uint32_t>(backend_lanes_sum(nothing, kind, 1)) == 0);
  }
}
