// How reductions join values, and in which order (design, section 5).
#pragma once

#include "core/scalar.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#pragma GCC visibility push(default)

namespace nitinol {

/// How a reduction joins two values (core/joins.h). maximum and minimum propagate NaN; arg_* give
/// the first position; log_add_exp is of scans of floats alone.
enum class Combine : uint8_t {
  add,
  multiply,
  maximum,
  minimum,
  logical_or,
  logical_and,
  arg_maximum,
  arg_minimum,
  log_add_exp
};

[[nodiscard]] std::string_view name_of(Combine combine);

/// Whether what is wanted is the position.
constexpr bool is_arg(Combine combine) {
  return combine == Combine::arg_maximum || combine == Combine::arg_minimum;
}
/// Where arg_* have no element yet: behind all positions.
inline constexpr int64_t no_position = std::numeric_limits<int64_t>::max();

/// One accumulator of a kernel. arg_* compare values of `type` and result in i64.
struct Reduction {
  Combine combine = Combine::add;
  ScalarType type = ScalarType::f32;
  friend bool operator==(const Reduction&, const Reduction&) = default;
};

/// The constants of the canonical order of reduction. Frozen: tests/core/reduction_order_test.cpp.
namespace reduction_order {
/// Interleaved lanes within a block when the innermost axis is reduced (Order::lanes), by
/// accumulator size.
inline constexpr int lanes_32 =
    64;  ///< element i of a block goes to lane i % 64 (types of 4 bytes or fewer)
inline constexpr int lanes_64 = 32;  ///< types of 8 bytes
/// Elements in a block of Order::lanes; blocks combine pairwise.
inline constexpr int64_t lanes_block = 4096;
/// Elements in a run, a part of such a block: lanes start from the neutral element in each, and
/// then join those of the runs before. Long chains of additions lose digits
/// (docs/decisions/0011-short-chains.md).
inline constexpr int64_t lanes_run = 1024;
/// Elements in a block of Order::sequential, where the order of joining shows and where not.
inline constexpr int64_t ordered_block = 16, unordered_block = 256;
/// Elements in a run of a scan: their running sums are formed one after another, and get what comes
/// before the run, which is the scan of the runs' totals (docs/decisions/0013-scans-in-runs.md).
inline constexpr int64_t scan_run = 16;
}  // namespace reduction_order

/// Lanes that a reduction of this accumulator type has.
[[nodiscard]] int lanes_of(ScalarType type);
/// Whether the order of joining shows in the result: that of floating sums and products does.
[[nodiscard]] bool depends_on_order(const Reduction& reduction);
/// Lanes of those whose order of joining shows: Order::across visits each by itself. 0 if there are
/// none, nothing if they differ.
[[nodiscard]] std::optional<int> lanes_in_common(std::span<const Reduction> reductions);
/// Bits of the value that, joined with x, gives x. Throws Error(internal) for a combine and a type
/// that mean nothing together.
[[nodiscard]] uint64_t neutral_bits(const Reduction& reduction);
/// Throws that Error(internal).
[[noreturn]] void throw_meaningless(const Reduction& reduction);

}  // namespace nitinol

#pragma GCC visibility pop
