// Example: x repeated three times, a copy of x[1, 4] seen as [3, 4], which lies as [12]:
//   c: f32[3, 4] = copy v; r: f32[12] = reshape c; y: f32[12] = tanh r
// No strides walk v as [12], so c and y would be two kernels, with c in memory between them. As
//   c: f32[3, 4] = copy v; t: f32[3, 4] = tanh c; y: f32[12] = reshape t
// they are one. What else is made of y follows, as long as no other tensor joins it: that might
// have been computed in y's shape, and would then be apart.
#include "jit/passes/sink_reshapes.h"

#include "eager/all_ops.h"
#include "jit/passes/rewrite.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace nitinol::jit {

Graph sink_reshapes(Graph graph) {
  std::vector<bool> is_sunk;  // values of the new graph: reshapes that elementwise operations pass
  return rewrite(std::move(graph), [&](Graph& out, Node& node) -> std::optional<Value> {
    is_sunk.resize(out.nodes.size() + 1, false);
    if (node.kind != Node::Kind::op) return std::nullopt;
    if (node.op == &ops::reshape()) {
      is_sunk.back() = out[node.inputs[0]].op == &ops::copy();
      return std::nullopt;
    }
    if (!is_elementwise(node)) return std::nullopt;
    const auto sunk = std::ranges::find_if(node.inputs, [&](Value v) { return is_sunk[v]; });
    if (sunk == node.inputs.end()) return std::nullopt;
    const Value before = out[*sunk].inputs[0];
    const Shape shape = out[before].spec.shape;
    for (const Value input : node.inputs) {
      const bool is_alike = is_sunk[input] && out[out[input].inputs[0]].spec.shape == shape &&
                            out[input].spec.shape == node.spec.shape;
      const bool is_number = out[input].spec.shape.empty();
      if (!is_alike && !is_number) return std::nullopt;
    }
    Node reshape = out[*sunk];
    reshape.spec = node.spec;
    reshape.origin = no_origin;
    for (Value& input : node.inputs) {
      if (is_sunk[input]) input = out[input].inputs[0];
    }
    node.spec.shape = shape;
    reshape.inputs[0] = append(out, std::move(node));
    is_sunk.resize(out.nodes.size() + 1, false);
    is_sunk.back() = true;
    return append(out, std::move(reshape));
  });
}

}  // namespace nitinol::jit
