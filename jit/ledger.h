// Ledger: whether one more signature is worth a Plan.
#pragma once

#include <algorithm>
#include <cstdint>

namespace nitinol::jit {

/// What the Plans of one function have cost and saved so far.
///
/// The first few signatures are compiled as soon as they are trusted. From then on a Plan is made
/// when it will probably repay: when what it saves a call, times the calls to be expected, is at
/// least what making it costs. As many calls are expected as the signature has had already, or as
/// the function's Plans have served on average.
class Ledger {
 public:
  static constexpr uint64_t always_compiled = 8;  ///< signatures

  void compiled(double seconds) {
    cost_ = seconds;
    spent_s_ += seconds;
    ++plans_;
  }
  void plan_runs() { ++plan_calls_; }
  void plan_did_not_run() { --plan_calls_; }
  /// One signature's times of a call, eagerly and by its Plan.
  void measured(double eager_s, double plan_s) {
    eager_s_ += eager_s;
    plan_s_ += plan_s;
  }

  /// Whether to compile a signature that has been called `calls` times and takes `eager_s` a call.
  [[nodiscard]] bool repays(uint64_t calls, double eager_s) const {
    if (plans_ < always_compiled) return true;
    const double expected = std::max(
        static_cast<double>(calls), static_cast<double>(plan_calls_) / static_cast<double>(plans_));
    return expected * eager_s * share_saved() >= cost_;
  }
  [[nodiscard]] uint64_t plans() const { return plans_; }
  [[nodiscard]] uint64_t plan_calls() const { return plan_calls_; }
  [[nodiscard]] double spent_s() const { return spent_s_; }

 private:
  /// Of the time of an eager call; a half until it has been measured.
  [[nodiscard]] double share_saved() const {
    return eager_s_ > 0 ? std::clamp(1 - plan_s_ / eager_s_, 0.02, 1.0) : 0.5;
  }

  double cost_ = 0;  ///< of the next Plan, which will be made like the last one
  double spent_s_ = 0;
  double eager_s_ = 0, plan_s_ = 0;
  uint64_t plans_ = 0, plan_calls_ = 0;
};

}  // namespace nitinol::jit
