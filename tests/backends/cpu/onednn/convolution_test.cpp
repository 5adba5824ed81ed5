// Convolutions of the cpu device against plain loops: small integers, so that all sums are exact.
#include "backends/cpu/onednn/convolution.h"

#include "core/library.h"
#include "core/parallel.h"
#include "tests/backends/kernels.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

using Kind = LibraryCall::Kind;

struct Case {
  Shape x, weight;
  Windows windows;
};

Shape result_of(const Case& c) {
  return {c.x[0], c.windows.count(0, c.x[1]), c.windows.count(1, c.x[2]), c.weight[0]};
}

LibraryCall call_of(Kind kind, const Case& c, DType dtype, int threads = 2) {
  const auto layout = [&](const Shape& shape) {
    return OperandLayout{dtype, shape, strides_of(shape)};
  };
  const Shape y = result_of(c);
  std::vector<OperandLayout> operands = {layout(c.x), layout(c.weight), layout(y)};
  if (kind == Kind::conv2d_input) operands = {layout(y), layout(c.weight), layout(c.x)};
  if (kind == Kind::conv2d_weight) operands = {layout(c.x), layout(y), layout(c.weight)};
  return {.kind = kind, .operands = operands, .windows = c.windows, .threads = threads};
}

template <class T>
std::vector<T> small(std::size_t count, uint64_t seed) {
  RandomNumbers numbers(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(numbers.below(7) - 3);
  return values;
}

/// Room for any of the layouts below.
std::size_t room(const OperandLayout& layout) {
  return static_cast<std::size_t>(4 * element_count(layout.shape) + 64);
}

template <class T>
std::vector<T> run(const LibraryCall& call, std::vector<T>& a, std::vector<T>& b,
                   Device::Kind kind) {
  std::vector<T> c(room(call.operands[2]), T(-1));
  const Call launch = {.buffers = {a.data(), b.data(), c.data()},
                       .sizes = {},
                       .strides = {},
                       .threads = call.threads};
  launch.run(call, kind);
  return c;
}

template <class T>
bool agrees(const LibraryCall& call) {
  auto a = small<T>(room(call.operands[0]), 1), b = small<T>(room(call.operands[1]), 2);
  return run(call, a, b, Device::Kind::cpu) == run(call, a, b, Device::Kind::reference);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {{2, 9, 8, 16}, {32, 16, 3, 3}, {.kernel = {3, 3}}},
      {{2, 9, 8, 16}, {32, 16, 3, 3}, {.kernel = {3, 3}, .padding = {1, 1}}},
      {{3, 12, 11, 1}, {32, 1, 3, 3}, {.kernel = {3, 3}}},
      {{2, 16, 15, 3}, {64, 3, 7, 7}, {.kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}}},
      {{2, 7, 7, 64}, {32, 64, 1, 1}, {.stride = {2, 2}}},
      {{1, 9, 9, 5}, {7, 5, 3, 2}, {.kernel = {3, 2}, .stride = {1, 2}, .dilation = {2, 3}}},
      {{2, 8, 8, 32}, {32, 16, 3, 3}, {.kernel = {3, 3}, .padding = {1, 1}, .groups = 2}},
      {{2, 8, 8, 32}, {32, 1, 3, 3}, {.kernel = {3, 3}, .padding = {1, 1}, .groups = 32}},
      {{2, 8, 8, 6}, {6, 1, 2, 2}, {.kernel = {2, 2}, .stride = {2, 2}, .groups = 6}},
      {{1, 8, 8, 4}, {4, 4, 2, 2}, {.kernel = {2, 2}, .stride = {3, 3}}},
      {{1, 2, 2, 4}, {4, 4, 3, 3}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {3, 3}}},
      {{2, 8, 6, 64}, {32, 64, 1, 1}, {.stride = {2, 2}}}};
  return list;
}

}  // namespace

