#include "tests/backends/kernels.h"

#include "core/formula.h"
#include "core/kernel.h"
#include "core/library.h"

namespace nitinol::test {

Kernel reduction(Combine combine, DType input, DType output, Order order, StrideClass inner,
                 StrideClass outer) {
  Op op;
  op.kind = OpKind::reduce;
  op.combine = combine;
  return reduction_kernel(op, input, output, order, inner, outer);
}

void Call::run(const Step& step, Device::Kind kind, Status* status) const {
  executable_for(backend({.kind = kind, .index = 0}), step)
      ->launch({.buffers = buffers,
                .sizes = sizes,
                .strides = strides,
                .offsets = offsets,
                .scalars = scalars,
                .status = status,
                .threads = threads});
}

}  // namespace nitinol::test
