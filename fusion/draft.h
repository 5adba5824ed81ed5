// Draft: a kernel in the making. lowering.cpp writes stages, values.cpp what they compute,
// operands.cpp what they read and store.
#pragma once

#include "core/device_limits.h"
#include "core/formula.h"
#include "fusion/lowering.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace nitinol::fusion {

/// Operands of a member that looks up.
struct Table {
  uint16_t rows, step;  ///< numbers
  uint16_t elements;    ///< what is looked up
};

/// Where an element stage computes a member.
struct Computed {
  std::size_t stage = 0;
  uint32_t value = 0;
  std::size_t instructions = 0;
};

/// The stage that is being written.
struct StageDraft {
  Stage stage = {};
  int pass = 0;                             ///< see Member::stage
  std::map<Value, Expr> values = {};        ///< members
  std::map<Value, Row> looked_up = {};      ///< members that look up
  std::map<uint16_t, Expr> arguments = {};  ///< operands that are loaded
};

struct Draft {
  const Graph& graph;
  const Fusion& fusion;
  const Group& group;
  const DeviceLimits& limits;
  Lowered out = {};
  std::vector<int> rows = {};      ///< axes of the domain that are not reduced
  Dims sizes = {};                 ///< of the loops: rows, then what is reduced
  std::vector<Dims> strides = {};  ///< per operand, over the loops
  StageDraft now = {};
  // By value.
  std::map<Value, uint16_t> reductions = {};  ///< members that reduce
  std::map<Value, uint16_t> row_values = {};  ///< members that a row stage has kept
  std::map<Value, uint16_t> scalars = {};     ///< numbers: their operands
  std::map<Value, uint16_t> scratch = {};     ///< members that are kept in an operand
  std::map<Value, Table> tables = {};         ///< members that look up
  std::map<Value, Computed> computed = {};    ///< members: in the last element stage that did so
};

// ---- values (values.cpp): all write to the present stage

/// The value that `v`, perhaps a view, has at the present point, in its compute type. `reader` is
/// the member that reads it; null: it is no memory.
[[nodiscard]] Expr value_of(Draft& draft, Value v, const Member* reader = nullptr);
/// Adds a sink that checks what the member has to check.
void write_check(Draft& draft, const Member& member);

// ---- operands (operands.cpp)

/// Argument for what `from` brings.
[[nodiscard]] Expr source(StageDraft& stage, Source from, ScalarType type);
/// Argument for operand number `operand`.
[[nodiscard]] Expr operand_source(StageDraft& stage, uint16_t operand, DType dtype);
[[nodiscard]] uint16_t add_scratch(Draft& draft, DType dtype);
[[nodiscard]] Table add_table(Draft& draft, const Member& member);
/// A number that comes with each launch.
[[nodiscard]] Expr number(Draft& draft, Value v);
/// What `reader` reads of `v`, from memory.
[[nodiscard]] Expr loaded(Draft& draft, Value v, const Member& reader);
/// Where a create op's element is.
[[nodiscard]] Expr position(Draft& draft, const Member& member);
/// Adds a sink that stores the member.
void write_store(Draft& draft, const Member& member, const Expr& result);

}  // namespace nitinol::fusion
