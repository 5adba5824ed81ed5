// What a Variable does: the thread's interpreter has its value, which is a leaf of the tape if it
// is a parameter.
#include "core/variable.h"

#include "autograd/node.h"
#include "core/error.h"
#include "core/interpreter.h"
#include "core/moment.h"
#include "eager/ops/arithmetic.h"

#include <mutex>

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

void assign(const Variable& variable, const Tensor& value) {
  const bool is_bare = !value.is_defined() || !value.tracks_gradient();
  current().set(variable, is_bare ? value : bare_copy(value));
}

/// As Variable::update. `checked` throws unless the new value may be assigned.
void update_with(const Variable& variable, FunctionRef<Tensor(const Tensor&)> next,
                 FunctionRef<void(const Tensor&)> checked) {
  const UpdateScope scope(variable);
  if (is_held()) {
    const Tensor value = next(current().get(variable));
    checked(value);
    return assign(variable, value);
  }
  VariableCell& cell = variable.cell();
  for (;;) {
    Tensor before;
    uint64_t version = 0;
    {
      const std::lock_guard lock(cell.mutex);
      before = cell.value;
      version = cell.version.load(std::memory_order_relaxed);
    }
    Tensor after = next(before);
    checked(after);
    if (after.is_defined() && after.tracks_gradient()) after = bare_copy(after);
    const std::lock_guard lock(cell.mutex);
    if (cell.version.load(std::memory_order_relaxed) != version) continue;
    keep_past({{&cell}});
    cell.swap_value(after);
    return;
  }
}

}  // namespace

Tensor Variable::get() const {
  const bool is_leaf = cell().gradient != nullptr;  // an empty Variable throws here
  Tensor value = current().get(*this);
  if (!is_leaf || !autograd::is_enabled()) return value;
  autograd::Node* node = nullptr;
  Handle<TensorSlot> handle = autograd::make_node(autograd::Node::Kind::leaf, node);
  node->spec = value.spec();
  node->variable = *this;
  return autograd::with_node(value, std::move(handle));
}

void Variable::set(const Tensor& value) const {
  check_same_spec("Variable::set", spec(), value);
  assign(*this, value);
}

void Variable::update(FunctionRef<Tensor(const Tensor&)> next) const {
  update_with(*this, next,
              [this](const Tensor& value) { check_same_spec("Variable::update", spec(), value); });
}

Tensor Variable::grad() const {
  return gradient_of(*this).get();
}

void Variable::set_grad(const Tensor& gradient) const {
  check_same_spec("Variable::set_grad", spec(), gradient);
  assign(gradient_of(*this), gradient);
}

void Variable::add_grad(const Tensor& gradient) const {
  update_with(
      gradient_of(*this),
      [&](const Tensor& before) { return before.is_defined() ? before + gradient : gradient; },
      [this](const Tensor& value) { check_same_spec("Variable::add_grad", spec(), value); });
}

void Variable::clear_grad() const {
  assign(gradient_of(*this), Tensor());
}

Variable Variable::clone() const {
  return tracks_gradient() ? parameter(get()) : Variable(get());
}

}  // namespace nitinol
