#include "jit/passes/rewrite.h"

#include <utility>

namespace nitinol::jit {

Value append(Graph& graph, Node node) {
  graph.nodes.push_back(std::move(node));
  return static_cast<Value>(graph.nodes.size() - 1);
}

Graph rewrite(Graph in, Rule rule) {
  Graph out;
  out.nodes.reserve(in.nodes.size());
  std::vector<Value> renamed;
  renamed.reserve(in.nodes.size());
  for (Node& node : in.nodes) {
    for (Value& input : node.inputs) input = renamed[input];
    std::optional<Value> stand_in;
    if (node.kind != Node::Kind::input) stand_in = rule(out, node);
    renamed.push_back(stand_in ? *stand_in : append(out, std::move(node)));
  }
  for (const Value input : in.inputs) out.inputs.push_back(renamed[input]);
  for (const Value output : in.outputs) out.outputs.push_back(renamed[output]);
  return out;
}

}  // namespace nitinol::jit
