// Example: s = add x b; t = slice s 0:4; u = slice s 4:8; y = tanh t; z = exp u. As it stands, s
// has two readers at other points than its own, so it must be in memory. Computed in parts, each
// part fuses with its reader, and s is gone:
//   y = tanh (add (slice x 0:4) (slice b 0:4)), z = exp (add (slice x 4:8) (slice b 4:8)).
// The gates of a recurrent layer are such parts, and so are the steps of what is computed for all
// steps at once.
//
// Parts that are read by library calls stay views: the strides of their operands are eager's.
#include "jit/passes/hoist_views.h"

#include "eager/all_ops.h"
#include "fusion/access.h"
#include "jit/passes/materialise_views.h"
#include "jit/passes/remove_dead.h"
#include "jit/passes/rewrite.h"

#include <algorithm>
#include <utility>

namespace nitinol::jit {
namespace {

/// Rounds in which views move up; each moves past one operation.
constexpr int most_rounds = 8;

/// How a value is read.
struct Readers {
  bool needs_strides = false;  ///< by something that looks at the layout: a library call, a result
  bool is_whole = false;       ///< by something that looks at every element
  int64_t elements = 0;        ///< in the parts that are looked at
};

/// Per value: whether it is an elementwise result of which only parts are read, none of them twice.
std::vector<bool> read_in_parts(const Graph& graph) {
  std::vector<Readers> readers(graph.nodes.size());
  std::vector<bool> result(graph.nodes.size(), false);
  for (const Value output : graph.outputs) {
    readers[output].needs_strides = readers[output].is_whole = true;
  }
  for (std::size_t v = graph.nodes.size(); v-- > 0;) {
    const Node& node = graph.nodes[v];
    const Readers& of_node = readers[v];
    const int64_t count = element_count(node.spec.shape);
    const bool is_in_parts = !of_node.needs_strides && !of_node.is_whole && of_node.elements > 0 &&
                             of_node.elements <= count;
    result[v] = is_in_parts && is_elementwise(node);
    if (node.kind != Node::Kind::op) continue;
    const bool computes = node.op->kind == OpKind::elementwise || node.op->kind == OpKind::reduce;
    for (const Value input : node.inputs) {
      Readers& of_input = readers[input];
      if (is_view(node) ? of_node.needs_strides : !computes) of_input.needs_strides = true;
      const Shape& shape = graph[input].spec.shape;
      if (is_view(node) && count < element_count(shape)) {
        of_input.elements += count;
      } else if (is_view(node) && is_in_parts && fusion::same_but_ones(node.spec.shape, shape)) {
        of_input.elements += of_node.elements;
      } else {
        of_input.is_whole = true;
      }
    }
  }
  return result;
}

/// The view of `operand`, which is broadcast to `shape` first.
Value view_of(Graph& out, const Node& view, Value operand, const Shape& shape) {
  Spec spec = out[operand].spec;
  if (element_count(spec.shape) == 1 && spec.shape.size() <= view.spec.shape.size()) return operand;
  Node node;
  if (spec.shape != shape) {
    spec.shape = shape;
    node.op = &ops::expand();
    node.inputs = {operand};
    node.attrs = {Dims(shape)};
    node.spec = spec;
    operand = append(out, std::move(node));
  }
  spec.shape = view.spec.shape;
  node = view;
  node.inputs = {operand};
  node.spec = spec;
  return append(out, std::move(node));
}

Graph hoist_once(Graph graph, const std::vector<bool>& is_in_parts) {
  std::vector<Value> applications;  // in the order in which rewrite() asks
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    if (graph[v].kind != Node::Kind::input) applications.push_back(v);
  }
  std::size_t asked = 0;
  std::vector<bool> is_marked;  // values of the new graph
  return rewrite(std::move(graph), [&](Graph& out, Node& node) -> std::optional<Value> {
    const Value old = applications[asked++];
    is_marked.resize(out.nodes.size() + 1, false);
    is_marked.back() = is_in_parts[old];
    if (!is_view(node) || !is_marked[node.inputs[0]]) return std::nullopt;
    Node part = out[node.inputs[0]];
    for (Value& input : part.inputs) input = view_of(out, node, input, part.spec.shape);
    part.spec.shape = node.spec.shape;
    return append(out, std::move(part));
  });
}

}  // namespace

Graph hoist_views(Graph graph) {
  bool has_moved = false;
  for (int round = 0; round < most_rounds; ++round) {
    const std::vector<bool> is_in_parts = read_in_parts(graph);
    if (std::ranges::none_of(is_in_parts, [](bool mark) { return mark; })) break;
    graph = remove_dead(hoist_once(std::move(graph), is_in_parts));
    has_moved = true;
  }
  // A part lies in memory without gaps, and what was a view of the whole may be none of it.
  return has_moved ? materialise_views(std::move(graph)) : std::move(graph);
}

}  // namespace nitinol::jit
