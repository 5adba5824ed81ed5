// What single nodes are as groups, and two groups as one.
#pragma once

#include "fusion/fuse.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace nitinol::fusion {

/// Order of reducing `axes` (normalised; design, section 5): sizes 1 are dropped; lanes if the
/// innermost axis left is reduced, else sequential.
[[nodiscard]] Order reduction_order_for(const Shape& shape, const Dims& axes);

/// Whether rows of an operand that does not walk the reduced axes, of these sizes and strides, as
/// one loop may be brought together where they are reduced (Kernel::reduced_loops). Not if its
/// elements are apart; nor if rows are short, since these are turned (Order::turned); nor if they
/// are long, of many short runs in memory: one after the other they would leap through all of it.
[[nodiscard]] bool may_copy_rows(Order order, const Dims& sizes, const Dims& strides,
                                 const DeviceLimits& limits);

/// The same of what lies so over a group's domain.
[[nodiscard]] bool may_copy_rows(const Group& group, const Strides& strides,
                                 const DeviceLimits& limits);

/// True if a kernel may compute the node.
[[nodiscard]] bool is_groupable(const Graph& graph, const Node& node, const DeviceLimits& limits);

/// The group that `v`, which is groupable, is by itself.
[[nodiscard]] Group alone(const Graph& graph, Value v);

/// Elements that are reduced to one.
[[nodiscard]] int64_t row_length(const Group& group);

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
