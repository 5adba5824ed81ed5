// Example: t: f32[3, 4] = transpose x; r: f32[12] = reshape t becomes c = copy t; r = reshape c.
// The copy is an elementwise op like any other, so it usually fuses with what made t and costs
// nothing of its own. A sum over several axes that are not one loop in memory gets one, too.
#include "jit/passes/materialise_views.h"

#include "eager/ops/all_ops.h"
#include "jit/passes/layouts.h"
#include "jit/passes/rewrite.h"

#include <algorithm>
#include <utility>

namespace nitinol::jit {
namespace {

/// Whether eager copies what `node` reads, so that a Plan must, too.
bool reads_a_copy(const Graph& graph, const Node& node, const std::vector<Layout>& layouts) {
  if (node.kind != Node::Kind::op) return false;
  if (node.op->kind == OpKind::view) return !layout_of(graph, node, layouts).is_possible;
  return node.op->kind == OpKind::reduce &&
         reduces_split_loop(node, layouts[node.inputs[0]], graph[node.inputs[0]].spec.shape);
}

bool reads_any_copy(const Graph& graph) {
  std::vector<Layout> layouts;
  layouts.reserve(graph.nodes.size());
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    const bool found = reads_a_copy(graph, node, layouts);
    layouts.push_back(layout_of(graph, node, layouts));
    return found;
  });
}

}  // namespace

Graph materialise_views(Graph graph) {
  if (!reads_any_copy(graph)) return graph;
  std::vector<Layout> layouts;  // of the new graph's values
  const auto follow = [&layouts](const Graph& out) {
    layouts.reserve(out.nodes.capacity());
    for (std::size_t v = layouts.size(); v < out.nodes.size(); ++v) {
      layouts.push_back(layout_of(out, out.nodes[v], layouts));
    }
  };
  return rewrite(std::move(graph), [&](Graph& out, Node& node) -> std::optional<Value> {
    follow(out);
    if (!reads_a_copy(out, node, layouts)) return std::nullopt;
    Node copied;
    copied.op = &ops::copy();
    copied.inputs = {node.inputs[0]};
    copied.spec = out[node.inputs[0]].spec;
    node.inputs[0] = append(out, std::move(copied));
    return std::nullopt;
  });
}

}  // namespace nitinol::jit
