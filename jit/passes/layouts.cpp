#include "jit/passes/layouts.h"

#include <algorithm>

namespace nitinol::jit {

Layout layout_of(const Graph& graph, const Node& node, const std::vector<Layout>& earlier) {
  if (node.kind == Node::Kind::input) return {.strides = node.strides};
  if (node.kind == Node::Kind::constant) return {.strides = node.constant.internals().strides};
  if (node.op->kind != OpKind::view) return {.strides = strides_of(node.spec.shape)};
  const Value viewed = node.inputs[0];
  const Spec& spec = graph[viewed].spec;
  const Layout& from = earlier[viewed];
  const ViewMap map = node.op->view(spec, from.strides, node.attrs);
  if (map.is_possible) {
    return {.strides = map.strides,
            .offset = from.offset + map.offset,
            .is_possible = from.is_possible};
  }
  const ViewMap of_copy = node.op->view(spec, strides_of(spec.shape), node.attrs);
  return {.strides = of_copy.strides, .offset = of_copy.offset, .is_possible = false};
}

bool reduces_split_loop(const Node& node, const Layout& input, const Shape& shape) {
  int before = -1;  // the axis reduced before
  bool is_split = false;
  const Dims axes = normalize_axes(node.op->name, std::get<Dims>(node.attrs[0]), shape.size());
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (std::ranges::find(axes, i) == axes.end()) {
      if (before >= 0) before = shape.size();  // no neighbours beyond this one
      continue;
    }
    if (before == shape.size()) return false;
    is_split |= before >= 0 && input.strides[before] != input.strides[i] * shape[i];
    before = i;
  }
  return is_split;
}

}  // namespace nitinol::jit
