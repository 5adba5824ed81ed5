// Lowering: one stage of a kernel as a single scalar program over what lies in memory.
#pragma once

#include "backends/cpu/jit/target.h"
#include "core/kernel.h"

#include <cstdint>
#include <vector>

namespace nitinol::cpu {

/// Which array or number of a StageCall an input or output is.
enum class Place : uint8_t {
  operand,
  scalar,
  position,  ///< position operand
  result,    ///< finished reduction
  row_value,
  accumulator,
  accumulator_position,  ///< of arg_* reductions
  element_index,         ///< where we are along the reduced dimension
  status,                ///< a check: `index` is the code of its failure
};

/// How a value changes along the loops.
enum class Access : uint8_t {
  per_call,   ///< one value
  per_outer,  ///< one value per step of the outer loop
  unit,       ///< neighbours in memory
  strided,    ///< a stride known at run time; also the formula of a position
  lanes,      ///< lane i % lanes of an array of accumulators of one row
};

struct Input {
  Place place = Place::operand;
  Access access = Access::unit;
  ScalarType type = ScalarType::f32;  ///< as stored: pred is u8, f16 and bf16 are u16
  uint16_t index = 0;
  bool is_half = false;       ///< f16, and f32 to the program: converted where it is loaded
  bool is_looked_up = false;  ///< no argument: what the instruction `load` that names it reads
};

struct Output {
  Place place = Place::operand;
  Access access = Access::unit;
  ScalarType type = ScalarType::f32;
  uint16_t index = 0;
  uint32_t value = 0;    ///< the instruction that computes it, of `type`
  bool is_half = false;  ///< f16, computed as f32: converted where it is stored
};

/// Argument k of `program` is inputs[k], and `load` number k loads from it. Conversions from and to
/// storage, and the joining of accumulators, are instructions like any other.
struct LoweredStage {
  ScalarProgram program;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  bool has_lanes = false;  ///< accumulates in the lanes of Order::lanes
  bool is_single = false;  ///< runs on one point at a time: a row stage of Order::lanes
  bool non_temporal = false;
};

[[nodiscard]] LoweredStage lower(const Kernel& kernel, const Stage& stage, const Target& target);

/// Elements per vector: registers are filled by the widest type that matters. Types of less than a
/// quarter of the instructions are split (wider) or fill registers partly (narrower).
[[nodiscard]] int vector_width(const LoweredStage& stage, const Kernel& kernel, int vector_bytes);

/// How two lanes of a reduction join: arguments 0 and 1 are their values, as stored; of arg_* 2 and
/// 3 are their positions.
struct LaneJoin {
  ScalarProgram program;
  uint32_t value = 0;     ///< the instruction that computes the joined value
  uint32_t position = 0;  ///< of arg_*: its position
};

[[nodiscard]] LaneJoin lower_join(const Reduction& reduction);

}  // namespace nitinol::cpu
