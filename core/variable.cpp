#include "core/variable.h"

#include "core/error.h"
#include "core/interpreter.h"

#include <atomic>

namespace nitinol {

void destroy(VariableCell* cell) {
  delete cell;
}

Variable::Variable(const Tensor& initial) {
  static std::atomic<uint64_t> next_id = 1;
  auto* cell = new VariableCell;  // owned by the handle from the next line on
  cell_ = Handle<VariableCell>::adopt(cell);
  cell->id = next_id.fetch_add(1, std::memory_order_relaxed);
  cell->spec = initial.spec();
  cell->value = initial;
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
  return current().get(*this);
}

void Variable::set(const Tensor& value) const {
  const Spec& expected = spec();
  if (value.shape() != expected.shape || value.dtype() != expected.dtype) {
    throw Error(value.shape() != expected.shape ? ErrorKind::shape : ErrorKind::dtype,
                {.where = "Variable::set",
                 .what = "a Variable keeps its shape and dtype",
                 .expected = describe(expected),
                 .got = describe(value),
                 .fix = "Make a new Variable, or reshape or cast the value."});
  }
  current().set(*this, value);
}

const Spec& Variable::spec() const {
  return cell().spec;
}

}  // namespace nitinol
