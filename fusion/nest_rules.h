// What one loop nest can express, and how large a kernel may be.
#pragma once

#include "core/formula.h"
#include "core/graph.h"
#include "fusion/access.h"
#include "fusion/fuse.h"

#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace nitinol::fusion {

/// What a kernel of a group would hold.
struct Contents {
  std::vector<Value> streams;    ///< whose memory is read
  std::vector<Value> reads;      ///< these, or views of them: an operand for each
  std::vector<Value> numbers;    ///< that come with each launch
  std::size_t positions = 0;     ///< created tensors
  std::size_t instructions = 0;  ///< of the members' formulas

  /// Adds what another group holds, neither of which reads the other.
  void add(const Contents& other);
  /// False if code for it would take long to generate, or a launch could not bring all of it.
  [[nodiscard]] bool is_small_enough() const;
};

/// The rules for groups of one graph. `fusion` may change meanwhile.
class NestRules {
 public:
  NestRules(const Graph& graph, const Fusion& fusion, const DeviceLimits& limits)
      : graph_(graph),
        fusion_(fusion),
        limits_(limits),
        instructions_(graph.nodes.size(), unknown) {}

  /// The contents of `group` if a loop nest expresses it and a kernel can hold it.
  [[nodiscard]] std::optional<Contents> check(const Group& group) const;
  /// Adds what `member`, the last of `group`, reads. False if a loop nest cannot express that.
  [[nodiscard]] bool add(const Group& group, const Member& member, Contents& contents) const;

  /// Instructions of the formula of `v`.
  [[nodiscard]] std::size_t instructions_of(Value v) const;
  /// Most operands that a kernel of the group may need, given which values must be in memory.
  [[nodiscard]] std::size_t operands_of(const Group& group) const;

 private:
  static constexpr std::size_t unknown = SIZE_MAX;

  /// What is read from memory, and how it lies there: an operand.
  struct Load {
    Value base = 0;
    int64_t offset = 0;
    Strides strides;
    Stage::Level level = Stage::Level::element;
    bool operator==(const Load&) const = default;
  };

  [[nodiscard]] bool reads_present_point(const Group& group, const Member& member,
                                         Value input) const;
  [[nodiscard]] bool is_readable(const Group& group, const Member& member, Value input) const;
  [[nodiscard]] bool is_walkable(const Group& group, const Member& member,
                                 const std::optional<Access>& access) const;
  [[nodiscard]] bool is_copyable(const Group& group, const std::optional<Access>& access) const;
  [[nodiscard]] bool can_look_up(const Group& group, const Member& member) const;
  void add_operand(const Group& group, Value input, Contents& contents) const;
  void add_load(const Group& group, const Member& member, Value input,
                std::vector<Load>& loads) const;
  void add_numbers(Value number, Contents& contents) const;
  [[nodiscard]] std::size_t count_instructions(const Node& node) const;

  const Graph& graph_;
  const Fusion& fusion_;
  const DeviceLimits& limits_;
  mutable std::vector<std::size_t> instructions_;  ///< per value
  /// By op, and the dtypes of its last operand and result.
  mutable std::map<std::tuple<Emit, DType, DType>, std::size_t> of_formula_;
};

}  // namespace nitinol::fusion
