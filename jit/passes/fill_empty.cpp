// Example: s: f32[2] = sum x over the second axis of x: f32[2, 0] becomes
//   zero: f32[] = constant 0; e: f32[2] = expand zero; s = copy e.
#include "jit/passes/fill_empty.h"

#include "eager/all_ops.h"
#include "eager/launch.h"
#include "jit/passes/rewrite.h"

#include <algorithm>
#include <utility>

namespace nitinol::jit {
namespace {

bool is_made_of_nothing(const Graph& graph, const Node& node) {
  if (node.kind != Node::Kind::op || element_count(node.spec.shape) == 0) return false;
  const bool calls =
      node.op->call != nullptr && node.op->effect != Effect::ordered && node.op->of_nothing;
  const bool may_be = node.op->kind == OpKind::reduce || calls;
  return may_be && std::ranges::any_of(node.inputs, [&](Value input) {
           return element_count(graph[input].spec.shape) == 0;
         });
}

}  // namespace

Graph fill_empty(Graph graph) {
  const auto is_one = [&](const Node& node) { return is_made_of_nothing(graph, node); };
  if (std::ranges::none_of(graph.nodes, is_one)) return graph;
  return rewrite(std::move(graph), [](Graph& out, Node& node) -> std::optional<Value> {
    if (!is_made_of_nothing(out, node)) return std::nullopt;
    Spec spec = node.spec;
    spec.shape = {};
    Node number;
    number.kind = Node::Kind::constant;
    number.spec = spec;
    number.constant = allocate_tensor(spec);
    eager::fill(number.constant, eager::bits_of_nothing(*node.op, spec.dtype));
    Node expanded;
    expanded.op = &ops::expand();
    expanded.inputs = {append(out, std::move(number))};
    expanded.attrs = {node.spec.shape};
    expanded.spec = node.spec;
    node.op = &ops::copy();
    node.inputs = {append(out, std::move(expanded))};
    node.attrs = {};
    return std::nullopt;
  });
}

}  // namespace nitinol::jit
