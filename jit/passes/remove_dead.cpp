// Operands come before the nodes that read them, so one walk from the end marks all that is needed,
// and one from the start renumbers it.
#include "jit/passes/remove_dead.h"

#include "jit/passes/rewrite.h"

#include <algorithm>
#include <utility>

namespace nitinol::jit {

Graph remove_dead(Graph graph) {
  std::vector<bool> is_needed(graph.nodes.size(), false);
  for (const Value output : graph.outputs) is_needed[output] = true;
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    const Node& node = graph[v];
    if (has_effect(node) || node.kind == Node::Kind::input) is_needed[v] = true;
  }
  mark_operands(graph, is_needed);
  if (std::ranges::find(is_needed, false) == is_needed.end()) return graph;

  return drop(std::move(graph), [&](const Graph&, Value v, Value) {
    return is_needed[v] ? std::nullopt : std::optional<Value>(0);
  });
}

}  // namespace nitinol::jit
