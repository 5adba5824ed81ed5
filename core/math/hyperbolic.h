// tanh.
//
// Method: with u = e^(2|x|) - 1, computed without cancellation, tanh |x| = u / (u + 2). One
// division, no branch; the sign is put back at the end, so that tanh(-0) = -0.
#pragma once

#include "core/math/exp.h"

namespace nitinol {
namespace math {

template <class T, Lane X>
constexpr X tanh_of(X x) {
  constexpr T limit = sizeof(T) == 4 ? T{20} : T{40};  // of 2|x|: tanh is 1 from 18.1 (38.2) on
  const X a = abs(x);
  const X u = expm1_reduced<T>(at_most(a + a, limit));
  return flip_sign<T>(u / (u + T{2}), sign_of<T>(x));
}

}  // namespace math

/// Hyperbolic tangent; tanh(-0) = -0.
template <Lane X>
constexpr X tanh(X x) {
  return by_float_type(
      x, [](auto v) { return math::tanh_of<float>(v); },
      [](auto v) { return math::tanh_of<double>(v); });
}

}  // namespace nitinol
