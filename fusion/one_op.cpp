#include "fusion/one_op.h"

#include "core/graph.h"
#include "fusion/groups.h"
#include "fusion/lowering.h"

#include <utility>

namespace nitinol::fusion {

Kernel lower_op(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& result,
                Order order) {
  Graph graph;
  Node node = {.op = &op,
               .inputs = {},
               .attrs = attrs,
               .spec = result.spec(),
               .strides = {},
               .constant = {}};
  for (const Tensor* input : inputs) {
    const TensorData& data = input->internals();
    Spec spec = data.spec;
    spec.is_weak = data.is_number();
    node.inputs.push_back(static_cast<Value>(graph.nodes.size()));
    graph.nodes.push_back({.kind = Node::Kind::input,
                           .inputs = {},
                           .attrs = {},
                           .spec = spec,
                           .strides = data.strides,
                           .constant = {}});
  }
  const auto value = static_cast<Value>(graph.nodes.size());
  graph.nodes.push_back(std::move(node));
  Group group = alone(graph, value);
  group.order = order;
  const std::size_t count = graph.nodes.size();
  Fusion fusion = {.bases = bases_of(graph),
                   .is_recomputed = std::vector<bool>(count, false),
                   .is_materialised = std::vector<bool>(count, false)};
  fusion.is_materialised[value] = true;
  fusion.pieces[value] = {.whole = value,
                          .access = {result.shape(), result.internals().strides, 0}};
  return lower(graph, fusion, group, {}).kernel;
}

}  // namespace nitinol::fusion
