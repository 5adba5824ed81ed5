// Everything between memory and memory becomes one scalar program, so that code generation knows
// only loads, stores and scalar instructions. For example sum(float16 x) is
//
//   %0 = u16 argument 0       x
//   ... half to float ...
//   %9 = f32 argument 1       accumulator
//   %10 = f32 add %9, %8      stored to the accumulator

#include "backends/cpu/jit/lower.h"

#include "backends/host/stage.h"
#include "core/expr.h"
#include "core/join_logarithms.h"
#include "core/joins.h"
#include "core/math/half.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

namespace nitinol::cpu {
namespace {

ScalarType stored_type(ScalarType type) {
  return type == ScalarType::pred ? ScalarType::u8 : type;
}

Expr from_storage(Expr stored, DType dtype) {
  if (dtype == boolean) return convert(stored, ScalarType::pred);
  if (dtype == f16) return half_to_float(stored);
  return dtype == bf16 ? bfloat_to_float(stored) : stored;
}

Expr to_storage(Expr value, DType dtype) {
  if (dtype == boolean) return convert(value, ScalarType::u8);
  if (dtype == f16) return float_to_half(value);
  return dtype == bf16 ? float_to_bfloat(value) : value;
}

Expr from_storage(Expr stored, ScalarType type) {
  return type == ScalarType::pred ? convert(stored, type) : stored;
}

Expr to_storage(Expr value) {
  return value.type == ScalarType::pred ? convert(value, ScalarType::u8) : value;
}

/// A value and, of arg_*, where it is; as accumulated.
using Joined = Placed<Expr, Expr>;

Joined joined(Combine combine, const Joined& old, const Joined& next) {
  return with_combine(combine, [&](auto c) -> Joined {
    if constexpr (is_arg(c.value))
      return join<c.value>(old, next);
    else
      return {join<c.value>(old.value, next.value), {}};
  });
}

class Lowering {
 public:
  Lowering(const Kernel& kernel, const Stage& stage, const Target& target)
      : kernel_(kernel), stage_(stage), target_(target) {
    const bool is_row = stage.level == Stage::Level::row;
    is_lanes_element_ = kernel.order == Order::lanes && !is_row;
    out_.is_single = kernel.order == Order::lanes && is_row;
    out_.non_temporal = kernel.stores == Stores::non_temporal && kernel.order == Order::none;
  }

  LoweredStage lower() {
    load_sources();
    copy_program();
    for (const Sink& sink : stage_.sinks) lower_sink(sink);
    return std::move(out_);
  }

 private:
  Expr input(Place place, Access access, ScalarType type, uint16_t index) {
    const auto number = static_cast<uint32_t>(out_.inputs.size());
    out_.inputs.push_back({place, access, type, index});
    return argument(out_.program, type, number);
  }

  [[nodiscard]] Access access_of(const Operand& operand) const {
    if (out_.is_single) return Access::strided;
    if (operand.inner == StrideClass::one) return Access::unit;
    // A store per outer step would keep the last of several lanes; strided stores keep them all.
    if (operand.inner == StrideClass::zero && operand.role != Role::output) {
      return Access::per_outer;
    }
    return Access::strided;
  }

  Expr load(const Source& source) {
    const Access array = is_lanes_element_ ? Access::per_outer : Access::unit;
    if (source.kind == Source::Kind::reduction) {
      const Reduction& reduction = kernel_.reductions[source.index];
      const ScalarType type = is_arg(reduction.combine) ? ScalarType::i64 : reduction.type;
      return from_storage(input(Place::result, array, stored_type(type), source.index), type);
    }
    if (source.kind == Source::Kind::row_value) {
      const ScalarType type = kernel_.row_values[source.index];
      return from_storage(input(Place::row_value, array, stored_type(type), source.index), type);
    }
    const Operand& operand = kernel_.operands[source.index];
    if (operand.role == Role::position) {
      const bool moves = out_.is_single || operand.inner != StrideClass::zero;
      const Access access = moves ? Access::strided : Access::per_outer;
      return input(Place::position, access, ScalarType::i64, source.index);
    }
    const bool is_scalar = operand.role == Role::scalar;
    Expr stored = input(is_scalar ? Place::scalar : Place::operand,
                        is_scalar ? Access::per_call : access_of(operand),
                        stored_type(operand.dtype), source.index);
    if (operand.dtype != f16 || !target_.has_half) return from_storage(stored, operand.dtype);
    out_.inputs.back().is_half = true;
    out_.program.instrs[stored.id].type = stored.type = ScalarType::f32;
    return stored;
  }

  void load_sources() {
    std::vector<bool> is_used(stage_.sources.size());
    for (const ScalarInstr& instr : stage_.program.instrs) {
      if (instr.op == ScalarOp::argument) is_used[instr.imm] = true;
    }
    arguments_.resize(stage_.sources.size());
    for (std::size_t k = 0; k < arguments_.size(); ++k) {
      if (is_used[k]) arguments_[k] = load(stage_.sources[k]).id;
    }
  }

