// What a Variable does by way of interpreters: autograd's, and what that runs.
#include "core/variable.h"

#include "core/error.h"
#include "core/interpreter.h"

namespace nitinol {
namespace {

void check_same_spec(const char* where, const Spec& expected, const Tensor& value) {
  if (value.shape() == expected.shape && value.dtype() == expected.dtype) {
    if (value.device() == expected.device || value.spec().is_weak) return;
    throw Error(
        ErrorKind::device,
        {.where = where,
         .what = "a Variable keeps its device, and so does its gradient",
         .expected = describe(expected.device),
         .got = describe(value) + " on " + describe(value.device()),
         .fix = "Move the value, x.to(device), or make the model there: nn::to(model, device)."});
  }
  throw Error(value.shape() != expected.shape ? ErrorKind::shape : ErrorKind::dtype,
              {.where = where,
               .what = "a Variable keeps its shape and dtype, and so does its gradient",
               .expected = describe(expected),
               .got = describe(value),
               .fix = "Make a new Variable, or reshape or cast the value."});
}

/// The Variable that the gradients of `variable` gather in.
const Variable& gradient_of(const Variable& variable) {
  const VariableCell& cell = variable.cell();
  if (cell.gradient == nullptr) {
    throw Error(ErrorKind::value, {.where = "Variable::grad",
                                   .what = "a Variable that tracks no gradient",
                                   .expected = "one made by parameter()",
                                   .got = "Variable " + describe(variable.spec()),
                                   .fix = "Make it with parameter(initial)."});
  }
  return *cell.gradient;
}

}  // namespace

Tensor Variable::get() const {
  static_cast<void>(cell());  // an empty Variable throws here
  return differentiating().get(*this);
}

void Variable::set(const Tensor& value) const {
  check_same_spec("Variable::set", spec(), value);
  differentiating().set(*this, value);
}

Tensor Variable::grad() const {
  return differentiating().get(gradient_of(*this));
}

void Variable::set_grad(const Tensor& gradient) const {
  check_same_spec("Variable::set_grad", spec(), gradient);
  differentiating().set(gradient_of(*this), gradient);
}

void Variable::clear_grad() const {
  differentiating().set(gradient_of(*this), Tensor());
}

Variable Variable::clone() const {
  return tracks_gradient() ? parameter(get()) : Variable(get());
}

}  // namespace nitinol
