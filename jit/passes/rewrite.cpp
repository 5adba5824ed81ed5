#include "jit/passes/rewrite.h"

#include "core/graph_infer.h"

#include <array>
#include <utility>

namespace nitinol::jit {

std::vector<bool> that_may_fail(const Graph& graph, std::size_t count) {
  std::vector<bool> may_fail(count);
  for (Value v = 0; v < count; ++v)
    may_fail[v] = has_effect(graph[v]) && graph[v].op->effect == Effect::may_fail;
  return may_fail;
}

void mark_operands(const Graph& graph, std::vector<bool>& is_marked) {
  for (auto v = static_cast<Value>(is_marked.size()); v-- > 0;) {  // operands come earlier
    if (!is_marked[v]) continue;
    for (const Value input : graph[v].inputs) is_marked[input] = true;
    for (Value part = 1; part <= parts_of(graph, v).size(); ++part) is_marked[v + part] = true;
  }
}

bool is_elementwise(const Node& node) {
  return node.kind == Node::Kind::op && node.op->kind == OpKind::elementwise && !has_effect(node);
}

Node applied(const Graph& graph, const Op& op, Value input, Attrs attrs) {
  Node node;
  node.op = &op;
  node.inputs = {input};
  node.attrs = std::move(attrs);
  const Tensor operand = placeholder(graph[input]);
  node.spec = inferred_spec(node, std::array{&operand});
  return node;
}

Value append(Graph& graph, Node node) {
  graph.nodes.push_back(std::move(node));
  return static_cast<Value>(graph.nodes.size() - 1);
}

Graph rewrite(Graph in, Rule rule) {
  Graph out;
  // With room for what rules add, or all nodes would move when the last of them comes.
  out.nodes.reserve(in.nodes.size() + in.nodes.size() / 4 + 8);
  std::vector<Value> renamed;
  renamed.reserve(in.nodes.size());
  for (Node& node : in.nodes) {
    for (Value& input : node.inputs) input = renamed[input];
    std::optional<Value> stand_in;
    const uint32_t origin = node.origin;
    const uint32_t repetition = node.repetition;
    const std::size_t first = out.nodes.size();
    if (node.kind != Node::Kind::input) stand_in = rule(out, node);
    renamed.push_back(stand_in ? *stand_in : append(out, std::move(node)));
    for (std::size_t v = first; v < out.nodes.size(); ++v) {
      if (out.nodes[v].origin == no_origin) out.nodes[v].origin = origin;
      if (out.nodes[v].repetition == 0) out.nodes[v].repetition = repetition;
    }
  }
  for (const Value input : in.inputs) out.inputs.push_back(renamed[input]);
  for (const Value output : in.outputs) out.outputs.push_back(renamed[output]);
  return out;
}

Graph drop(Graph graph, Dropping rule) {
  std::vector<Value> renamed(graph.nodes.size());
  Value kept = 0;
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    Node& node = graph.nodes[v];
    for (Value& input : node.inputs) input = renamed[input];
    std::optional<Value> stand_in;
    if (node.kind != Node::Kind::input) stand_in = rule(graph, v, kept);
    renamed[v] = stand_in ? *stand_in : kept;
    if (stand_in) continue;
    if (kept != v) graph.nodes[kept] = std::move(node);
    ++kept;
  }
  graph.nodes.resize(kept);
  for (Value& input : graph.inputs) input = renamed[input];
  for (Value& output : graph.outputs) output = renamed[output];
  return graph;
}

}  // namespace nitinol::jit
