#include "jit/passes/layouts.h"

#include "core/backend.h"
#include "core/loop_nest.h"
#include "fusion/groups.h"

#include <algorithm>

namespace nitinol::jit {
namespace {

/// The axes that `node` reduces, but for those of size 1, in order.
Dims long_axes(const Node& node, const Shape& shape) {
  Dims axes;
  for (const int64_t axis :
       normalize_axes(node.op->name, std::get<Dims>(node.attrs[0]), shape.size())) {
    if (shape[axis] != 1) axes.push_back(axis);
  }
  return axes;
}

}  // namespace

Layout layout_of(const Graph& graph, const Node& node, const std::vector<Layout>& earlier) {
  switch (node.kind) {
    case Node::Kind::input:
      return {.strides = node.strides};
    case Node::Kind::constant:
      return {.strides = node.constant.internals().strides};
    case Node::Kind::part:
      return {.strides = strides_of(node.spec.shape)};
    case Node::Kind::op:
      if (!is_view(node)) return {.strides = strides_of(node.spec.shape)};
  }
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

bool reduces_apart(const Node& node, const Shape& shape) {
  const Dims axes = long_axes(node, shape);
  for (int k = 1; k < axes.size(); ++k) {
    for (int64_t between = axes[k - 1] + 1; between < axes[k]; ++between) {
      if (shape[between] != 1) return true;
    }
  }
  return false;
}

bool reduces_split_loop(const Node& node, const Layout& input, const Shape& shape) {
  const Dims axes = long_axes(node, shape);
  return !walks_as_one(fusion::along(shape, axes), fusion::along(input.strides, axes));
}

bool copies_rows(const Node& node, const Layout& input, const Shape& shape) {
  const Dims axes = long_axes(node, shape);
  if (axes.empty()) return false;
  return fusion::may_copy_rows(fusion::reduction_order_for(shape, axes), fusion::along(shape, axes),
                               fusion::along(input.strides, axes),
                               backend(node.spec.device).limits());
}

}  // namespace nitinol::jit