  void copy_program() {
    values_.reserve(stage_.program.instrs.size());
    for (ScalarInstr instr : stage_.program.instrs) {
      if (instr.op == ScalarOp::argument) {
        values_.push_back(arguments_[instr.imm]);
        continue;
      }
      if (instr.op == ScalarOp::load) {
        values_.push_back(look_up(instr).id);
        continue;
      }
      const int count = operand_count(instr.op);
      if (count > 0) instr.a = values_[instr.a];
      if (count > 1) instr.b = values_[instr.b];
      if (count > 2) instr.c = values_[instr.c];
      values_.push_back(is_written_out(instr.op) ? rounded(instr) : emit(out_.program, instr).id);
    }
  }

  Expr look_up(const ScalarInstr& instr) {
    const auto index = static_cast<uint16_t>(instr.imm);
    const Operand& operand = kernel_.operands[index];
    const bool is_half = operand.dtype == f16 && target_.has_half;
    const ScalarType stored = stored_type(operand.dtype);
    out_.inputs.push_back({.place = Place::operand,
                           .access = access_of(operand),
                           .type = stored,
                           .index = index,
                           .is_half = is_half,
                           .is_looked_up = true});
    const Expr element = emit(out_.program, {.op = ScalarOp::load,
                                             .type = is_half ? ScalarType::f32 : stored,
                                             .a = values_[instr.a],
                                             .imm = out_.inputs.size() - 1});
    return is_half ? element : from_storage(element, operand.dtype);
  }

  [[nodiscard]] bool is_written_out(ScalarOp op) const {
    return op == ScalarOp::round_bf16 || (op == ScalarOp::round_f16 && !target_.has_half);
  }

  /// A rounding as integer instructions, and the bits in storage that come of it.
  uint32_t rounded(const ScalarInstr& instr) {
    const bool is_half = instr.op == ScalarOp::round_f16;
    const Expr value = {&out_.program, instr.a, ScalarType::f32};
    Expr bits = is_half ? float_to_half(value) : rounded_to_bfloat(value);
    const Expr result = is_half ? half_to_float(bits) : bits;
    if (!is_half) bits = convert<uint16_t>(bitcast<uint32_t>(result) >> 16);
    stored_[{result.id, is_half ? f16 : bf16}] = bits.id;
    return result.id;
  }

  Expr value_of(const Sink& sink) {
    const uint32_t id = values_[sink.value];
    return {&out_.program, id, out_.program.instrs[id].type};
  }

  void output(Place place, Access access, uint16_t index, Expr value, bool is_half = false) {
    const ScalarType type = is_half ? ScalarType::u16 : value.type;
    out_.outputs.push_back({place, access, type, index, value.id, is_half});
  }

  void store(uint16_t index, Expr value) {
    const Operand& operand = kernel_.operands[index];
    const bool is_half = operand.dtype == f16 && target_.has_half;
    const auto known = stored_.find({value.id, operand.dtype});
    Expr stored = value;
    if (known != stored_.end())
      stored = {&out_.program, known->second, ScalarType::u16};
    else if (!is_half)
      stored = to_storage(value, operand.dtype);
    output(Place::operand, access_of(operand), index, stored, is_half);
  }

  void lower_sink(const Sink& sink) {
    const Expr value = value_of(sink);
    switch (sink.kind) {
      case Sink::Kind::store:
        return store(sink.index, value);
      case Sink::Kind::row_value:
        return output(Place::row_value, Access::unit, sink.index, to_storage(value));
      case Sink::Kind::accumulate:
        return accumulate(sink.index, value);
      case Sink::Kind::check:
        return output(Place::status, Access::per_call, sink.index, value);
    }
  }

  /// True of a product in f64 of numbers that were f32: a fused multiply-add of it gives the bits
  /// of a multiplication and an addition.
  [[nodiscard]] bool is_exact_product(Expr value) const {
    const std::vector<ScalarInstr>& instrs = out_.program.instrs;
    const auto was_f32 = [&](uint32_t id) {
      return instrs[id].op == ScalarOp::convert && instrs[instrs[id].a].type == ScalarType::f32;
    };
    const ScalarInstr& product = instrs[value.id];
    return product.op == ScalarOp::mul && product.type == ScalarType::f64 && was_f32(product.a) &&
           was_f32(product.b);
  }

  void accumulate(uint16_t r, Expr value) {
    const Reduction& reduction = kernel_.reductions[r];
    const Access access = is_lanes_element_ ? Access::lanes : Access::unit;
    out_.has_lanes = is_lanes_element_;
    const ScalarType stored = stored_type(reduction.type);
    if (kernel_.order == Order::turned && host::keeps_lanes(reduction))
      return output(Place::accumulator, access, r, to_storage(value));
    const bool has_position = is_arg(reduction.combine);
    Joined old = {from_storage(input(Place::accumulator, access, stored, r), reduction.type), {}};
    Joined next = {value, {}};
    if (has_position) {
      old.position = input(Place::accumulator_position, access, ScalarType::i64, r);
      next.position =
          input(Place::element_index, is_lanes_element_ ? Access::strided : Access::per_outer,
                ScalarType::i64, 0);
    }
    Joined sum = joined(reduction.combine, old, next);
    if (target_.has_fma && reduction.combine == Combine::add && is_exact_product(value)) {
      const ScalarInstr& product = out_.program.instrs[value.id];
      sum.value = fma(Expr{&out_.program, product.a, value.type},
                      Expr{&out_.program, product.b, value.type}, old.value);
    }
    output(Place::accumulator, access, r, to_storage(sum.value));
    if (has_position) output(Place::accumulator_position, access, r, sum.position);
  }

