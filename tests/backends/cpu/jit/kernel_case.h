// Runs a kernel as generated code and as interpreted code on the same memory, and compares.
#pragma once

#include "backends/cpu/code/stage_codes.h"
#include "backends/cpu/jit_plugin.h"
#include "core/isa.h"
#include "core/kernel.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace nitinol::testing {

/// The plugin; fails the test if it cannot be loaded.
cpu::JitPlugin& plugin();
/// Code for a level that this machine has.
cpu::StageCodes code_for(const Kernel& kernel, Isa isa);

/// The levels that this machine has, lowest first.
std::vector<Isa> isa_levels();

/// Sizes of the loops, and how operands that are not unit-stride lie in memory.
struct Domain {
  std::vector<int64_t> sizes;
  int64_t any_stride = 3;         ///< of StrideClass::any, in elements
  int64_t misalignment = 0;       ///< elements by which buffers start behind an aligned address
  int64_t misalignment_step = 0;  ///< by which each starts further behind than the one before
  bool no_zero = false;           ///< inputs hold no zeros: divisors
};

/// Random numbers with special values among them, in the dtype's bits.
uint64_t random_bits(DType dtype, std::mt19937& random);

/// Empty if the generated code of `kernel` at `isa` leaves the same memory as the interpreter, for
/// random inputs; else what differs.
std::string difference(const Kernel& kernel, const cpu::StageCodes& code, const Domain& domain,
                       std::mt19937& random);
std::string difference(const Kernel& kernel, Isa isa, const Domain& domain, std::mt19937& random);

/// A kernel with one element stage: outputs[i] = formula(inputs), dtypes as given, unit stride.
/// `formula` maps one Expr per input to the value of the one output.
template <class Formula>
Kernel elementwise(const std::vector<DType>& inputs, DType output, Formula formula) {
  Kernel kernel;
  Stage stage;
  std::vector<Expr> arguments;
  for (const DType dtype : inputs) {
    const auto k = static_cast<uint16_t>(kernel.operands.size());
    kernel.operands.push_back({.role = Role::input, .dtype = dtype});
    stage.sources.push_back({Source::Kind::operand, k});
    arguments.push_back(argument(stage.program, compute_type(dtype), k));
  }
  const auto out = static_cast<uint16_t>(kernel.operands.size());
  kernel.operands.push_back({.role = Role::output, .dtype = output});
  stage.sinks.push_back({Sink::Kind::store, out, formula(arguments).id});
  kernel.stages.push_back(stage);
  return kernel;
}

}  // namespace nitinol::testing
