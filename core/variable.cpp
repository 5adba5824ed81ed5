#include "core/variable.h"

#include "core/error.h"
#include "core/interpreter.h"

#include <atomic>

namespace nitinol {

namespace {

std::atomic<uint64_t> next_id = 1;

void check_same_spec(const char* where, const Spec& expected, const Tensor& value) {
  if (value.shape() == expected.shape && value.dtype() == expected.dtype) return;
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

void destroy(VariableCell* cell) {
  delete cell;
}

Variable::Variable(const Tensor& initial) {
  auto* cell = new VariableCell;  // owned by the handle from the next line on
  cell_ = adopt<VariableCell>(cell);
  cell->id = next_id.fetch_add(1, std::memory_order_relaxed);
  cell->spec = initial.spec();
  cell->value = initial.tracks_gradient() ? bare_copy(initial) : initial;
}

UpdateScope::UpdateScope(const Variable& variable) {
  CallOrder& order = variable.cell().order;
  if (!is_base_current() || order.is_mine()) return;
  if (order.lock_within(CallOrder::patience)) order_ = &order;
}

UpdateScope::~UpdateScope() {
  if (order_ != nullptr) order_->unlock();
}

uint64_t next_variable_id() {
  return next_id.load(std::memory_order_relaxed);
}

VariableCell& Variable::cell() const {
  if (!is_defined()) {
    throw Error(ErrorKind::value, {.where = "Variable",
                                   .what = "use of a Variable that holds nothing",
                                   .expected = "a Variable made from a Tensor",
                                   .got = "a default-constructed one",
                                   .fix = "Initialise it: Variable w(zeros({3, 4}))."});
  }
  return *cell_;
}

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

Variable parameter(const Tensor& initial) {
  if (!is_floating(initial.dtype())) {
    throw Error(ErrorKind::dtype, {.where = "parameter",
                                   .what = "gradients flow through floating values only",
                                   .expected = "float16, bfloat16, float32 or float64",
                                   .got = describe(initial),
                                   .fix = "Cast the initial value, or use a plain Variable."});
  }
  Variable variable(initial);
  Variable gradient(initial);
  gradient.cell().value = Tensor();
  gradient.cell().may_be_empty = true;
  variable.cell().gradient = std::make_unique<const Variable>(std::move(gradient));
  return variable;
}

const Spec& Variable::spec() const {
  return cell().spec;
}

}  // namespace nitinol
