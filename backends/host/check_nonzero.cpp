#include "backends/host/check_nonzero.h"

#include "backends/host/split.h"
#include "core/error.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace nitinol::host {
namespace {

/// Copies n elements, steps in bytes, but 1 for 0; false if there was one. A failed Plan runs to
/// its end before it is discarded, and must not divide by zero on the way: that would be a signal.
using CopyRow = bool (*)(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n);

template <class T>
bool copy_with(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n) {
  T zeros = 0;
  for (int64_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, from + i * from_step, sizeof(T));
    const T is_zero = value == 0 ? 1 : 0;
    zeros |= is_zero;
    value = static_cast<T>(value + is_zero);
    std::memcpy(to + i * to_step, &value, sizeof(T));
  }
  return zeros == 0;
}

template <class T>
bool copy_row(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n) {
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  if (from_step == size && to_step == size) return copy_with<T>(from, size, to, size, n);
  return copy_with<T>(from, from_step, to, to_step, n);
}

CopyRow copy_row_of(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return copy_row<uint8_t>;
    case 2:
      return copy_row<uint16_t>;
    case 4:
      return copy_row<uint32_t>;
    default:
      return copy_row<uint64_t>;
  }
}

/// Byte offset of row number `row` (all axes but the last).
int64_t row_offset(const OperandLayout& operand, int64_t row) {
  int64_t offset = 0;
  for (int axis = operand.shape.size() - 2; axis >= 0; --axis) {
    offset += row % operand.shape[axis] * operand.strides[axis];
    row /= operand.shape[axis];
  }
  return offset * static_cast<int64_t>(size_of(operand.dtype));
}

}  // namespace

void check_nonzero(const LibraryCall& call, const Launch& launch) {
  const OperandLayout &in = call.operands[0], &out = call.operands[1];
  const int rank = in.shape.size();
  const int64_t count = element_count(in.shape);
  if (count == 0) return;
  const int64_t columns = rank == 0 ? 1 : in.shape.back();
  const auto size = static_cast<int64_t>(size_of(in.dtype));
  const int64_t from_step = rank == 0 ? 0 : in.strides.back() * size;
  const int64_t to_step = rank == 0 ? 0 : out.strides.back() * size;
  const CopyRow copy = copy_row_of(in.dtype);
  std::atomic<bool> has_zero = false;
  const int64_t grain = std::max<int64_t>(32768 / columns, 1);
  split(count / columns, grain, launch.threads, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const char* from = static_cast<const char*>(launch.buffers[0]) + row_offset(in, row);
      char* to = static_cast<char*>(launch.buffers[1]) + row_offset(out, row);
      if (!copy(from, from_step, to, to_step, columns)) has_zero = true;
    }
  });
  if (!has_zero) return;
  if (launch.status == nullptr) {
    throw Error(ErrorKind::value, {.where = "divide", .what = "an integer is divided by zero"});
  }
  launch.status->code = Status::division_by_zero;
}

}  // namespace nitinol::host
