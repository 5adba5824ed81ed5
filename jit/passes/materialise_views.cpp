// Example: t: f32[3, 4] = transpose x; r: f32[12] = reshape t becomes c = copy t; r = reshape c.
// The copy is an elementwise op like any other, so it usually fuses with what made t and costs
// nothing of its own. A sum over several axes that are not one loop in memory gets one, too, unless
// its kernel brings its rows together; if other axes lie between them, one in which they are
// neighbours:
//   s: f32[3] = sum x axes=[0, 2] becomes p = permute x [1, 0, 2]; c = copy p; s = sum c axes=[1,
//   2].
#include "jit/passes/materialise_views.h"

#include "eager/all_ops.h"
#include "fusion/groups.h"
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
  if (node.op->kind != OpKind::reduce) return false;
  const Shape& shape = graph[node.inputs[0]].spec.shape;
  const Layout& layout = layouts[node.inputs[0]];
  return (reduces_apart(node, shape) || reduces_split_loop(node, layout, shape)) &&
         !copies_rows(node, layout, shape);
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

/// What stands for `node`, a reduction over axes that are apart. They become neighbours, in the
/// order of theirs: the last ones if the innermost is among them and the first ones if it is not,
/// so that values are joined in the same order.
Value gathered(Graph& out, const Node& node, const std::vector<Layout>& layouts) {
  const Shape& shape = out[node.inputs[0]].spec.shape;
  const Dims reduced = normalize_axes(node.op->name, std::get<Dims>(node.attrs[0]), shape.size());
  const bool are_last = fusion::reduction_order_for(shape, reduced) == Order::lanes;
  Dims order, axes;
  for (const bool are_reduced : {!are_last, are_last}) {
    for (int axis = 0; axis < shape.size(); ++axis) {
      const bool is_reduced = std::ranges::find(reduced, axis) != reduced.end();
      if (is_reduced != are_reduced) continue;
      if (is_reduced) axes.push_back(order.size());
      order.push_back(axis);
    }
  }
  const Value moved = append(out, applied(out, ops::permute(), node.inputs[0], {order}));
  Node reduction = applied(out, *node.op, moved, {axes, false});
  const Layout layout = layout_of(out, out[moved], layouts);
  if (reduces_split_loop(reduction, layout, out[moved].spec.shape))
    reduction.inputs[0] = append(out, applied(out, ops::copy(), moved));
  const Value result = append(out, std::move(reduction));
  const Shape& kept = node.spec.shape;  // perhaps with the reduced axes
  if (kept == out[result].spec.shape) return result;
  return append(out, applied(out, ops::reshape(), result, {kept}));
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
    if (node.op->kind == OpKind::reduce && reduces_apart(node, out[node.inputs[0]].spec.shape))
      return gathered(out, node, layouts);
    node.inputs[0] = append(out, applied(out, ops::copy(), node.inputs[0]));
    return std::nullopt;
  });
}

}  // namespace nitinol::jit
