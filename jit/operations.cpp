#include "jit/operations.h"

#include "core/error.h"
#include "core/kernel.h"
#include "core/library.h"
#include "core/tensor.h"
#include "fusion/one_op.h"

#include <cstdint>
#include <vector>

namespace nitinol::jit {
namespace {

double counted(const Op& op, Inputs inputs, const Attrs& attrs, std::span<const Spec> results) {
  const Spec& spec = results.front();
  if (op.call_all != nullptr) return nitinol::operations_of(op.call_all(inputs, attrs, results));
  if (op.call != nullptr) return nitinol::operations_of(op.call(inputs, attrs, spec));
  if (op.kind == OpKind::reduce && !inputs.empty())
    return static_cast<double>(element_count(inputs.front()->shape()));
  if (op.formula.emit == nullptr || is_anywhere(spec)) return 0;
  const int64_t count = element_count(spec.shape);
  const Tensor result = make_tensor(spec, strides_of(spec.shape), 0, {});
  return nitinol::operations_of(fusion::lower_op(op, inputs, attrs, result), {&count, 1});
}

}  // namespace

double operations_of(const Op& op, std::span<const Spec> inputs, const Attrs& attrs,
                     std::span<const Spec> results) {
  if (results.empty() || op.kind == OpKind::view || op.kind == OpKind::composite) return 0;
  std::vector<Tensor> operands;
  std::vector<const Tensor*> pointers;
  for (const Spec& spec : inputs) {
    operands.push_back(is_anywhere(spec) ? make_number(spec, 0)
                                         : make_tensor(spec, strides_of(spec.shape), 0, {}));
  }
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  try {
    return counted(op, pointers, attrs, results);
  } catch (const Error&) {  // a layout that it refuses
    return 0;
  }
}

}  // namespace nitinol::jit
