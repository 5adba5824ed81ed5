// How scans join logarithms of sums: that part of core/joins.h which needs the formulas of exp and
// log.
#pragma once

#include "core/joins.h"
#include "core/math/hypot.h"

namespace nitinol::joins {

/// logaddexp(), but that nothing before b leaves b as it is, be it -0.
template <Lane X>
constexpr X log_add_exp(const X& a, const X& b) {
  const X sum = logaddexp(a, b);
  return by_float_type(
      a, [&](auto v) { return select(v == -math::infinity<float>, b, sum); },
      [&](auto v) { return select(v == -math::infinity<double>, b, sum); });
}

}  // namespace nitinol::joins
