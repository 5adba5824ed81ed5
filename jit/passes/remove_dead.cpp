// Operands come before the nodes that read them, so one walk from the end marks all that is needed,
// and one from the start renumbers it.
#include "jit/passes/remove_dead.h"

#include <algorithm>
#include <utility>

namespace nitinol::jit {

Graph remove_dead(Graph graph) {
  std::vector<bool> is_needed(graph.nodes.size(), false);
  for (const Value output : graph.outputs) is_needed[output] = true;
  for (Value v = static_cast<Value>(graph.nodes.size()); v-- > 0;) {
    const Node& node = graph[v];
    const bool has_checks = node.kind == Node::Kind::op && node.op->has_checks;
    if (has_checks || node.kind == Node::Kind::input) is_needed[v] = true;
    if (!is_needed[v]) continue;
    for (const Value input : node.inputs) is_needed[input] = true;
  }
  if (std::ranges::find(is_needed, false) == is_needed.end()) return graph;

  Value kept = 0;
  std::vector<Value> renamed(graph.nodes.size());
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    if (!is_needed[v]) continue;
    for (Value& input : graph.nodes[v].inputs) input = renamed[input];
    if (kept != v) graph.nodes[kept] = std::move(graph.nodes[v]);
    renamed[v] = kept++;
  }
  graph.nodes.resize(kept);
  for (Value& input : graph.inputs) input = renamed[input];
  for (Value& output : graph.outputs) output = renamed[output];
  return graph;
}

}  // namespace nitinol::jit
