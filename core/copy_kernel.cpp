#include "core/copy_kernel.h"

namespace nitinol {

Kernel copy_kernel(DType dtype) {
  Kernel kernel;
  kernel.making.name = "copy";
  for (const Role role : {Role::input, Role::output})
    kernel.operands.push_back(
        {.role = role, .dtype = dtype, .inner = StrideClass::one, .alias = -1});
  Stage& stage = kernel.stages.emplace_back();
  const Expr element = argument(stage.program, compute_type(dtype), 0);
  stage.sources.push_back({Source::Kind::operand, 0});
  stage.sinks.push_back({Sink::Kind::store, 1, element.id});
  return kernel;
}

}  // namespace nitinol
