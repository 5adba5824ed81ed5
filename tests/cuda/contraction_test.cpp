// Products of matrices and convolutions on a GPU against the reference device: of small whole
// numbers, whose sums are exact in every order. And of any numbers against themselves in other
// layouts, bit by bit. In ctest's cuda.fake.
#include "core/library.h"
#include "nitinol.h"
#include "tests/backends/kernels.h"
#include "tests/cuda/using_fake.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

using namespace nitinol;
using test::Call;
using test::gpu;
using test::has_gpu;

namespace {

using Kind = LibraryCall::Kind;

/// Axes in memory as they are, or in another order, or with gaps.
OperandLayout random_layout(test::RandomNumbers& numbers, DType dtype, const Shape& shape) {
  OperandLayout layout = {.dtype = dtype, .shape = shape, .strides = strides_of(shape)};
  if (numbers.below(2) == 0) return layout;
  const auto rank = shape.size();
  const auto turn = static_cast<int>(numbers.below(rank));
  const int64_t gap = numbers.below(2);
  int64_t stride = 1;
  for (int i = 0; i < rank; ++i) {
    const int axis = (i + turn) % rank;
    layout.strides[axis] = stride;
    stride *= shape[axis] + gap;
  }
  return layout;
}

int64_t extent(const OperandLayout& layout) {
  int64_t extent = 1;
  for (int axis = 0; axis < layout.shape.size(); ++axis) {
    if (layout.shape[axis] == 0) return 1;
    extent += (layout.shape[axis] - 1) * layout.strides[axis];
  }
  return extent;
}

/// Whole numbers from -3 to 3, in a dtype.
std::vector<std::byte> random_memory(test::RandomNumbers& numbers, const OperandLayout& layout) {
  std::vector<float> values(static_cast<std::size_t>(extent(layout)));
  for (float& value : values) value = static_cast<float>(numbers.below(7) - 3);
  const Tensor typed = tensor(values).to(Device{}).to(layout.dtype);
  std::vector<std::byte> memory(values.size() * size_of(layout.dtype));
  std::memcpy(memory.data(), typed.read_bytes(), memory.size());
  return memory;
}

LibraryCall random_product(test::RandomNumbers& numbers, DType dtype) {
  constexpr int64_t sizes[] = {1, 7, 13, 16, 17, 63, 65, 130}, depths[] = {0, 1, 15, 17, 300, 900};
  const int64_t m = sizes[numbers.below(8)], n = sizes[numbers.below(8)];
  const int64_t k = depths[numbers.below(6)], batch = 1 + numbers.below(3);
  LibraryCall call = {.kind = Kind::matmul,
                      .operands = {random_layout(numbers, dtype, {2, batch, m, k}),
                                   random_layout(numbers, dtype, {2, batch, k, n}),
                                   random_layout(numbers, dtype, {2, batch, m, n})}};
  if (numbers.below(2) == 0) call.operands[1].strides[0] = 0;  // broadcast
  return call;
}

LibraryCall random_convolution(test::RandomNumbers& numbers, Kind kind, DType dtype) {
  constexpr int64_t widths[] = {1, 3, 16, 20, 37};
  LibraryCall call = {.kind = kind, .operands = {}};
  Windows& w = call.windows;
  w.groups = 1 + numbers.below(2);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    w.kernel[axis] = 1 + numbers.below(3);
    w.stride[axis] = 1 + numbers.below(6);
    w.padding[axis] = numbers.below(3);
    w.dilation[axis] = 1 + numbers.below(2);
  }
  const int64_t channels = widths[numbers.below(5)], filters = widths[numbers.below(5)];
  const int64_t images = numbers.below(4), height = 5 + numbers.below(6),
                width = 5 + numbers.below(9);
  const OperandLayout x =
      random_layout(numbers, dtype, {images, height, width, channels * w.groups});
  const OperandLayout weight =
      random_layout(numbers, dtype, {filters * w.groups, channels, w.kernel[0], w.kernel[1]});
  const OperandLayout y = random_layout(
      numbers, dtype, {images, w.count(0, height), w.count(1, width), filters * w.groups});
  if (kind == Kind::conv2d) call.operands = {x, weight, y};
  if (kind == Kind::conv2d_input) call.operands = {y, weight, x};
  if (kind == Kind::conv2d_weight) call.operands = {x, y, weight};
  return call;
}

