#include "jit/op_by_op.h"

#include "core/interpreter.h"

#include <utility>

namespace nitinol::jit {
namespace {

std::vector<Spec> specs_of(std::span<const Node> parts) {
  std::vector<Spec> specs;
  for (const Node& part : parts) specs.push_back(part.spec);
  return specs;
}

void set_inputs(OpByOp& run, const Graph& graph, std::span<const Tensor> inputs) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) run.set(graph.inputs[i], inputs[i]);
}

}  // namespace

void OpByOp::compute(Value v) {
  const Node& node = graph_[v];
  if (node.kind == Node::Kind::constant) {
    values_[v] = node.constant;
    return;
  }
  if (node.kind == Node::Kind::part) {
    values_[v] = parts_[static_cast<std::size_t>(std::get<int64_t>(node.attrs[0]))];
    return;
  }
  std::vector<const Tensor*> inputs;
  for (const Value input : node.inputs) inputs.push_back(&values_[input]);
  Interpreter& eager = base_interpreter();
  if (has_parts(node))
    parts_ = eager.run_all(*node.op, inputs, node.attrs, specs_of(parts_of(graph_, v)));
  else
    values_[v] = eager.run(*node.op, inputs, node.attrs, node.spec);
}

std::vector<Tensor> values_op_by_op(const Graph& graph, std::span<const Tensor> inputs) {
  OpByOp run(graph, graph.nodes.size());
  set_inputs(run, graph, inputs);
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    if (graph[v].kind != Node::Kind::input) run.compute(v);
  }
  return run.take();
}

std::vector<Tensor> outputs_op_by_op(const Graph& graph, std::span<const Tensor> inputs) {
  OpByOp run(graph, graph.nodes.size());
  set_inputs(run, graph, inputs);
  std::vector<int> uses = use_counts(graph);
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    if (graph[v].kind != Node::Kind::input) run.compute(v);
    for (const Value operand : graph[v].inputs) {
      if (--uses[operand] == 0) run.drop(operand);
    }
  }
  std::vector<Tensor> outputs;
  for (const Value output : graph.outputs) outputs.push_back(run[output]);
  return outputs;
}

}  // namespace nitinol::jit