  const Kernel& kernel_;
  const Stage& stage_;
  const Target& target_;
  LoweredStage out_;
  bool is_lanes_element_ = false;
  std::vector<uint32_t> arguments_;  ///< per source: the instruction that has its value
  std::vector<uint32_t> values_;     ///< per instruction of the stage: its number in out_.program
  /// A value that was rounded to f16 or bf16 -> the instruction that has its bits in storage.
  std::map<std::pair<uint32_t, DType>, uint32_t> stored_;
};

}  // namespace

LoweredStage lower(const Kernel& kernel, const Stage& stage, const Target& target) {
  return Lowering(kernel, stage, target).lower();
}

namespace {

/// Per instruction: whether it differs from point to point of the inner loop.
std::vector<bool> inner_instructions(const LoweredStage& stage) {
  const auto moves = [&](uint64_t input) {
    const Access access = stage.inputs[input].access;
    return access != Access::per_call && access != Access::per_outer;
  };
  std::vector<bool> is_inner;
  for (const ScalarInstr& instr : stage.program.instrs) {
    const int count = operand_count(instr.op);
    const bool reads = instr.op == ScalarOp::argument || instr.op == ScalarOp::load;
    is_inner.push_back((reads && moves(instr.imm)) || (count > 0 && is_inner[instr.a]) ||
                       (count > 1 && is_inner[instr.b]) || (count > 2 && is_inner[instr.c]));
  }
  return is_inner;
}

}  // namespace

int vector_width(const LoweredStage& stage, const Kernel& kernel, int vector_bytes) {
  if (stage.is_single) return 1;
  const std::vector<bool> is_inner = inner_instructions(stage);
  std::array<int, 9> weight = {};
  int total = 0, nesting = 0;
  int widest_in_memory = 1;
  const auto count = [&](ScalarType type) {
    ++weight[static_cast<std::size_t>(size_of(type))];
    ++total;
  };
  const auto count_stream = [&](Place place, ScalarType type) {
    count(type);
    if (place != Place::position) widest_in_memory = std::max(widest_in_memory, size_of(type));
  };
  for (const Input& input : stage.inputs) {
    if (input.access != Access::per_call && input.access != Access::per_outer)
      count_stream(input.place, input.type);
  }
  for (const Output& output : stage.outputs) {
    if (output.place != Place::status) count_stream(output.place, output.type);
  }
  for (std::size_t i = 0; i < is_inner.size(); ++i) {
    const ScalarInstr& instr = stage.program.instrs[i];
    if (instr.op == ScalarOp::begin_if) ++nesting;
    if (instr.op == ScalarOp::end_if) --nesting;
    const int operands = operand_count(instr.op);
    if (nesting > 0 || operands == 0 || !is_inner[i]) continue;
    const ScalarType from = stage.program.instrs[instr.a].type;
    count(size_of(from) > size_of(instr.type) ? from : instr.type);
  }
  int size = 8;
  while (size > 1 && 4 * weight[static_cast<std::size_t>(size)] < std::max(total, 1)) size /= 2;
  // What computes on elements twice as wide as those in memory (random numbers do) is a long chain
  // by two vectors at once: x * (rand() < 0.9) takes 2.1 ms a million instead of 2.8 with AVX2.
  if (size == 8 && widest_in_memory < 8) size = 4;
  int width = vector_bytes / size;
  for (const Output& output : stage.outputs) {
    if (output.access != Access::lanes) continue;
    width = std::min(width, lanes_of(kernel.reductions[output.index].type));
  }
  return width;
}

LaneJoin lower_join(const Reduction& reduction) {
  LaneJoin join_of_lanes;
  ScalarProgram& program = join_of_lanes.program;
  const auto argument = [&](uint64_t k, ScalarType type) {
    return emit(program, {.op = ScalarOp::argument, .type = type, .imm = k});
  };
  const auto value = [&](uint64_t k) {
    return from_storage(argument(k, stored_type(reduction.type)), reduction.type);
  };
  const bool has_position = is_arg(reduction.combine);
  const auto position = [&](uint64_t k) {
    return has_position ? argument(k, ScalarType::i64) : Expr{};
  };
  const Joined left = {value(0), position(2)}, right = {value(1), position(3)};
  const Joined both = joined(reduction.combine, left, right);
  join_of_lanes.value = to_storage(both.value).id;
  join_of_lanes.position = both.position.id;
  return join_of_lanes;
}

}  // namespace nitinol::cpu
