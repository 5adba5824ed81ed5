// Functions that the C library does not have, in long double: what ours are compared with.
#pragma once

#include <cmath>
#include <iterator>
#include <limits>

namespace nitinol::special {

/// The number whose erf is x: Newton's method, from below.
inline long double erfinv(long double x) {
  const long double a = std::fabs(x), root_pi = 1.77245385090551602729816748334114518280L;
  if (a == 0) return x;
  if (a == 1) return std::copysign(std::numeric_limits<long double>::infinity(), x);
  if (!(a < 1)) return std::numeric_limits<long double>::quiet_NaN();
  long double y = std::sqrt(-std::log1p(-a * a)) * 0.88L;
  for (int i = 0; i < 30; ++i) {
    const long double rest = a < 0.5L ? a - std::erf(y) : std::erfc(y) - (1 - a);
    y += rest * root_pi / 2 * std::exp(y * y);
  }
  return std::copysign(y, x);
}

/// cdf of the normal distribution, whose argument x / sqrt 2 long double cannot hold well enough.
inline long double normal_cdf(long double x) {
  const long double y = -x * 0.70710678118654752440084436210484903928L;
  const long double exact = x * x / 2, off = std::fma(x, x / 2, -exact);
  const long double square = y * y, rest = std::fma(y, y, -square);
  const long double lost = y > 1 && y < 100 ? (square - exact) + (rest - off) : 0.0L;
  return std::erfc(y) / 2 * std::exp(lost);
}

/// The derivative of x normal_cdf(x); far left it is a negative number too small for the type.
inline long double gelu_slope(long double x) {
  const long double density = std::exp(-x * x / 2) * 0.398942280401432677939946059934L;
  const long double slope = normal_cdf(x) + (density == 0 ? 0 : x * density);
  return slope == 0 ? -0.0L : slope;
}

/// The derivative of lgamma: its recurrence up to 40, then Stirling's series; reflected on the
/// left. Beside the zero between 1 and 2, where that cancels, by Taylor's series.
inline long double digamma(long double x) {
  constexpr long double pi = 3.14159265358979323846264338327950288L;
  constexpr double zero = 1.4616321449683622;
  constexpr long double zero_low = 9.549995429965697715184e-17L;
  if (std::isinf(x)) return x > 0 ? x : std::numeric_limits<long double>::quiet_NaN();
  if (x == 0) return -1 / x;
  if (std::fabs(x - zero) < 0.06L) {
    const long double distance = (x - zero) - zero_low;
    constexpr long double taylor[] = {
        0.967672245447621170427L,   -0.442763168983592106093L,  0.258499760955651010624L,
        -0.163942705442406527504L,  0.107824050691262365757L,   -0.0721995612564547109261L,
        0.0488042881641431072251L,  -0.0331611264748473592923L, 0.0225976482322181046596L,
        -0.0154247659049489591388L, 0.0105387916166121753881L,  -0.00720453438635686824097L,
        0.00492678139572985344635L, -0.00336980165543932808279L};
    long double sum = 0;
    for (auto c = std::rbegin(taylor); c != std::rend(taylor); ++c) sum = sum * distance + *c;
    return sum * distance;
  }
  if (x < 0) {
    const long double fraction = x - std::nearbyint(x);
    if (fraction == 0) return std::numeric_limits<long double>::quiet_NaN();
    return digamma(1 - x) - pi / std::tan(pi * fraction);
  }
  long double sum = 0;
  for (; x < 40; ++x) sum -= 1 / x;
  const long double u = 1 / (x * x);
  const long double series = 1 / 12.0L - u * (1 / 120.0L - u * (1 / 252.0L - u * (1 / 240.0L)));
  return sum + std::log(x) - 0.5L / x - u * series;
}

}  // namespace nitinol::special
