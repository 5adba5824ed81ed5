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
  const std::shared_ptr<const Executable> executable =
      executable_for(backend({.kind = kind, .index = 0}), step);
  if (!is_specialised) return executable->launch(launch(status));
  const std::vector<void*> none(buffers.size(), nullptr);
  Launch example = launch();
  example.buffers = none;
  const std::unique_ptr<const Executable> specialised = executable->specialise(example);
  (specialised ? *specialised : *executable).launch(launch(status));
}

}  // namespace nitinol::test
