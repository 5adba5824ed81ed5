#include "eager/interpreter.h"

#include "core/backend.h"
#include "core/host_access.h"
#include "core/moment.h"
#include "core/pending.h"
#include "core/variable.h"
#include "eager/launch.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>
#include <variant>

namespace nitinol::eager {
namespace {

Tensor view_of(const Op& op, const Tensor& x, const Attrs& attrs, const Spec& spec) {
  const TensorData& data = x.internals();
  if (data.is_number()) return view_of(op, in_memory(x, spec.device), attrs, spec);
  materialise(data);  // of a call on another thread
  const ViewMap map = op.view(data.spec, data.strides, attrs);
  if (map.is_possible)
    return make_tensor(spec, map.strides, data.offset + map.offset, data.storage);
  return view_of(op, contiguous(x), attrs, spec);
}

Tensor reduce(const Op& op, const Tensor& x, const Attrs& attrs, const Spec& spec) {
  const Tensor out = allocate_tensor(spec);
  if (out.size() == 0) return out;
  if (x.size() == 0) {
    fill(out, bits_of_nothing(op, out.dtype()));
    return out;
  }
  reduce_into(op, in_memory(x, spec.device),
              normalize_axes(op.name, std::get<Dims>(attrs[0]), x.rank()), out);
  return out;
}

Tensor checked(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  const Tensor out = allocate_tensor(spec);
  compute_checked(op, inputs, attrs, out);
  return out;
}

Tensor looked_up(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  const Tensor out = allocate_tensor(spec);
  if (out.size() > 0) look_up_into(op, inputs, attrs, out);
  return out;
}

/// Each input in its window of the result: concat, pad, assignment to a part.
Tensor assemble(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  const Tensor out = allocate_tensor(spec);
  const TensorData& data = out.internals();
  const std::vector<Window> windows = op.windows(spec, data.strides, inputs, attrs);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Window& window = windows[k];
    Spec part = spec;
    part.shape = window.shape;
    copy_into(*inputs[k], make_tensor(part, window.map.strides, window.map.offset, data.storage));
  }
  return out;
}

Tensor call(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  const Tensor out = allocate_tensor(spec);
  if (op.effect != Effect::ordered) {  // which is more than what it computes
    if (out.size() == 0) return out;
    for (const Tensor* input : inputs) {
      if (input->size() != 0 || !op.of_nothing) continue;
      fill(out, bits_of_nothing(op, out.dtype()));  // a matrix product over an inner size of 0
      return out;
    }
  }
  call_into(op, inputs, attrs, out);
  return out;
}

Tensor compute(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  switch (op.kind) {
    case OpKind::elementwise:
    case OpKind::create: {
      Tensor out = allocate_tensor(spec);
      compute_into(op, inputs, out);
      return out;
    }
    case OpKind::view:
      return view_of(op, *inputs[0], attrs, spec);
    case OpKind::reduce:
      return reduce(op, *inputs[0], attrs, spec);
    case OpKind::index:
      if (op.check.emit != nullptr) return checked(op, inputs, attrs, spec);
      if (op.lookup != nullptr) return looked_up(op, inputs, attrs, spec);
      return op.windows != nullptr ? assemble(op, inputs, attrs, spec)
                                   : call(op, inputs, attrs, spec);
    case OpKind::library:
      return call(op, inputs, attrs, spec);
    case OpKind::transfer:
      return transferred(*inputs[0], spec);
    case OpKind::composite:
      break;
  }
  return op.expand(inputs, attrs);
}

/// What is weak and 0-d is a number: computed by the host, of numbers or of what lies on a device.
Tensor compute_number(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  const auto is_number = [](const Tensor* input) { return input->internals().is_number(); };
  Spec here = spec;
  if (std::ranges::all_of(inputs, is_number)) here.device = Device{};
  const Tensor result = compute(op, inputs, attrs, here);
  return is_number(&result) ? result : make_number(spec, first_element(result));
}

}  // namespace

Tensor EagerInterpreter::run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  if (is_anywhere(spec)) return compute_number(op, inputs, attrs, spec);
  return compute(op, inputs, attrs, spec);
}

std::vector<Tensor> EagerInterpreter::run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                                              std::span<const Spec> specs) {
  std::vector<Tensor> results;
  for (const Spec& spec : specs) results.push_back(allocate_tensor(spec));
  call_into(op, inputs, attrs, results);
  return results;
}

// HostElements waits, and it alone.
void EagerInterpreter::read(const Tensor&, const ReadSite&) {}

Tensor EagerInterpreter::get(const Variable& variable) {
  VariableCell& cell = variable.cell();
  {
    const std::lock_guard lock(cell.mutex);
    if (!cell.check) [[likely]]
      return cell.value;
  }
  return cell.settled_value();
}

void EagerInterpreter::set(const Variable& variable, const Tensor& value) {
  settle(value);  // or the old value would be lost if the call that makes this one has failed
  const UpdateScope update(variable);
  VariableCell& cell = variable.cell();
  Tensor held = value;  // then the old value, released after the lock
  const std::lock_guard lock(cell.mutex);
  keep_past({{&cell}});
  cell.swap_value(held);
}

void EagerInterpreter::created(const Tensor&) {}

void EagerInterpreter::guard(const HostValueGuard&) {}

}  // namespace nitinol::eager

namespace nitinol {

Interpreter& base_interpreter() {
  static auto& interpreter = *new eager::EagerInterpreter;  // never destroyed
  return interpreter;
}

Interpreter& current() {
  Interpreter* const top = top_interpreter();
  return top != nullptr ? *top : base_interpreter();
}

}  // namespace nitinol
