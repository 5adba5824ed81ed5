// Weights of convolutions that are put in order before the convolution runs.
#include "backends/cpu/onednn/convolution.h"
#include "backends/reference/device.h"
#include "core/library.h"
#include "tests/backends/kernels.h"
#include "tests/fenced.h"
#include "tests/jit/calls.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace nitinol::convolution_packed_test {

using namespace nitinol::test;
using Kind = LibraryCall::Kind;

constexpr std::size_t often = 1000;

struct Case {
  Shape x, weight;
  Windows windows;
};

LibraryCall call_of(const Case& c, DType dtype, int threads) {
  const auto layout = [&](const Shape& shape) {
    return OperandLayout{dtype, shape, strides_of(shape)};
  };
  const Shape y = {c.x[0], c.windows.count(0, c.x[1]), c.windows.count(1, c.x[2]), c.weight[0]};
  return {.kind = Kind::conv2d,
          .operands = {layout(c.x), layout(c.weight), layout(y)},
          .windows = c.windows,
          .threads = threads};
}

LibraryCall with_kind(LibraryCall call, Kind kind) {
  call.kind = kind;
  return call;
}

std::vector<unsigned char> bytes_for(const OperandLayout& operand) {
  return std::vector<unsigned char>(
      4 * static_cast<std::size_t>(element_count(operand.shape)) * size_of(operand.dtype) + 64);
}

/// Numbers of any dtype, with room for strides.
std::vector<unsigned char> filled(const OperandLayout& operand, uint64_t seed) {
  RandomNumbers numbers(seed);
  std::vector<unsigned char> bytes = bytes_for(operand);
  const std::size_t count = bytes.size() / size_of(operand.dtype);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(numbers.real() / 64);
    const auto* const bits = reinterpret_cast<const unsigned char*>(&value);
    if (operand.dtype == f16) {
      const uint16_t half = static_cast<uint16_t>(0x3000 + numbers.below(0x0C00));
      std::memcpy(&bytes[2 * i], &half, 2);
    } else {
      std::memcpy(&bytes[i * size_of(operand.dtype)], bits + (operand.dtype == bf16 ? 2 : 0),
                  size_of(operand.dtype));
    }
  }
  return bytes;
}

std::vector<unsigned char> run(const LibraryCall& call, void* x, void* weight) {
  std::vector<unsigned char> y = bytes_for(call.operands[2]);
  const Call launch = {
      .buffers = {x, weight, y.data()}, .sizes = {}, .strides = {}, .threads = call.threads};
  launch.run(call);
  return y;
}

std::vector<unsigned char> run_packed(const LibraryCall& call, void* x, void* weight) {
  const std::size_t bytes = cpu::packed_filter_bytes(call, often);
  const StorageHandle packed = backend(Device{}).allocate(bytes);
  std::memset(packed->data, 0xFF, bytes);  // NaNs
  const Call packing = {
      .buffers = {weight, packed->data}, .sizes = {}, .strides = {}, .threads = call.threads};
  packing.run(with_kind(call, Kind::pack_filter));
  return run(with_kind(call, Kind::packed_conv2d), x, packed->data);
}

const std::vector<Case> cases = {
    {{2, 9, 11, 8}, {24, 8, 3, 3}, {.kernel = {3, 3}, .padding = {1, 1}}},
    {{1, 8, 8, 64}, {96, 64, 1, 1}, {}},
    {{1, 9, 8, 64}, {32, 64, 1, 1}, {.stride = {2, 2}}},  // pixels that no window sees
    {{1, 12, 12, 16}, {32, 8, 3, 2}, {.kernel = {3, 2}, .stride = {2, 1}, .groups = 2}},
    {{1, 12, 12, 16}, {16, 1, 3, 3}, {.kernel = {3, 3}, .padding = {1, 1}, .groups = 16}},
    {{1, 13, 13, 5}, {7, 5, 3, 3}, {.kernel = {3, 3}, .padding = {2, 2}, .dilation = {2, 2}}},
    {{1, 30, 30, 3}, {64, 3, 7, 7}, {.kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}}},
};

TEST_CASE("a convolution by a packed weight has the bits of the one by the weight as it lies",
          "[conv]") {
  int packed = 0;
  for (const Case& c : cases) {
    for (const DType dtype : {f32, bf16, f16}) {
      for (const int threads : {1, 2}) {
        for (const bool is_strided : {false, true}) {
          LibraryCall call = call_of(c, dtype, threads);
          if (is_strided) {  // the weight as [kh, kw, c, o], the image twice as far apart
            const Shape& w = call.operands[1].shape;
            call.operands[1].strides = {1, w[0], w[3] * w[1] * w[0], w[1] * w[0]};
            for (int64_t& stride : call.operands[0].strides) stride *= 2;
          }
          if (cpu::packed_filter_bytes(call, often) == 0) continue;
          ++packed;
          INFO(to_string(c.weight) << " on " << to_string(c.x) << ", " << name_of(dtype) << ", "
                                   << threads << " threads, strided: " << is_strided);
          auto x = filled(call.operands[0], 1), weight = filled(call.operands[1], 2);
          CHECK(run(call, x.data(), weight.data()) == run_packed(call, x.data(), weight.data()));
        }
      }
    }
  }
  CHECK(packed > 40);
}

TEST_CASE("the first rows and columns of a convolution take the weight packed, too", "[conv]") {
  LibraryCall part = call_of(cases[0], f32, 1);
  OperandLayout& y = part.operands[2];
  y.shape[1] -= 2;
  y.shape[2] -= 1;
  y.strides = strides_of(y.shape);
  REQUIRE(cpu::packed_filter_bytes(part, often) > 0);
  auto x = filled(part.operands[0], 1), weight = filled(part.operands[1], 2);
  CHECK(run(part, x.data(), weight.data()) == run_packed(part, x.data(), weight.data()));
}

TEST_CASE("a weight is packed for more than one use, where there is a layout for it", "[conv]") {
  const LibraryCall call = call_of(cases[0], f32, 1);
  CHECK(cpu::packed_filter_bytes(call, 1) == 0);
  CHECK(cpu::packed_filter_bytes(call, 2) >= 24 * 8 * 9 * sizeof(float));
  const LibraryCall doubles = call_of(cases[0], f64, 1);
  CHECK(cpu::packed_filter_bytes(doubles, often) == 0);
  CHECK(error_of([&] { backend(Device{}).prepare(with_kind(doubles, Kind::pack_filter)); }) ==
        "unsupported: conv2d: oneDNN has no layout of its own for the weight.");
  for (Backend* device : {&reference::device(), &backend(fenced_device)}) {
    CHECK(device->packed_bytes(call, often) == 0);
    CHECK(error_of([&] { device->prepare(with_kind(call, Kind::pack_filter)); }) ==
          "unsupported: pack_filter: the reference device has no layout of its own.");
  }
}

}  // namespace nitinol::convolution_packed_test