std::string described(const LibraryCall& call) {
  std::ostringstream text;
  text << name_of(call.kind);
  for (const OperandLayout& operand : call.operands) {
    text << ' ' << name_of(operand.dtype) << to_string(operand.shape) << " by";
    for (const int64_t stride : operand.strides) text << ' ' << stride;
  }
  const Windows& w = call.windows;
  for (const auto& pair : {w.kernel, w.stride, w.padding, w.dilation})
    text << ", " << pair[0] << ' ' << pair[1];
  return text.str();
}

/// What the last operand's memory holds after the call, gaps and all. Each operand begins `shift`
/// elements into its block.
std::vector<std::byte> result_of(const LibraryCall& call,
                                 std::vector<std::vector<std::byte>> memory, std::size_t shift,
                                 Device device) {
  Backend& where = backend(device);
  Call launch = {.buffers = {}, .sizes = {}, .strides = {}};
  std::vector<StorageHandle> blocks;
  for (const std::vector<std::byte>& bytes : memory) {
    const std::size_t begin = shift * size_of(call.operands[launch.buffers.size()].dtype);
    blocks.push_back(where.allocate(begin + bytes.size()));
    launch.buffers.push_back(static_cast<std::byte*>(blocks.back()->data) + begin);
    where.upload(bytes.data(), launch.buffers.back(), bytes.size());
  }
  where.prepare(call)->launch(launch.launch());
  where.download(launch.buffers.back(), memory.back().data(), memory.back().size());
  return memory.back();
}

/// The elements as numbers, of which 0 and -0 are equal: the definition begins each sum with 0, a
/// library need not (cuBLASLt, for one product).
std::vector<double> numbers_in(const std::vector<std::byte>& memory, DType dtype) {
  const auto count = static_cast<int64_t>(memory.size() / size_of(dtype));
  return from_bytes(memory, {.dtype = dtype, .shape = {count}, .is_weak = false, .device = {}})
      .to(f64)
      .to_vector<double>();
}

/// Empty if the numbers are equal.
std::string first_difference(const std::vector<std::byte>& got,
                             const std::vector<std::byte>& wanted, DType dtype) {
  const std::vector<double> a = numbers_in(got, dtype), b = numbers_in(wanted, dtype);
  const auto [at, other] = std::ranges::mismatch(a, b);
  if (at == a.end()) return {};
  return fmt::format("{} is {}, not {}", at - a.begin(), *at, *other);
}

void check_same(test::RandomNumbers& numbers, const LibraryCall& call) {
  INFO(described(call));
  std::vector<std::vector<std::byte>> memory;
  for (const OperandLayout& operand : call.operands)
    memory.push_back(random_memory(numbers, operand));
  const auto expected = result_of(call, memory, 0, {.kind = Device::Kind::reference, .index = 0});
  const auto shift = static_cast<std::size_t>(numbers.below(3));
  CAPTURE(shift);
  CHECK(first_difference(result_of(call, memory, shift, gpu), expected,
                         call.operands.back().dtype) == "");
}

/// Calls `take` with the place of each element in the layout, in row-major order.
template <class Take>
void for_each_place(const OperandLayout& layout, Take take) {
  Dims index = Dims::filled(layout.shape.size(), 0);
  for (int64_t left = element_count(layout.shape); left > 0; --left) {
    int64_t place = 0;
    for (int axis = 0; axis < index.size(); ++axis) place += index[axis] * layout.strides[axis];
    take(static_cast<std::size_t>(place));
    for (int axis = index.size() - 1; axis >= 0 && ++index[axis] == layout.shape[axis]; --axis)
      index[axis] = 0;
  }
}

/// The elements of the operand `from` in the memory of the layout `to`; gaps are 0.
std::vector<std::byte> moved(const std::vector<std::byte>& memory, const OperandLayout& from,
                             const OperandLayout& to) {
  const std::size_t size = size_of(from.dtype);
  std::vector<std::size_t> places;
  for_each_place(from, [&](std::size_t place) { places.push_back(place); });
  std::vector<std::byte> there(static_cast<std::size_t>(extent(to)) * size);
  std::size_t k = 0;
  for_each_place(to, [&](std::size_t place) {
    std::memcpy(&there[place * size], &memory[places[k++] * size], size);
  });
  return there;
}

