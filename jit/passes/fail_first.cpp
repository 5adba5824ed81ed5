// Example: s = send x; t = take table index; y = add s t becomes t = take table index; s = send x;
// y = add s t. A call that finds the index out of range then has sent nothing, and eager, which
// runs it again, sends x once before it throws.
#include "jit/passes/fail_first.h"

#include "jit/passes/rewrite.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace nitinol::jit {

Graph fail_first(Graph graph) {
  if (!has_ordered(graph)) return graph;
  std::vector<bool> leads = that_may_fail(graph, graph.nodes.size());
  mark_operands(graph, leads);
  std::vector<Value> order(graph.nodes.size());
  for (Value v = 0; v < order.size(); ++v) order[v] = v;
  std::ranges::stable_partition(order, [&](Value v) { return leads[v]; });
  std::vector<Value> renamed(order.size());
  for (Value place = 0; place < order.size(); ++place) renamed[order[place]] = place;
  Graph out;
  out.nodes.reserve(graph.nodes.size());
  for (const Value v : order) {
    Node& node = out.nodes.emplace_back(std::move(graph.nodes[v]));
    for (Value& input : node.inputs) input = renamed[input];
  }
  for (const Value input : graph.inputs) out.inputs.push_back(renamed[input]);
  for (const Value output : graph.outputs) out.outputs.push_back(renamed[output]);
  return out;
}

}  // namespace nitinol::jit
