// Kernel: one fused loop nest, made from one op (eager) or a fused group (compiled).
//
// A kernel says everything that code depends on and nothing else: sizes, strides, offsets, scalars
// and addresses come with each Launch. Two kernels that compare equal can share machine code.
//
// Order::none       Elementwise. One stage at Level::element runs at every point of the domain. The
// innermost
//                   loop dimension is the last one. Whoever launches turns inputs whose elements
//                   lie side by side along the one before it.
// Order::lanes      The last loop dimension is the reduced one ("element" dimension), of length R;
// those before it
//                   are rows. Stages alternate: an element stage visits the R points of a row and
//                   accumulates; a row stage runs once per row on what was accumulated.
// Order::sequential The last loop dimension is the reduced one; elements are visited in its order
// for many rows at
//                   once, and the innermost (vectorised) loop is the last row dimension.
// Order::turned     The same loops as Order::sequential, but each row joins as in Order::lanes: for
// rows of so few
//                   elements that a vector takes many of them. Whoever launches turns operands
//                   whose elements do not lie so, and those of Order::sequential whose elements lie
//                   side by side along the reduced dimension.
// Order::across     The same loops again, and rows of any length that join as in Order::lanes: for
// rows that lie
//                   side by side in memory, as the channels of images whose channels lie last. A
//                   stage visits the elements of one lane after another.
//
// Example: softmax over the last axis of x[n, m]:
//   stage 0 element: max0 <- x
//   stage 1 element: sum1 <- exp(x - max0)
//   stage 2 element: store exp(x - max0) / sum1
// where stage 1 may also store exp(x - max0) to a scratch operand, which stage 2 loads.
#pragma once

#include "core/dtype.h"
#include "core/loops.h"
#include "core/reduction.h"
#include "core/scalar.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nitinol {

/// What an operand of a kernel is.
enum class Role : uint8_t {
  input,     ///< read from memory
  output,    ///< written to memory
  scalar,    ///< a run-time number: one 8-byte slot of Launch::scalars, in the operand's dtype
  position,  ///< the i64 number offset + sum(index * stride): where we are (create ops, argmax)
  scratch,   ///< memory of the driver's, one element per point, for a launch: an element stage of
             ///< Order::lanes stores what later ones load; strides are contiguous
};

/// How an operand moves along the innermost loop: not at all, to the next element, or by a run-time
/// stride.
enum class StrideClass : uint8_t { zero, one, any };

struct Operand {
  Role role = Role::input;
  DType dtype = f32;
  StrideClass inner = StrideClass::one;
  /// output: the input operand whose memory it may be exactly; it overlaps no other. scratch: the
  /// output whose memory it is, with the same strides and stored after scratch is loaded; -1: its
  /// own.
  int16_t alias = -1;
  friend bool operator==(const Operand&, const Operand&) = default;
};

/// Where argument k of a stage's program comes from.
struct Source {
  enum class Kind : uint8_t {
    operand,    ///< loaded, and converted to the compute type of its dtype (exactly)
    reduction,  ///< result of a reduction of an earlier stage
    row_value,  ///< value that an earlier row stage kept
  };
  Kind kind = Kind::operand;
  uint16_t index = 0;
  friend bool operator==(const Source&, const Source&) = default;
};

/// What is done with value `value` of a stage's program.
struct Sink {
  enum class Kind : uint8_t {
    store,       ///< to operand `index`: already rounded, the conversion to its dtype is exact
    accumulate,  ///< into reduction `index`
    row_value,   ///< kept as row value `index` for later stages
    check,  ///< a pred; where it does not hold, the launch's status becomes Status::Code `index`
  };
  Kind kind = Kind::store;
  uint16_t index = 0;
  uint32_t value = 0;
  friend bool operator==(const Sink&, const Sink&) = default;
};

/// A program run at each point of the element dimension, or once per row. It may load from inputs
/// that are no sources, at places it computes.
struct Stage {
  enum class Level : uint8_t { element, row };
  Level level = Level::element;
  ScalarProgram program;
  std::vector<Source> sources;
  std::vector<Sink> sinks;
  friend bool operator==(const Stage&, const Stage&) = default;
};

/// Order in which reductions combine (design, section 5).
enum class Order : uint8_t { none, lanes, sequential, turned, across };

/// The longest row of Order::turned: its elements are a lane each.
inline constexpr int64_t longest_turned_row = 31;

/// Whether outputs go around the caches: for outputs far larger than the last-level cache.
enum class Stores : uint8_t { cached, non_temporal };

/// The loops of the op this kernel was made from, for eager.
struct Prebuilt {
  Loops loops = {};  ///< elementwise: over compute types
  Loops check = {};  ///< of its check, if it has one
  /// Formula::loops_at, or null.
  LoopsAt (*loops_at)(ScalarType argument, double value) = nullptr;
  /// Which loops they are is not part of a kernel's identity: they follow from the rest.
  friend bool operator==(const Prebuilt&, const Prebuilt&) { return true; }
};

/// How code is made where there is none yet, and what tools show of it.
struct Making {
  bool is_quick = false;  ///< at first as quickly as possible, and better while it runs
  /// "add_mul_tanh", an identifier: the operations of who asks for the code. Empty: unknown.
  std::string name = {};
  std::string place = {};  ///< "model.cpp:42": where they were applied, if a tool asks; else empty
  /// None of that is part of a kernel's identity either.
  friend bool operator==(const Making&, const Making&) { return true; }
};

/// Kernels are equal if code for one is code for the other.
struct Kernel {
  std::vector<Operand> operands;
  std::vector<Stage> stages;
  std::vector<Reduction> reductions;
  std::vector<ScalarType> row_values;
  Order order = Order::none;
  /// Of Order::lanes: how many of a launch's last loops are reduced, as one loop of their product.
  /// If more than one, an input or output of StrideClass::one need not walk them as one: where it
  /// does not, it is brought into rows first, and back.
  uint8_t reduced_loops = 1;
  Stores stores = Stores::cached;
  Prebuilt prebuilt;
  Making making = {};
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// Hash over what is compared.
[[nodiscard]] std::size_t hash_of(const Kernel& kernel);
/// What is compared as bytes, which are equal exactly if the kernels are, in every process that
/// runs this version of the library.
[[nodiscard]] std::vector<std::byte> canonical_bytes(const Kernel& kernel);
/// The kernel as readable text.
[[nodiscard]] std::string to_string(const Kernel& kernel);

/// Whether the stage loads elements of operand `operand` from places that it computes
/// (ScalarOp::load).
[[nodiscard]] bool looks_up(const Stage& stage, std::size_t operand);

/// Whether a stage checks something, so that launches need a status.
[[nodiscard]] bool has_checks(const Kernel& kernel);

/// Arithmetic operations of a launch with these sizes: instructions that compute, each once (but an
/// fma twice) at each point or row; not those that only some lanes need.
[[nodiscard]] double operations_of(const Kernel& kernel, std::span<const int64_t> sizes);

/// Elements in a block of the reduced dimension.
[[nodiscard]] int64_t block_of(const Kernel& kernel);

}  // namespace nitinol
