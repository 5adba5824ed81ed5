// Race: whether a signature's Plan or its eager code is faster, from times taken in passing.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nitinol::jit {

/// Fed with pairs: the time of a call by the Plan and that of the call right after it. Both see the
/// same load of the machine, if not the same hiccups; so one pair proves nothing.
///
/// Calls that are recorded anyway are compared first, though a recording takes longer than an eager
/// call. If the Plan does not clearly win, later than in the first such pair, it is doubted: pairs
/// with eager calls are asked for, as long as it keeps losing, and the last eight of them decide
/// together. A decision holds until as many pairs speak against it.
class Race {
 public:
  /// `recording_s`: the call after that of `plan_s` was recorded.
  void add_recording(double plan_s, double recording_s) {
    if (!is_first_ && plan_s > doubtful * recording_s) wanted_ = considered;
    is_first_ = false;  // of a Plan that may not have run before
  }
  /// As add_recording(), of an eager call: the race only begins if the Plan is doubted.
  void add_first(double plan_s, double eager_s) {
    add_recording(plan_s, eager_s);
    latest_ = {plan_s, eager_s};
  }
  /// `eager_s`: that call ran eagerly.
  void add_pair(double plan_s, double eager_s) {
    slower_ = static_cast<uint8_t>(slower_ << 1U | unsigned{plan_s > clearly * eager_s});
    faster_ = static_cast<uint8_t>(faster_ << 1U | unsigned{plan_s <= eager_s});
    if (pairs_ < considered) ++pairs_;
    latest_ = {plan_s, eager_s};
    if (wanted_ > 0) --wanted_;
    if ((slower_ & 3U) == 0) wanted_ = 0;
  }
  /// Whether the next calls are to be such a pair.
  [[nodiscard]] bool wants_pair() const { return wanted_ > 0; }

  /// The times of two calls, one after the other.
  struct Pair {
    double plan_s = 0, eager_s = 0;
  };
  /// Those of the last pair; zeros if there has been none.
  [[nodiscard]] Pair latest_pair() const { return latest_; }

  /// Why to run eagerly from now on, once nearly all of the last pairs say so.
  [[nodiscard]] std::optional<std::string> plan_lost(std::string_view what = "its Plan") const {
    if (pairs_ < considered || __builtin_popcount(slower_) < nearly_all) return std::nullopt;
    return fmt::format("measured faster eagerly: {:.3g} us a call, {} {:.3g} us",
                       latest_.eager_s * 1e6, what, latest_.plan_s * 1e6);
  }
  /// Whether an earlier plan_lost() is to be revised: the Plan won most of the latest pairs.
  [[nodiscard]] bool plan_won() const {
    return __builtin_popcount(faster_ & ((1U << last) - 1)) >= last - 1;
  }

 private:
  static constexpr int considered = 8, nearly_all = 7, last = 4;
  static constexpr double clearly = 1.05;   ///< below that the Plan stays: it needs less memory
  static constexpr double doubtful = 0.85;  ///< of a recording's time

  uint8_t slower_ = 0, faster_ = 0;  ///< a bit for each of the last pairs
  int pairs_ = 0, wanted_ = 0;
  bool is_first_ = true;
  Pair latest_;
};

}  // namespace nitinol::jit
