#include "backends/cpu/onednn/matmul_packed.h"

#include "backends/cpu/onednn/matmul_rule.h"
#include "backends/reference/device.h"
#include "core/isa.h"
#include "core/parallel.h"
#include "tests/backends/kernels.h"
#include "tests/fenced.h"
#include "tests/jit/calls.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

using Kind = LibraryCall::Kind;

constexpr std::size_t often = 1000;

/// a[m, k] and b[k, n] by rows ('N') or by columns ('T'), each with `gap` elements between its
/// lines.
LibraryCall product(int64_t m, int64_t k, int64_t n, const std::string& layouts, int threads,
                    int64_t gap = 0) {
  const auto operand = [&](int64_t rows, int64_t columns, char layout) -> OperandLayout {
    return {.dtype = f32,
            .shape = {rows, columns},
            .strides = layout == 'N' ? Strides{columns + gap, 1} : Strides{1, rows + gap}};
  };
  return {.kind = Kind::matmul,
          .operands = {operand(m, k, layouts[0]), operand(k, n, layouts[1]), operand(m, n, 'N')},
          .threads = threads};
}

LibraryCall with_kind(LibraryCall call, Kind kind) {
  call.kind = kind;
  return call;
}

std::size_t extent(const OperandLayout& operand) {
  return static_cast<std::size_t>((operand.shape[0] - 1) * operand.strides[0] +
                                  (operand.shape[1] - 1) * operand.strides[1] + 1);
}

using Values = std::vector<float>;

Values run(const LibraryCall& call, Values& a, Values& b) {
  Values c(extent(call.operands[2]), -1.0F);
  const Call launch = {.buffers = {a.data(), b.data(), c.data()},
                       .sizes = {},
                       .strides = {},
                       .threads = call.threads};
  launch.run(call);
  return c;
}

/// The same by a packed b, in memory that holds anything.
Values run_packed(const LibraryCall& call, Values& a, Values& b) {
  const std::size_t bytes = cpu::packed_bytes(call, often);
  const StorageHandle packed = backend(Device{}).allocate(bytes);
  std::memset(packed->data, 0xFF, bytes);  // NaNs
  const Call packing = {
      .buffers = {b.data(), packed->data}, .sizes = {}, .strides = {}, .threads = call.threads};
  packing.run(with_kind(call, Kind::pack));
  Values c(extent(call.operands[2]), -1.0F);
  const Call launch = {.buffers = {a.data(), packed->data, c.data()},
                       .sizes = {},
                       .strides = {},
                       .threads = call.threads};
  launch.run(with_kind(call, Kind::packed_matmul));
  return c;
}

/// Equal memory, with any NaN equal to any NaN.
bool same(const Values& a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool are_nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (!are_nan && std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return false;
  }
  return a.size() == b.size();
}

}  // namespace

TEST_CASE("a packed product has the bits of the product it stands for", "[matmul]") {
  if (current_isa() != Isa::avx512) return;
  test::RandomNumbers numbers(5);
  std::size_t packed = 0;
  for (const int threads : {1, 2, 3}) {
    for (const int64_t m : {9, 16, 33, 128}) {
      for (const int64_t k : {1, 17, 256, 1030}) {
        for (const int64_t n : {2, 16, 70, 256, 512, 513}) {
          for (const char* layouts : {"NT", "TT", "NN"}) {
            const int64_t gap = (m + k + n) % 3;
            const LibraryCall call = product(m, k, n, layouts, threads, gap);
            if (cpu::packed_bytes(call, often) == 0) continue;
            ++packed;
            INFO(m << "x" << k << "x" << n << " " << layouts << ", gap " << gap << ", " << threads
                   << " threads");
            Values a = numbers.reals<float>(static_cast<int64_t>(extent(call.operands[0])));
            Values b = numbers.reals<float>(static_cast<int64_t>(extent(call.operands[1])));
            CHECK(same(run(call, a, b), run_packed(call, a, b)));
            a.back() = std::numeric_limits<float>::infinity();
            b.back() = std::numeric_limits<float>::quiet_NaN();
            b.front() = std::numeric_limits<float>::denorm_min();
            CHECK(same(run(call, a, b), run_packed(call, a, b)));
          }
        }
      }
    }
  }
  CHECK(packed > 400);
}

