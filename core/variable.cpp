#include "core/variable.h"

#include "core/deferred_check.h"
#include "core/error.h"
#include "core/memory_notes.h"

#include <atomic>

namespace nitinol {

namespace {

/// The first ids are for Variables that belong to no call, whichever happens to need them first:
/// the states of default generators.
std::atomic<uint64_t> next_id = first_variable_id;

}  // namespace

void destroy(VariableCell* cell) {
  if (memory_notes::is_on()) [[unlikely]]
    memory_notes::note_assigned(cell->value, {});
  delete cell;
}

void VariableCell::swap_value(Tensor& with) {
  if (memory_notes::is_on()) [[unlikely]]
    memory_notes::note_assigned(value, with);
  std::swap(value, with);
  check.reset();
  has_value.store(value.is_defined(), std::memory_order_release);
  version.fetch_add(1, std::memory_order_release);
}

Variable::Variable(const Tensor& initial) {
  auto* cell = new VariableCell;  // owned by the handle from the next line on
  cell_ = adopt<VariableCell>(cell);
  cell->id = next_id.fetch_add(1, std::memory_order_relaxed);
  cell->spec = initial.spec();
  cell->value = initial.tracks_gradient() ? bare_copy(initial) : initial;
  if (memory_notes::is_on()) [[unlikely]]
    memory_notes::note_assigned({}, cell->value);
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
  Tensor nothing;
  gradient.cell().swap_value(nothing);
  gradient.cell().may_be_empty = true;
  variable.cell().gradient = std::make_unique<const Variable>(std::move(gradient));
  return variable;
}

const Spec& Variable::spec() const {
  return cell().spec;
}

}  // namespace nitinol
