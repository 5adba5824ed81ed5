// How reductions join two values, as their definitions read: what core/joins.h is compared with.
#pragma once

#include "core/reduction.h"

#include <cstdint>

namespace nitinol::reference {

/// What a reduction has come to: a value of its type as a bit pattern, zero-extended, and of arg_*
/// where it is.
struct Accumulated {
  uint64_t bits = 0;
  int64_t position = 0;
};

/// What changes nothing that it joins. Throws Error(internal) for a combine and a type that mean
/// nothing together.
[[nodiscard]] Accumulated nothing_of(const Reduction& reduction);

[[nodiscard]] Accumulated joined(const Reduction& reduction, const Accumulated& a,
                                 const Accumulated& b);

}  // namespace nitinol::reference
