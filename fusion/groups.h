// What single nodes are as groups, and two groups as one.
#pragma once

#include "fusion/fuse.h"

#include <optional>
#include <vector>

namespace nitinol::fusion {

/// Order of reducing `axes` (normalised; design, section 5): sizes 1 are dropped; lanes if the
/// innermost axis left is reduced, else sequential.
[[nodiscard]] Order reduction_order_for(const Shape& shape, const Dims& axes);

/// True if a kernel may compute the node.
[[nodiscard]] bool is_groupable(const Graph& graph, const Node& node);

/// The group that `v`, which is groupable, is by itself.
[[nodiscard]] Group alone(const Graph& graph, Value v);

/// The axes of the group's domain that are not reduced.
[[nodiscard]] Shape row_shape(const Group& group);

/// That `v`, of group `reader`, reads `made`, of group `producer`, through `maps`.
struct Reading {
  const Group& reader;
  const Group& producer;
  Value v = 0, made = 0;
  const std::vector<Map>& maps;
  /// What the producer makes is made anew for each element of the reader, if that is oftener.
  bool may_repeat = false;
};

/// Both groups as one, in which what is read is at hand where it is read; nothing if that is not
/// possible. Whether a loop nest can express the result is another question (nest_rules.h). `uses`
/// is use_counts(graph).
[[nodiscard]] std::optional<Group> merged(const Graph& graph, const std::vector<Value>& bases,
                                          const std::vector<int>& uses, const Reading& reading);

}  // namespace nitinol::fusion
