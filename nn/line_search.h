// How far to go along a line on which a function descends.
#pragma once

#include "core/function_ref.h"

#include <cstdint>

namespace nitinol::nn {

/// The function at a place of the line.
struct LinePoint {
  double step = 0, value = 0, slope = 0;
};

/// A step that satisfies the strong Wolfe conditions, with c1 = 1e-4 and c2 = 0.9: the value is
/// less by a share of what the first slope promises, and the slope is less steep (J. Nocedal, S.
/// Wright, Numerical Optimization, 2nd edition, algorithms 3.5 and 3.6, with cubic interpolation).
/// Where `evaluations` do not suffice: the least that was found, which may be `start`.
///
/// start: at step 0, with a negative slope. first: the step to try first. A value that is no number
/// counts as too far.
[[nodiscard]] LinePoint search_line(const LinePoint& start, double first, int64_t evaluations,
                                    FunctionRef<LinePoint(double step)> function);

}  // namespace nitinol::nn
