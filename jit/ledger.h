// Ledger: whether one more signature is worth a Plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace nitinol::jit {

/// What the Plans of one function have cost and saved so far.
///
/// The first few signatures are compiled as soon as they are trusted. From then on a Plan is made
/// when it will probably repay: when what it saves a call, times the calls to be expected, is at
/// least what making it costs. As many calls are expected as the signature has had already, or as
/// the function's Plans have served on average. A Plan that costs no more than a few eager calls is
/// made on trust, as long as what such Plans have cost beyond what they save, and how many there
/// are beyond the calls that they have served, stays small: so lengths that come in turn have
/// theirs before they come again, and lengths that never do lose no more than that.
class Ledger {
 public:
  static constexpr uint64_t always_compiled = 8;  ///< signatures
  static constexpr double few_calls = 16, ventured_s = 0.25;
  static constexpr uint64_t ventured_plans = 64;

  void compiled(double seconds) {
    if (plans_ >= always_compiled) later_s_ += seconds;
    cost_ = std::min(last_s_, seconds);
    last_s_ = seconds;
    spent_s_ += seconds;
    ++plans_;
  }
  void plan_runs() { ++plan_calls_; }
  void plan_did_not_run() { --plan_calls_; }
  /// One signature's times of a call, eagerly and by its Plan.
  void measured(double eager_s, double plan_s) {
    eager_s_ += eager_s;
    plan_s_ += plan_s;
    ++measured_;
  }

  /// Whether to compile a signature that has been called `calls` times and takes `eager_s` a call.
  [[nodiscard]] bool repays(uint64_t calls, double eager_s) const {
    if (plans_ < always_compiled) return true;
    const double expected = std::max(
        static_cast<double>(calls), static_cast<double>(plan_calls_) / static_cast<double>(plans_));
    if (expected * eager_s * share_saved() >= cost_) return true;
    return plans_ < plan_calls_ + ventured_plans && cost_ <= few_calls * eager_s &&
           later_s_ + cost_ <= ventured_s + saved_s();
  }
  [[nodiscard]] uint64_t plans() const { return plans_; }
  [[nodiscard]] uint64_t plan_calls() const { return plan_calls_; }
  [[nodiscard]] double spent_s() const { return spent_s_; }

 private:
  /// Of the time of an eager call; a half until it has been measured.
  [[nodiscard]] double share_saved() const {
    return eager_s_ > 0 ? std::clamp(1 - plan_s_ / eager_s_, 0.02, 1.0) : 0.5;
  }

  /// By all Plan calls so far.
  [[nodiscard]] double saved_s() const {
    if (measured_ == 0) return 0;
    return std::max(eager_s_ - plan_s_, 0.0) * static_cast<double>(plan_calls_) /
           static_cast<double>(measured_);
  }

  /// Of the next Plan, which will be made like the last two; the machine may have been busy at one.
  double cost_ = 0;
  double last_s_ = std::numeric_limits<double>::infinity();
  double spent_s_ = 0, later_s_ = 0;  ///< on all, on those after the first
  double eager_s_ = 0, plan_s_ = 0;
  uint64_t plans_ = 0, plan_calls_ = 0, measured_ = 0;
};

}  // namespace nitinol::jit
