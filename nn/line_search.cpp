#include "nn/line_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nitinol::nn {
namespace {

bool is_finite(const LinePoint& point) {
  return std::isfinite(point.value) && std::isfinite(point.slope);
}

/// The minimum of the cubic through two points with their slopes (Nocedal and Wright, (3.59)),
/// within limits; their middle where there is none.
double cubic_minimum(const LinePoint& a, const LinePoint& b, double least, double most) {
  const double middle = (least + most) / 2;
  if (!is_finite(a) || !is_finite(b) || a.step == b.step) return middle;
  const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return middle;
  const double d2 = std::copysign(std::sqrt(square), b.step - a.step);
  const double at = b.step - (b.step - a.step) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
  return std::isfinite(at) ? std::clamp(at, least, most) : middle;
}

class Search {
 public:
  Search(const LinePoint& start, int64_t evaluations, FunctionRef<LinePoint(double)> function)
      : start_(start), left_(evaluations), function_(function) {}

  LinePoint from(double step) {
    LinePoint before = start_;
    while (left_ > 0) {
      const LinePoint now = at(step);
      if (is_too_high(now) || (before.step > 0 && now.value >= before.value))
        return between(before, now);
      if (is_flat(now)) return now;
      if (now.slope >= 0) return between(now, before);
      const double least = now.step + 0.01 * (now.step - before.step);
      step = cubic_minimum(before, now, least, 10 * now.step);
      before = now;
    }
    return before;
  }

 private:
  LinePoint at(double step) {
    --left_;
    return function_(step);
  }
  [[nodiscard]] bool is_too_high(const LinePoint& point) const {
    return !is_finite(point) || point.value > start_.value + 1e-4 * point.step * start_.slope;
  }
  /// Whether what the slope promises at a step is less than the value is known to.
  [[nodiscard]] bool is_lost(double step) const {
    return step * -start_.slope < std::numeric_limits<double>::epsilon() * std::abs(start_.value);
  }
  [[nodiscard]] bool is_flat(const LinePoint& point) const {
    return std::abs(point.slope) <= -0.9 * start_.slope;
  }

  /// `low` is the least one that descends enough, and there is such a step between it and `high`.
  LinePoint between(LinePoint low, LinePoint high) {
    while (left_ > 0) {
      const double first = std::min(low.step, high.step), last = std::max(low.step, high.step);
      const double margin = 0.1 * (last - first);
      if (!(margin > 1e-12 * last) || is_lost(last)) break;
      const LinePoint now = at(cubic_minimum(low, high, first + margin, last - margin));
      if (is_too_high(now) || now.value >= low.value) {
        high = now;
        continue;
      }
      if (is_flat(now)) return now;
      if (now.slope * (high.step - low.step) >= 0) high = low;
      low = now;
    }
    return low;
  }

  LinePoint start_;
  int64_t left_;
  FunctionRef<LinePoint(double)> function_;
};

}  // namespace

LinePoint search_line(const LinePoint& start, double first, int64_t evaluations,
                      FunctionRef<LinePoint(double step)> function) {
  return Search(start, evaluations, function).from(first);
}

}  // namespace nitinol::nn
