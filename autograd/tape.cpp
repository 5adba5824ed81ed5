// What apply() asks after an op has been run: how its result is differentiated. It sees the op's
// own operands, whatever views of them the interpreter was given (eager/channels_last.h), and it
// needs to know neither tracing nor transactions: the recorder records the ops of a backward pass
// like any others.
#include "autograd/node.h"
#include "core/gradient_notes.h"
#include "core/interpreter.h"

namespace nitinol {
namespace autograd {
namespace {

/// The node of an application whose result, or first result, is `result`.
Handle<TensorSlot> application(const Op& op, Inputs inputs, const Attrs& attrs,
                               const Tensor& result, Node*& node) {
  Handle<TensorSlot> handle = make_node(Node::Kind::op, node);
  node->op = &op;
  node->attrs = attrs;
  node->spec = result.spec();
  node->trace = result.internals().trace;
  node->value = result.internals().value;
  node->inputs.reserve(inputs.size());
  node->input_specs.reserve(inputs.size());
  node->saved.resize(inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    node->inputs.push_back(inputs[k]->internals().gradient);
    node->input_specs.push_back(inputs[k]->spec());
    if (op.gradient.looks_at(k)) node->saved[k] = *inputs[k];
  }
  return handle;
}

void link(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& result) {
  Node* node = nullptr;
  Handle<TensorSlot> handle = application(op, inputs, attrs, result, node);
  if (op.gradient.looks_at_result) node->result = bare_copy(result);
  result.internals().gradient = std::move(handle);
}

}  // namespace
}  // namespace autograd

bool notes_gradients() {
  return autograd::is_enabled() || autograd::thread_tape::captures != nullptr;
}

void note_gradient(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& result) {
  if (op.gradient.rule == nullptr) return;
  autograd::note_use(inputs);
  if (!autograd::is_enabled()) return;
  // An op may give back its operand, which is linked already.
  if (is_floating(result.dtype()) && !result.tracks_gradient())
    autograd::link(op, inputs, attrs, result);
}

void note_gradients(const Op& op, Inputs inputs, const Attrs& attrs, std::span<Tensor> results) {
  if (op.gradient.rule == nullptr) return;
  autograd::note_use(inputs);
  if (!autograd::is_enabled()) return;
  autograd::Node* node = nullptr;
  const Handle<TensorSlot> handle = autograd::application(op, inputs, attrs, results[0], node);
  node->output_count = static_cast<int>(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (is_floating(results[i].dtype())) results[i] = autograd::as_output(results[i], handle, i);
  }
}

}  // namespace nitinol