TEST_CASE("a batch of products with one b is packed as the one product that it is", "[matmul]") {
  if (current_isa() != Isa::avx512) return;
  LibraryCall call = product(8, 64, 48, "NT", 1);
  for (OperandLayout& operand : call.operands) {
    operand.shape = {4, operand.shape[0], operand.shape[1]};
    operand.strides = {8 * operand.strides[0], operand.strides[0], operand.strides[1]};
  }
  call.operands[1].strides[0] = 0;
  CHECK(cpu::packed_bytes(call, often) >= 64 * 48 * sizeof(float));
  call.operands[1].strides[0] = 64 * 48;
  CHECK(cpu::packed_bytes(call, often) == 0);
}

TEST_CASE("operands are packed only where that pays and changes no bit", "[matmul]") {
  const std::size_t expected = current_isa() == Isa::avx512 ? 32 * 1024 * sizeof(float) : 0;
  CHECK(cpu::packed_bytes(product(32, 1024, 32, "NT", 1), often) >= expected);
  CHECK(cpu::packed_bytes(product(32, 1024, 32, "NT", 1), 11) == 0);
  CHECK(cpu::packed_bytes(product(32, 1024, 32, "NN", 1), often) == 0);
  CHECK(cpu::packed_bytes(product(256, 1024, 32, "NT", 1), often) == 0);
  CHECK(cpu::packed_bytes(product(4, 1024, 1024, "NT", 1), often) == 0);  // goes by gemm
  CHECK(cpu::packed_bytes(product(32, 0, 32, "NT", 1), often) == 0);
  // By rows where the primitive copies b; by gemm only as deep as that has the same bits.
  const std::size_t copied = current_isa() == Isa::avx512 ? 256 * 1024 * sizeof(float) : 0;
  CHECK(cpu::packed_bytes(product(32, 256, 1024, "NN", 1), often) >= copied);
  CHECK(cpu::packed_bytes(product(512, 256, 1024, "NN", 1), often) >= copied);
  CHECK(cpu::packed_bytes(product(32, 256, 1024, "NN", 1), 11) == 0);
  CHECK(cpu::packed_bytes(product(32, 256, 1000, "NN", 1), often) == 0);
  CHECK(cpu::packed_bytes(product(32, 512, 1024, "NN", 1), often) == 0);
  CHECK(cpu::packed_bytes(product(32, 256, 1024, "TN", 1), often) == 0);
  LibraryCall doubles = product(32, 1024, 32, "NT", 1);
  for (OperandLayout& operand : doubles.operands) operand.dtype = f64;
  CHECK(cpu::packed_bytes(doubles, often) == 0);
  LibraryCall spread = product(32, 1024, 32, "NT", 1);
  spread.operands[1].strides[0] = 2;  // is copied at each launch
  CHECK(cpu::packed_bytes(spread, often) == 0);
}

TEST_CASE("a packed product that has other bits is noticed", "[matmul]") {
  if (current_isa() != Isa::avx512) return;
  CHECK(cpu::has_bits_of_unpacked(product(32, 1024, 256, "NT", 1)));
  CHECK_FALSE(cpu::has_bits_of_unpacked(product(4, 1024, 1024, "NT", 1)));  // goes by gemm
}

TEST_CASE("a device without a layout of its own packs nothing and says so", "[matmul]") {
  const LibraryCall call = product(32, 1024, 32, "NT", 1);
  for (Backend* device : {&reference::device(), &backend(fenced_device)}) {
    CHECK(device->packed_bytes(call, often) == 0);
    CHECK(error_of([&] { return device->prepare(with_kind(call, Kind::pack)); }) ==
          "unsupported: pack: the reference device has no layout of its own.");
  }
}

TEST_CASE("one packed operand is read by several threads", "[matmul]") {
  if (current_isa() != Isa::avx512) return;
  test::RandomNumbers numbers(6);
  const LibraryCall call = product(32, 300, 70, "NT", 1);
  Values a = numbers.reals<float>(32 * 300), b = numbers.reals<float>(300 * 70);
  const Values expected = run(call, a, b);
  std::vector<Values> got(4);
  std::vector<std::thread> threads;
  for (Values& each : got) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) each = run_packed(call, a, b);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Values& each : got) CHECK(same(each, expected));
}