/// Numbers whose sums round: a call has the bits that it has with all operands row by row, or in
/// columns. Products by rows and by columns may differ, as a library has a kernel for each.
void check_layouts(test::RandomNumbers& numbers, LibraryCall call) {
  const bool is_product = call.kind == Kind::matmul;
  for (std::size_t k = 0; k < 3; ++k) {
    OperandLayout& operand = call.operands[k];
    if (numbers.below(3) == 0 && k < 2) {  // a broadcast: a gradient of a sum
      operand.strides = Strides::filled(operand.shape.size(), 0);
    } else if (is_product) {
      operand.strides = strides_of(operand.shape);
      const int rows = operand.shape.size() - 2;
      if (numbers.below(2) == 0) {  // gaps between elements
        for (int64_t& stride : operand.strides) stride *= 2;
      } else {
        operand.strides[rows] += numbers.below(3);
        for (int axis = 0; axis < rows; ++axis) operand.strides[axis] *= 3;
      }
    }
    // Nobody has to keep the stride along an axis of one element.
    for (int axis = 0; axis < operand.shape.size(); ++axis) {
      if (operand.shape[axis] == 1 && numbers.below(2) == 0) operand.strides[axis] = 0;
    }
  }
  INFO(described(call));
  LibraryCall plain = call;
  std::vector<std::vector<std::byte>> memory, plain_memory;
  for (std::size_t k = 0; k < 3; ++k) {
    plain.operands[k].strides = strides_of(plain.operands[k].shape);
    const auto count = static_cast<int64_t>(extent(call.operands[k]));
    const Tensor typed =
        tensor(numbers.reals<float>(count)).to(Device{}).to(call.operands[k].dtype);
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size_of(typed.dtype()));
    std::memcpy(bytes.data(), typed.read_bytes(), bytes.size());
    plain_memory.push_back(moved(bytes, call.operands[k], plain.operands[k]));
    memory.push_back(std::move(bytes));
  }
  const auto shift = static_cast<std::size_t>(numbers.below(3));
  CAPTURE(shift);
  const auto got = moved(result_of(call, memory, shift, gpu), call.operands[2], plain.operands[2]);
  const auto wanted = result_of(plain, plain_memory, 0, gpu);
  INFO(first_difference(got, wanted, call.operands[2].dtype));
  const bool is_same = got == wanted;
  CHECK(is_same);
}

}  // namespace

TEST_CASE("layouts and addresses do not decide about the bits of a GPU's products and convolutions",
          "[cuda][no-isa]") {
  if (!has_gpu()) return;
  test::RandomNumbers numbers(13);
  for (const DType dtype : {f32, f64, bf16}) {
    for (int round = 0; round < 40; ++round) check_layouts(numbers, random_product(numbers, dtype));
    for (const Kind kind : {Kind::conv2d, Kind::conv2d_input, Kind::conv2d_weight}) {
      for (int round = 0; round < 25; ++round)
        check_layouts(numbers, random_convolution(numbers, kind, dtype));
    }
  }
}

TEST_CASE("a GPU's products are those of the definition", "[cuda][no-isa]") {
  if (!has_gpu()) return;
  test::RandomNumbers numbers(11);
  for (const DType dtype : {i32, u8, f16, bf16, f32, f64}) {
    for (int round = 0; round < 25; ++round) check_same(numbers, random_product(numbers, dtype));
  }
}

TEST_CASE("a GPU's convolutions and their gradients are those of the definition",
          "[cuda][no-isa]") {
  if (!has_gpu()) return;
  test::RandomNumbers numbers(12);
  for (const Kind kind : {Kind::conv2d, Kind::conv2d_input, Kind::conv2d_weight}) {
    for (const DType dtype : {i32, f32, f64, bf16}) {
      for (int round = 0; round < 25; ++round)
        check_same(numbers, random_convolution(numbers, kind, dtype));
    }
  }
}
