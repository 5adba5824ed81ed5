// Race: whether a signature's Plan or its eager code is faster, from times taken in passing.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

namespace nitinol::jit {

/// Fed with pairs: the time of a call by the Plan and that of the eager call right after it. Both
/// see the same load of the machine, if not the same hiccups; so one pair proves nothing, and the
/// last eight decide together. A decision holds until as many pairs speak against it.
class Race {
 public:
  /// `plan_s` is followed by `eager_s`, which may be that of a recording: it costs a little more,
  /// so the doubt is the Plan's.
  void add_pair(double plan_s, double eager_s) {
    slower_ = static_cast<uint8_t>(slower_ << 1U | unsigned{plan_s > clearly * eager_s});
    faster_ = static_cast<uint8_t>(faster_ << 1U | unsigned{plan_s <= eager_s});
    if (pairs_ < considered) ++pairs_;
    plan_s_ = plan_s;
    eager_s_ = eager_s;
  }

  /// Why to run eagerly from now on, once nearly all of the last pairs say so.
  [[nodiscard]] std::optional<std::string> plan_lost() const {
    if (pairs_ < considered || __builtin_popcount(slower_) < nearly_all) return std::nullopt;
    return fmt::format("measured faster eagerly: {:.3g} us a call, its Plan {:.3g} us",
                       eager_s_ * 1e6, plan_s_ * 1e6);
  }
  /// Whether an earlier plan_lost() is to be revised: the Plan won most of the latest pairs.
  [[nodiscard]] bool plan_won() const {
    return __builtin_popcount(faster_ & ((1U << latest) - 1)) >= latest - 1;
  }

 private:
  static constexpr int considered = 8, nearly_all = 7, latest = 4;
  static constexpr double clearly = 1.25;  ///< below that the Plan stays: it needs less memory

  uint8_t slower_ = 0, faster_ = 0;  ///< a bit for each of the last pairs
  int pairs_ = 0;
  double plan_s_ = 0, eager_s_ = 0;  ///< of the last pair
};

}  // namespace nitinol::jit
