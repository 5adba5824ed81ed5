#include "eager/apply.h"

#include "core/interpreter.h"

#include <algorithm>

namespace nitinol {
namespace {

/// True if no trace and no tape is to see the ops that a composite expands to.
bool is_unwatched(Inputs inputs) {
  const auto tracks = [](const Tensor* input) { return input->tracks_gradient(); };
  return is_base_current() && std::ranges::none_of(inputs, tracks);
}

Tensor apply_composite(const Op& op, Inputs inputs, const Attrs& attrs) {
  if (op.fused != nullptr && is_unwatched(inputs)) {
    if (Tensor result = op.fused(op, inputs, attrs); result.is_defined()) return result;
  }
  return op.expand(inputs, attrs);
}

}  // namespace

Tensor apply(const Op& op, Inputs inputs, const Attrs& attrs) {
  if (op.kind == OpKind::composite) return apply_composite(op, inputs, attrs);
  return differentiating().run(op, inputs, attrs, op.infer(op, inputs, attrs));
}

Tensor apply(const Op& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs) {
  return apply(op, Inputs(inputs.begin(), inputs.size()), attrs);
}

}  // namespace nitinol
