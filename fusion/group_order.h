// Group order: which groups of values depend on which, while groups grow and merge.
#pragma once

#include "core/graph.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nitinol::fusion {

/// Whether the node is made from others, and is no view: there is a time before it.
[[nodiscard]] bool comes_after(const Node& node);

/// Per value of a graph: the values that it comes after. Those whose memory it reads, views looked
/// through; a part after its op; and what is ordered (Op::effect) after what is ordered before it,
/// and after all that may fail.
class Reads {
 public:
  Reads() = default;
  /// `bases` is bases_of(graph). Nothing that may fail comes after what is ordered.
  Reads(const Graph& graph, std::span<const Value> bases);
  [[nodiscard]] std::span<const Value> operator[](Value value) const {
    return std::span(values_).subspan(begin_[value], begin_[value + 1] - begin_[value]);
  }
  [[nodiscard]] std::size_t size() const { return begin_.size() - 1; }

 private:
  std::vector<std::size_t> begin_;  ///< per value, and the end
  std::vector<Value> values_;
};

/// An order of groups in which each comes after those it reads. A group is named by any value in
/// it. No two groups ever depend on each other.
class GroupOrder {
 public:
  explicit GroupOrder(const Reads& reads);

  /// `value`, later than all that were added before, becomes a group. Values that are never added
  /// depend on nothing: inputs and constants.
  void add(Value value);
  /// Whether `to`, which reads `from`, depends on it by way of a third group too; or perhaps, if a
  /// long search does not tell. May change the order.
  [[nodiscard]] bool has_path_through_others(Value from, Value to);
  /// Makes one group of `from` and `to`, which reads it, and through no third group.
  void merge(Value from, Value to);

 private:
  static constexpr Value none = UINT32_MAX;

  /// Where a value lies in the forest: itself and those below it.
  struct Range {
    uint32_t begin = 0, end = 0;
  };

  void number_forest();
  [[nodiscard]] Value group_of(Value value) const;
  [[nodiscard]] std::span<const Value> operands_of(Value group) const;
  [[nodiscard]] std::span<const Value> roots_of(const Value& group) const;
  [[nodiscard]] bool is_below(Value value, Value group) const;
  [[nodiscard]] bool find_path(Value from, Value to);
  void put_before(Value group, std::span<const Value> moved);
  void renumber();
  void unlink(Value group);
  void merge_operands(Value from, Value to);
  void merge_roots(Value from, Value to);

  const Reads& reads_;
  std::vector<Range> range_;                  ///< per value
  mutable std::vector<Value> parent_;         ///< per value: towards the first value of its group
  std::vector<uint64_t> place_;               ///< per group, in the order; 0: never added
  std::vector<Value> before_, after_;         ///< per group: its neighbours in the order
  Value first_ = none, last_ = none;          ///< in the order
  std::vector<std::vector<Value>> operands_;  ///< of groups that have merged: a value of each
  std::vector<std::vector<Value>> roots_;     ///< of groups that have merged: see is_below
  std::vector<uint32_t> seen_;                ///< per group: the last search that came by
  uint32_t search_ = 0;
  std::vector<Value> found_;  ///< by the present search
};

}  // namespace nitinol::fusion
