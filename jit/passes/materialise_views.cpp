// Example: t: f32[3, 4] = transpose x; r: f32[12] = reshape t becomes c = copy t; r = reshape c.
// The copy is an elementwise op like any other, so it usually fuses with what made t and costs
// nothing of its own.
#include "jit/passes/materialise_views.h"

#include "eager/ops/cast.h"
#include "jit/passes/layouts.h"
#include "jit/passes/rewrite.h"

#include <utility>

namespace nitinol::jit {

Graph materialise_views(Graph graph) {
  std::vector<Layout> layouts;  // of the new graph's values
  const auto follow = [&layouts](const Graph& out) {
    for (std::size_t v = layouts.size(); v < out.nodes.size(); ++v) {
      layouts.push_back(layout_of(out, out.nodes[v], layouts));
    }
  };
  return rewrite(std::move(graph), [&](Graph& out, Node& node) -> std::optional<Value> {
    if (node.kind != Node::Kind::op || node.op->kind != OpKind::view) return std::nullopt;
    follow(out);
    if (layout_of(out, node, layouts).is_possible) return std::nullopt;
    Node copied;
    copied.op = &copy_op;
    copied.inputs = {node.inputs[0]};
    copied.spec = out[node.inputs[0]].spec;
    node.inputs[0] = append(out, std::move(copied));
    return std::nullopt;
  });
}

}  // namespace nitinol::jit
