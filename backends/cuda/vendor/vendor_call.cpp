#include "backends/cuda/vendor/vendor_call.h"

#include "backends/cuda/runtime/executables.h"
#include "backends/cuda/runtime/gpu.h"
#include "backends/cuda/runtime/ranges.h"
#include "backends/cuda/vendor/layout_copy.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace nitinol::cuda {

std::optional<int> number_of(DType dtype, const TypeNumbers& numbers) {
  if (dtype == f32) return numbers.f32;
  if (dtype == f64) return numbers.f64;
  if (dtype == f16) return numbers.f16;
  if (dtype == bf16) return numbers.bf16;
  return std::nullopt;
}
namespace {

/// From the first element to behind the last.
std::size_t bytes_of(const OperandLayout& operand) {
  int64_t extent = 1;
  for (int axis = 0; axis < operand.shape.size(); ++axis)
    extent += (operand.shape[axis] - 1) * operand.strides[axis];
  return static_cast<std::size_t>(extent) * size_of(operand.dtype);
}

constexpr std::size_t result = 2;

}  // namespace

VendorCall::VendorCall(Gpu& gpu, const LibraryCall& call, std::string_view library,
                       std::string_view where)
    : gpu_(gpu), call_(call), given_(call), library_(library), where_(where) {}

VendorCall::~VendorCall() = default;

void VendorCall::expect(int status, const char* what, std::string_view words) const {
  if (status == 0) return;
  gpu_.expect_alive();  // a lost device says more than a library does
  throw Error(ErrorKind::device,
              {.where = std::string(where_),
               .what = fmt::format("{}: {} failed with status {}{}", library_, what, status,
                                   words.empty() ? "" : fmt::format(" ({})", words))});
}

const void* VendorCall::one() const {
  static constexpr float single = 1;
  static constexpr double twice = 1;
  return call_.operands[result].dtype == f64 ? static_cast<const void*>(&twice) : &single;
}

const void* VendorCall::zero() const {
  static constexpr double zero = 0;  // of either type
  return &zero;
}

bool VendorCall::is_copied(std::size_t k) const {
  const OperandLayout &from = call_.operands[k], &to = given_.operands[k];
  for (int axis = 0; axis < from.shape.size(); ++axis) {
    if (from.shape[axis] != 1 && from.strides[axis] != to.strides[axis]) return true;
  }
  return false;
}

const LayoutCopy& VendorCall::copy(std::size_t k) const {
  const std::lock_guard lock(mutex_);
  if (!copies_[k]) {
    const bool is_result = k == result;
    const OperandLayout& from = is_result ? given_.operands[k] : call_.operands[k];
    const Strides& to = is_result ? call_.operands[k].strides : given_.operands[k].strides;
    copies_[k] = std::make_unique<LayoutCopy>(gpu_, from, to);
  }
  return *copies_[k];
}

const Executable& VendorCall::own() const {
  const std::lock_guard lock(mutex_);
  if (!own_) own_ = make_routine(gpu_, call_);
  return *own_;
}

std::string VendorCall::describe(std::span<const Launch> examples) const {
  if (is_refused_.load(std::memory_order_relaxed)) return own().describe(examples);
  std::string text = fmt::format("{}, {}", library_, algorithm());
  constexpr std::array names = {"operand 1", "operand 2", "result"};
  std::string copied;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (is_copied(k)) copied += fmt::format("{}{}", copied.empty() ? "" : ", ", names[k]);
  }
  return copied.empty() ? text : fmt::format("{}, packed: {}", text, copied);
}

void VendorCall::launch(const Launch& launch) const {
  const NamedRange range(name_of(call_.kind));
  if (!is_refused_.load(std::memory_order_relaxed)) {
    Buffers at = {};
    std::array<StorageHandle, 3> memory;
    for (std::size_t k = 0; k < at.size(); ++k) {
      at[k] = launch.buffers[k];
      if (!is_copied(k) && reinterpret_cast<uintptr_t>(at[k]) % alignment == 0) continue;
      memory[k] = gpu_.scratch(bytes_of(given_.operands[k]));
      at[k] = memory[k]->data;
      if (k != result) copy(k).run(launch.buffers[k], at[k]);
    }
    if (run(at)) {
      if (memory[result]) copy(result).run(at[result], launch.buffers[result]);
      return;
    }
    is_refused_ = true;
  }
  own().launch(launch);
}

}  // namespace nitinol::cuda
