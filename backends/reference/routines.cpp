#include "backends/reference/routines.h"

#include "backends/host/check_nonzero.h"
#include "backends/host/convert.h"
#include "backends/host/scatter_add.h"
#include "backends/host/take.h"
#include "core/error.h"
#include "core/native.h"

#include <fmt/format.h>

#include <type_traits>

namespace nitinol::reference {
namespace {

template <DType dtype>
struct Elements;  // how elements of a dtype are stored and computed with
// clang-format off
template <> struct Elements<u8> { using Stored = uint8_t; using Value = uint8_t; };
template <> struct Elements<i8> { using Stored = int8_t; using Value = int8_t; };
template <> struct Elements<i16> { using Stored = int16_t; using Value = int16_t; };
template <> struct Elements<i32> { using Stored = int32_t; using Value = int32_t; };
template <> struct Elements<i64> { using Stored = int64_t; using Value = int64_t; };
template <> struct Elements<f16> { using Stored = uint16_t; using Value = float; };
template <> struct Elements<bf16> { using Stored = uint16_t; using Value = float; };
template <> struct Elements<f32> { using Stored = float; using Value = float; };
template <> struct Elements<f64> { using Stored = double; using Value = double; };
// clang-format on

template <DType dtype>
typename Elements<dtype>::Value value_of(typename Elements<dtype>::Stored stored) {
  if constexpr (dtype == f16)
    return host::half_to_float(stored);
  else if constexpr (dtype == bf16)
    return host::bfloat_to_float(stored);
  else
    return stored;
}

template <DType dtype>
typename Elements<dtype>::Stored stored(typename Elements<dtype>::Value value) {
  if constexpr (dtype == f16)
    return host::float_to_half(value);
  else if constexpr (dtype == bf16)
    return host::float_to_bfloat(value);
  else
    return value;
}

/// One matrix of the batch: offsets of its three operands.
struct Offsets {
  int64_t a = 0, b = 0, c = 0;
};

template <DType dtype>
void multiply(const LibraryCall& call, const Launch& launch, const Offsets& at) {
  using Stored = typename Elements<dtype>::Stored;
  const OperandLayout &a = call.operands[0], &b = call.operands[1], &c = call.operands[2];
  const int row = c.shape.size() - 2, column = row + 1;
  const auto* a_data = static_cast<const Stored*>(launch.buffers[0]) + at.a;
  const auto* b_data = static_cast<const Stored*>(launch.buffers[1]) + at.b;
  auto* c_data = static_cast<Stored*>(launch.buffers[2]) + at.c;
  for (int64_t i = 0; i < c.shape[row]; ++i) {
    for (int64_t j = 0; j < c.shape[column]; ++j) {
      typename Elements<dtype>::Value sum = 0;
      for (int64_t k = 0; k < a.shape[column]; ++k) {
        sum = native::add(
            sum, native::mul(value_of<dtype>(a_data[i * a.strides[row] + k * a.strides[column]]),
                             value_of<dtype>(b_data[k * b.strides[row] + j * b.strides[column]])));
      }
      c_data[i * c.strides[row] + j * c.strides[column]] = stored<dtype>(sum);
    }
  }
}

void multiply_one(const LibraryCall& call, const Launch& launch, const Offsets& at) {
  switch (call.operands[2].dtype) {
    case u8:
      return multiply<u8>(call, launch, at);
    case i8:
      return multiply<i8>(call, launch, at);
    case i16:
      return multiply<i16>(call, launch, at);
    case i32:
      return multiply<i32>(call, launch, at);
    case i64:
      return multiply<i64>(call, launch, at);
    case f16:
      return multiply<f16>(call, launch, at);
    case bf16:
      return multiply<bf16>(call, launch, at);
    case f32:
      return multiply<f32>(call, launch, at);
    case f64:
      return multiply<f64>(call, launch, at);
    case boolean:
      break;
  }
  throw Error(ErrorKind::unsupported, {.where = "matmul", .what = "bool has no product"});
}

void multiply_all(const LibraryCall& call, const Launch& launch, int axis, const Offsets& at) {
  const OperandLayout &a = call.operands[0], &b = call.operands[1], &c = call.operands[2];
  if (axis == c.shape.size() - 2) return multiply_one(call, launch, at);
  for (int64_t i = 0; i < c.shape[axis]; ++i) {
    multiply_all(
        call, launch, axis + 1,
        {at.a + i * a.strides[axis], at.b + i * b.strides[axis], at.c + i * c.strides[axis]});
  }
}

class Routine final : public Executable {
 public:
  explicit Routine(LibraryCall call) : call_(std::move(call)) {}
  void launch(const Launch& launch) const override {
    switch (call_.kind) {
      case LibraryCall::Kind::matmul:
        return multiply_all(call_, launch, 0, {});
      case LibraryCall::Kind::take:
        return host::take_rows(call_, launch);
      case LibraryCall::Kind::scatter_add:
        return host::scatter_add(call_, launch);
      case LibraryCall::Kind::check_nonzero:
        return host::check_nonzero(call_, launch);
    }
  }

 private:
  const LibraryCall call_;
};

}  // namespace

std::unique_ptr<Executable> make_routine(const LibraryCall& call) {
  return std::make_unique<Routine>(call);
}

}  // namespace nitinol::reference
