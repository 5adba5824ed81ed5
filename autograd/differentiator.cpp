// The interpreter on top of all others: it has the one below do the work, and hangs a Node on the
// result where a gradient can flow. Lying on top, it needs to know neither tracing nor
// transactions; the recorder, below, records the ops of a backward pass like any others.
#include "autograd/node.h"
#include "core/interpreter.h"
#include "eager/channels_last.h"

namespace nitinol {
namespace autograd {
namespace {

bool is_tracked(Inputs inputs) {
  for (const Tensor* input : inputs) {
    if (input->internals().gradient) return true;
  }
  return false;
}

void link(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& result) {
  Node* node = nullptr;
  Handle<TensorSlot> handle = make_node(Node::Kind::op, node);
  node->op = &op;
  node->attrs = attrs;
  node->spec = result.spec();
  node->inputs.reserve(inputs.size());
  node->input_specs.reserve(inputs.size());
  node->saved.resize(op.gradient.looks_at_inputs != 0 ? inputs.size() : 0);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    node->inputs.push_back(inputs[k]->internals().gradient);
    node->input_specs.push_back(inputs[k]->spec());
    if (op.gradient.looks_at(k)) node->saved[k] = *inputs[k];
  }
  if (op.gradient.looks_at_result) node->result = bare_copy(result);
  result.internals().gradient = std::move(handle);
}

class Differentiator final : public Interpreter {
 public:
  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override {
    Tensor result = eager::run_in_layout(op, inputs, attrs, spec);
    if (op.gradient.rule == nullptr || !is_enabled() || !is_tracked(inputs)) return result;
    // An op may give back its operand, which is linked already.
    if (is_floating(spec.dtype) && !result.internals().gradient) link(op, inputs, attrs, result);
    return result;
  }
  void read(const Tensor& tensor, const ReadSite& site) override { current().read(tensor, site); }
  Tensor get(const Variable& variable) override {
    Tensor value = current().get(variable);
    if (!is_enabled() || variable.cell().gradient == nullptr) return value;
    Node* node = nullptr;
    Handle<TensorSlot> handle = make_node(Node::Kind::leaf, node);
    node->spec = value.spec();
    node->variable = variable;
    return with_node(value, std::move(handle));
  }
  void set(const Variable& variable, const Tensor& value) override {
    const bool is_bare = !value.is_defined() || !value.internals().gradient;
    current().set(variable, is_bare ? value : bare_copy(value));
  }
  void created(const Tensor& tensor) override { current().created(tensor); }
  void guard(const HostValueGuard& guard) override { current().guard(guard); }
};

}  // namespace
}  // namespace autograd

Interpreter& differentiating() {
  static auto& differentiator = *new autograd::Differentiator;  // never destroyed
  return differentiator;
}

}  // namespace nitinol
