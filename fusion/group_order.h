// Group order: which groups of values depend on which, while groups grow and merge.
#pragma once

#include "fusion/access.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nitinol::fusion {

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
  /// Makes one group of two of which neither depends on the other. False if one does, or perhaps.
  [[nodiscard]] bool unite(Value a, Value b);

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
