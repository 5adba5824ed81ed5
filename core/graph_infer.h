// Inference on the nodes of a graph, without data; shared by verify() and parse().
#pragma once

#include "core/graph.h"

#include <vector>

namespace nitinol {

/// A tensor of the node's spec (and, for inputs, strides) without memory: what Op::infer needs to
/// see of an operand. A constant is itself.
[[nodiscard]] Tensor placeholder(const Node& node);

/// The spec that the op of `node` gives its result, from placeholders of the operands. Checks the
/// numbers of operands and attributes first. Throws Error, or std::bad_variant_access if an
/// attribute is of the wrong kind.
[[nodiscard]] Spec inferred_spec(const Node& node, Inputs operands);

/// The parts of `node`, number `v` of its graph, if its op has several results: what follows it.
[[nodiscard]] std::vector<Node> parts_for(Value v, const Node& node, Inputs operands);

}  // namespace nitinol
