#include "eager/apply.h"

#include "core/interpreter.h"

namespace nitinol {

Tensor apply(const Op& op, Inputs inputs, const Attrs& attrs) {
  if (op.kind == OpKind::composite) return op.expand(inputs, attrs);
  return differentiating().run(op, inputs, attrs, op.infer(op, inputs, attrs));
}

Tensor apply(const Op& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs) {
  return apply(op, Inputs(inputs.begin(), inputs.size()), attrs);
}

}  // namespace nitinol
