// Domain: the loops of one launch, in the form in which they are walked.
#pragma once

#include "core/launch.h"
#include "core/shape.h"

#include <array>
#include <cstdint>

namespace nitinol {
struct Kernel;
}  // namespace nitinol

namespace nitinol::host {

/// Most operands of a kernel; fusion stays below it.
inline constexpr std::size_t max_operands = 128;

/// Address of an operand's element, or the number itself of a position; null for scalars.
using Pointers = std::array<char*, max_operands>;
/// Bytes (position: units) per step of a loop, per operand.
using Steps = std::array<int64_t, max_operands>;

/// The row loops (Order::none: all loops) and the reduced loop. But for Order::lanes there is at
/// least one row loop.
/// Left uninitialised beyond `rank` and `operands`.
struct Domain {
  std::size_t operands;
  int rank;
  std::array<int64_t, max_rank> sizes;
  std::array<Steps, max_rank> steps;  ///< [loop][operand]
  int64_t reduced_size;               ///< 1 for Order::none
  Steps reduced_steps;
  Pointers base;
  bool is_empty;  ///< no rows: nothing to do

  Domain() {}  // NOLINT: large, and filled by domain_of
  /// Product of the sizes of loops [first, last).
  [[nodiscard]] int64_t count(int first, int last) const {
    int64_t product = 1;
    for (int i = first; i < last; ++i) product *= sizes[static_cast<std::size_t>(i)];
    return product;
  }
};

/// Fills `domain` with the loops of a launch of `kernel`. Throws Error(internal) if the operands
/// move along the innermost loop in another way than the kernel says, or an output is an input's
/// memory without saying so.
void make_domain(const Kernel& kernel, const Launch& launch, Domain& domain);

/// Whether an input or output of Kernel::reduced_loops does not walk them as one loop.
[[nodiscard]] bool walks_apart(const Kernel& kernel, const Launch& launch, std::size_t operand);

/// Whether the elements of an input of Order::none lie side by side along the loop before the
/// innermost one, where code expects them so along the innermost.
[[nodiscard]] bool lies_across(const Kernel& kernel, const Domain& domain, std::size_t operand);

/// Pointers at the point whose linear number in loops [0, loops) is `index`, all other indices
/// zero.
void seek(const Domain& domain, int loops, int64_t index, Pointers& pointers);

}  // namespace nitinol::host
