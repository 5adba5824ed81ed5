// Grouping: which nodes of a graph are computed together, in one kernel each.
#pragma once

#include "core/device_limits.h"
#include "core/graph.h"
#include "core/kernel.h"
#include "fusion/access.h"

#include <map>
#include <memory>
#include <vector>

namespace nitinol::fusion {

inline constexpr std::size_t most_members = 192;  ///< of a group

/// A node inside a group.
struct Member {
  Value value = 0;
  /// Computed at each point of the domain, or once per row of a reduction.
  Stage::Level level = Stage::Level::element;
  /// How many reductions, one after another, come before it within the group.
  int stage = 0;
  /// From the node's own shape to the group's domain, where these differ (a producer read through a
  /// view).
  std::vector<Map> maps;
};

/// Nodes that become one Kernel.
struct Group {
  Order order = Order::none;
  Shape domain;                 ///< the points visited; with a reduction: the shape that is reduced
  Dims reduced;                 ///< axes of the domain
  std::vector<Member> members;  ///< each after those it reads
  [[nodiscard]] const Member* find(Value value) const;
};

/// Whether what lies so over the group's domain is walked through with the reduced axes as one
/// loop.
[[nodiscard]] bool reduced_axes_merge(const Group& group, const Access& access);

/// Where a value is stored, other than in memory of its own.
struct Piece {
  Value whole = 0;  ///< in whose memory
  Access access;    ///< there, over the value's shape
};

/// What becomes of a graph: groups, and the other nodes, each by itself. Views are no work.
struct Fusion {
  std::vector<Value> bases = {};  ///< per node: see base_of
  std::vector<Group> groups = {};
  std::vector<int> group_of = {};  ///< per node: its group, or -1
  /// Per node: a number that is cheap to recompute anywhere (made of scalars only); never in a
  /// group unless needed in memory.
  std::vector<bool> is_recomputed = {};
  Reads reads = {};
  /// Per node: must be in memory (read by another step, or an output).
  std::vector<bool> is_materialised = {};
  /// By value: those of groups that are stored into a region of another (pieces.h).
  std::map<Value, Piece> pieces = {};
};

/// Groups the elementwise, create and reduce nodes of `graph`, for a device of these limits. With
/// `is_enabled` false each is its own group.
[[nodiscard]] Fusion fuse(const Graph& graph, bool is_enabled = true,
                          const DeviceLimits& limits = {});

/// True for a number that kernels get with each call.
[[nodiscard]] bool is_number(const Node& node);
/// True for a number, or what is computed from numbers.
[[nodiscard]] bool needs_no_memory(const Graph& graph, const Fusion& fusion, Value value);

/// Over the domain, the position of the element of `member` that is computed at each point: of a
/// create op, whose elements are formulas of it. Nothing if strides cannot express it.
[[nodiscard]] std::optional<Access> position_access(const Graph& graph, const Member& member);

/// What a member that looks up chooses from.
struct LookedUp {
  int64_t rows = 0, step = 0;  ///< see Lookup
  Access access;               ///< over the domain, of index 0
};
/// Nothing if strides cannot express it.
[[nodiscard]] std::optional<LookedUp> looked_up(const Graph& graph, const Member& member);

/// Strides over the domain with which the member reads input `input` from the contiguous or given
/// layout of its base. Not for what is looked up.
[[nodiscard]] std::optional<Access> leaf_access(const Graph& graph, const Member& member,
                                                Value input);

}  // namespace nitinol::fusion
