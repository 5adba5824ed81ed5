#include "autograd/custom.h"

#include "autograd/sweep.h"
#include "core/error.h"
#include "tracer/transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace nitinol::autograd {
namespace {

/// Values of Variables as a function first read them.
using Reads = std::unordered_map<const VariableCell*, std::pair<Variable, Tensor>>;

/// Notes what is read on the way.
class Noting final : public tracer::Transaction {
 public:
  Reads reads;
  Tensor get(const Variable& variable) override {
    Tensor value = Transaction::get(variable);
    if (assigned(variable) == nullptr) {
      reads.try_emplace(&variable.cell(), variable, value);
    }
    return value;
  }
};

/// Reads what was noted; assignments are forgotten.
class Repeating final : public tracer::Transaction {
 public:
  explicit Repeating(const Reads& reads) : reads_(reads) {}
  Tensor get(const Variable& variable) override {
    const auto found = reads_.find(&variable.cell());
    const bool is_first = assigned(variable) == nullptr && found != reads_.end();
    return is_first ? found->second.second : Transaction::get(variable);
  }

 private:
  const Reads& reads_;
};

std::vector<Handle<TensorSlot>> nodes_of(const std::vector<Tensor>& tensors) {
  std::vector<Handle<TensorSlot>> nodes;
  for (const Tensor& tensor : tensors) nodes.push_back(tensor.internals().gradient);
  return nodes;
}

std::vector<Spec> specs_of(const std::vector<Tensor>& tensors) {
  std::vector<Spec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

/// Runs f again and goes back through what it does.
std::vector<Contribution> run_again(const TensorFunction& f, const std::vector<Tensor>& arguments,
                                    const Reads& reads, const CustomCall& call) {
  // Differentiable gradients need the arguments' own tape; otherwise the arguments are the ends.
  Arguments leaves;
  std::vector<Tensor> inputs;
  std::vector<const Node*> ends;
  for (const Tensor& argument : arguments) {
    const bool is_tracked = static_cast<bool>(argument.internals().gradient);
    inputs.push_back(is_tracked ? leaves.add(argument) : argument);
    if (is_tracked) ends.push_back(node_of(inputs.back()));
  }
  std::vector<Tensor> results;
  Repeating repeating(reads);
  {
    const InterpreterScope scope(repeating);
    const EnabledScope enabled(true);
    results = f(inputs);
  }
  Sweep sweep(
      {.keeps_tape = call.builds_tape, .builds_tape = call.builds_tape, .keeps_parts = true});
  sweep.end_at(ends);
  {
    const EnabledScope enabled(call.builds_tape);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (call.gradients[i].is_defined() && results[i].tracks_gradient()) {
        sweep.add(results[i].internals().gradient, call.gradients[i]);
      }
    }
  }
  sweep.run();
  std::vector<Contribution> contributions;
  for (const Sweep::Part& part : sweep.parts()) {
    std::size_t input = 0;
    while (part.node != nullptr && node_of(inputs[input]) != part.node) ++input;
    contributions.push_back({input, part.gradient, part.variable});
  }
  return contributions;
}

}  // namespace

std::vector<Tensor> checkpointed(const TensorFunction& f, const std::vector<Tensor>& arguments) {
  if (!is_enabled()) return f(arguments);
  Noting noting;
  std::vector<Tensor> results;
  {
    const InterpreterScope scope(noting);
    const EnabledScope disabled(false);
    results = f(arguments);
  }
  noting.commit();
  const bool is_tracked = std::ranges::any_of(arguments, &Tensor::tracks_gradient) ||
                          std::ranges::any_of(noting.reads, [](const auto& read) {
                            return read.second.first.tracks_gradient();
                          });
  if (!is_tracked) return results;
  Node* node = nullptr;
  const Handle<TensorSlot> handle = make_node(Node::Kind::custom, node);
  node->name = "checkpoint";
  node->inputs = nodes_of(arguments);
  node->input_specs = specs_of(arguments);
  node->output_count = static_cast<int>(results.size());
  node->reads_variables = true;
  node->rule = [f, arguments, reads = std::move(noting.reads)](const CustomCall& call) {
    return run_again(f, arguments, reads, call);
  };
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (is_floating(results[i].dtype())) results[i] = as_output(results[i], handle, i);
  }
  return results;
}

Tensor customized(const CustomFunction& f, const std::vector<Tensor>& arguments) {
  std::pair<Tensor, Pull> made;
  const bool is_tracked = std::ranges::any_of(arguments, &Tensor::tracks_gradient);
  if (!is_enabled() || !is_tracked) return f(arguments).first;
  {
    const EnabledScope disabled(false);
    made = f(arguments);
  }
  Node* node = nullptr;
  const Handle<TensorSlot> handle = make_node(Node::Kind::custom, node);
  node->name = "custom_gradient";
  node->inputs = nodes_of(arguments);
  node->input_specs = specs_of(arguments);
  node->rule = [f, arguments, pull = std::move(made.second)](const CustomCall& call) {
    // To be differentiated itself, the rule must see tensors that are tracked: f runs again.
    const std::vector<Tensor> gradients =
        call.builds_tape ? f(arguments).second(call.gradients[0]) : pull(call.gradients[0]);
    if (gradients.size() != arguments.size()) {
      throw Error(ErrorKind::value,
                  {.where = "custom_gradient",
                   .what = "the gradient rule does not fit its function",
                   .expected = fmt::format("{} gradients, one for each argument", arguments.size()),
                   .got = fmt::format("{}", gradients.size()),
                   .fix = "Return an undefined Tensor() for arguments without a gradient."});
    }
    std::vector<Contribution> contributions;
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      contributions.push_back({k, gradients[k], {}});
    }
    return contributions;
  };
  return is_floating(made.first.dtype()) ? as_output(made.first, handle, 0) : made.first;
}

}  // namespace nitinol::autograd
