#include "backends/reference/routines.h"

#include "backends/host/convolve.h"
#include "backends/host/cumsum.h"
#include "backends/host/elements.h"
#include "backends/host/gather.h"
#include "backends/host/scatter_add.h"
#include "backends/host/take.h"
#include "backends/host/window_max.h"
#include "core/native.h"

namespace nitinol::reference {
namespace {

using host::Elements;
using host::stored;
using host::value_of;

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
  host::with_number_type(call.operands[2].dtype,
                         [&](auto dtype) { multiply<dtype.value>(call, launch, at); });
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
      case LibraryCall::Kind::gather:
        return host::gather(call_, launch);
      case LibraryCall::Kind::scatter_add_along:
        return host::scatter_add_along(call_, launch);
      case LibraryCall::Kind::cumsum:
        return host::cumsum(call_, launch);
      case LibraryCall::Kind::conv2d:
      case LibraryCall::Kind::conv2d_input:
      case LibraryCall::Kind::conv2d_weight:
        return host::convolve(call_, launch);
      case LibraryCall::Kind::window_max:
        return host::window_max(call_, launch);
      case LibraryCall::Kind::window_max_input:
        return host::window_max_input(call_, launch);
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