TEST_CASE("convolutions and their gradients agree with plain loops", "[cpu][conv]") {
  for (const Kind kind : {Kind::conv2d, Kind::conv2d_input, Kind::conv2d_weight}) {
    for (std::size_t i = 0; i < cases().size(); ++i) {
      INFO(name_of(kind) << " case " << i);
      CHECK(agrees<float>(call_of(kind, cases()[i], f32)));
      CHECK(agrees<float>(call_of(kind, cases()[i], f32, 1)));
    }
    CHECK(agrees<double>(call_of(kind, cases()[5], f64)));
    CHECK(agrees<int32_t>(call_of(kind, cases()[5], i32)));
    CHECK(agrees<uint8_t>(call_of(kind, cases()[6], u8)));
  }
}

TEST_CASE("16-bit convolutions are summed in float32", "[cpu][conv]") {
  // Zeros and ones: their sums are exact in both formats.
  const auto is_right = [](const LibraryCall& call) {
    std::vector<uint16_t> a(room(call.operands[0])), b(room(call.operands[1]));
    const uint16_t one = call.operands[0].dtype == f16 ? 0x3c00 : 0x3f80;
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = i % 3 == 0 ? one : 0;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = i % 4 == 1 ? one : 0;
    CHECK(run(call, a, b, Device::Kind::cpu) == run(call, a, b, Device::Kind::reference));
  };
  for (const DType dtype : {f16, bf16}) {
    for (const Kind kind : {Kind::conv2d, Kind::conv2d_input, Kind::conv2d_weight}) {
      for (std::size_t i = 0; i < cases().size(); ++i) {
        INFO(name_of(dtype) << ", " << name_of(kind) << " case " << i);
        const LibraryCall plain = call_of(kind, cases()[i], dtype);
        is_right(plain);
        for (const std::size_t operand : {0, 1, 2}) {  // of which copies are made
          LibraryCall call = plain;
          for (int64_t& stride : call.operands[operand].strides) stride *= 2;
          is_right(call);
        }
      }
    }
  }
}

TEST_CASE("gradients are fast where the last pixels are in no window", "[cpu][conv]") {
  // As of each stage of a ResNet: 500 times slower where plain loops compute them.
  const Case& even = cases().back();
  for (const Kind kind : {Kind::conv2d, Kind::conv2d_input, Kind::conv2d_weight}) {
    INFO(name_of(kind));
    LibraryCall call = call_of(kind, even, f32);
    CHECK(cpu::make_convolution(call) != nullptr);
    CHECK(cpu::make_convolution(call_of(kind, even, bf16)) != nullptr);
    for (int64_t& stride : call.operands[0].strides) stride *= 2;
    CHECK(agrees<float>(call));
    call = call_of(kind, even, f32);
    for (int64_t& stride : call.operands[2].strides) stride *= 2;
    CHECK(agrees<float>(call));
  }
}

TEST_CASE("operands of any strides are convolved", "[cpu][conv]") {
  for (const Kind kind : {Kind::conv2d, Kind::conv2d_input, Kind::conv2d_weight}) {
    for (const std::size_t operand : {0, 1, 2}) {
      LibraryCall call = call_of(kind, cases()[1], f32);
      Strides& strides = call.operands[operand].strides;
      const Shape& shape = call.operands[operand].shape;
      INFO(name_of(kind) << " operand " << operand);
      strides = {shape[1] * shape[2] * shape[3], shape[2], 1, shape[1] * shape[2]};
      CHECK(agrees<float>(call));
      for (int64_t& stride : strides = strides_of(shape)) stride *= 2;
      CHECK(agrees<float>(call));
      if (operand == 2) continue;
      strides = {0, 0, 0, 0};
      CHECK(agrees<float>(call));
    }
  }
}

TEST_CASE("one convolution may be run by several threads at once", "[cpu][conv]") {
  const LibraryCall call = call_of(Kind::conv2d_weight, cases()[1], f32);
  auto a = small<float>(room(call.operands[0]), 1), b = small<float>(room(call.operands[1]), 2);
  const std::vector<float> expected = run(call, a, b, Device::Kind::cpu);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) wrong += run(call, a, b, Device::Kind::cpu) == expected ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
