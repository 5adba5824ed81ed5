// Race: whether a signature's Plan or its eager code is faster, from times taken in passing.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

namespace nitinol::jit {

/// Fed with the time of each scheduled recording and of the Plan call before it. Each side's best
/// time counts, since other work on the machine only ever adds. A recording costs a little more
/// than an eager call, so the doubt is the Plan's.
class Race {
 public:
  void plan_took(double seconds) { plan_.add(seconds); }
  void recording_took(double seconds) { recording_.add(seconds); }

  /// Why to run eagerly from now on, once that is clear.
  [[nodiscard]] std::optional<std::string> verdict() const {
    if (plan_.count < enough || recording_.count < enough) return std::nullopt;
    if (plan_.best < clearly * recording_.best) return std::nullopt;
    return fmt::format("measured faster eagerly: {:.3g} us a call, its Plan {:.3g} us",
                       recording_.best * 1e6, plan_.best * 1e6);
  }

 private:
  static constexpr int enough = 4;         ///< times of each side
  static constexpr double clearly = 1.25;  ///< below that the Plan stays: it needs less memory

  struct Side {
    double best = std::numeric_limits<double>::infinity();
    int count = 0;
    void add(double seconds) {
      best = std::min(best, seconds);
      ++count;
    }
  };
  Side plan_, recording_;
};

}  // namespace nitinol::jit
