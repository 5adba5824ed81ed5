#include "nn/schedules.h"

#include "core/callable.h"
#include "core/error.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace nitinol::nn {
namespace {

int64_t checked_step(const char* where, int64_t step) {
  check_at_least(where, "step", step, 0);
  return step;
}

void check_rates(const char* where, double rate, int64_t steps, double last) {
  check_setting(where, "rate", rate, Interval::not_negative);
  check_at_least(where, "steps", steps, 1);
  check_setting(where, "last", last, Interval::not_negative);
}

void check_rising(const char* where, const char* setting, const std::vector<int64_t>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i)
    check_at_least(where, setting, steps[i], i == 0 ? 1 : steps[i - 1] + 1);
}

/// From `first` to `last` along half a cosine while `share` goes from 0 to 1.
double along_cosine(double first, double last, double share) {
  return last + (first - last) * 0.5 * (1 + std::cos(std::numbers::pi * share));
}

double share_of(int64_t step, int64_t steps) {
  return static_cast<double>(step) / static_cast<double>(steps);
}

}  // namespace

Schedule constant_rate(double rate) {
  check_setting("constant_rate", "rate", rate, Interval::not_negative);
  return [=](int64_t step) { return checked_step("constant_rate", step), rate; };
}

Schedule step_decay(double rate, int64_t every, double factor) {
  check_setting("step_decay", "rate", rate, Interval::not_negative);
  check_at_least("step_decay", "every", every, 1);
  check_setting("step_decay", "factor", factor, Interval::not_negative);
  return [=](int64_t step) {
    const int64_t decays = checked_step("step_decay", step) / every;
    return rate * std::pow(factor, static_cast<double>(decays));
  };
}

Schedule multi_step_decay(double rate, const std::vector<int64_t>& steps, double factor) {
  check_setting("multi_step_decay", "rate", rate, Interval::not_negative);
  check_rising("multi_step_decay", "steps", steps);
  check_setting("multi_step_decay", "factor", factor, Interval::not_negative);
  return [=](int64_t step) {
    checked_step("multi_step_decay", step);
    const auto decays = std::ranges::upper_bound(steps, step) - steps.begin();
    return rate * std::pow(factor, static_cast<double>(decays));
  };
}

Schedule exponential_decay(double rate, double factor) {
  check_setting("exponential_decay", "rate", rate, Interval::not_negative);
  check_setting("exponential_decay", "factor", factor, Interval::not_negative);
  return [=](int64_t step) {
    return rate * std::pow(factor, static_cast<double>(checked_step("exponential_decay", step)));
  };
}

Schedule linear_decay(double rate, int64_t steps, double last) {
  check_rates("linear_decay", rate, steps, last);
  return [=](int64_t step) {
    if (checked_step("linear_decay", step) >= steps) return last;
    return rate + (last - rate) * share_of(step, steps);
  };
}

Schedule polynomial_decay(double rate, int64_t steps, double power, double last) {
  check_rates("polynomial_decay", rate, steps, last);
  check_setting("polynomial_decay", "power", power, Interval::not_negative);
  return [=](int64_t step) {
    if (checked_step("polynomial_decay", step) >= steps) return last;
    return last + (rate - last) * std::pow(1 - share_of(step, steps), power);
  };
}

Schedule cosine_decay(double rate, int64_t steps, double last) {
  check_rates("cosine_decay", rate, steps, last);
  return [=](int64_t step) {
    if (checked_step("cosine_decay", step) >= steps) return last;
    return along_cosine(rate, last, share_of(step, steps));
  };
}

Schedule cosine_restarts(double rate, int64_t steps, int64_t growth, double last) {
  check_rates("cosine_restarts", rate, steps, last);
  check_at_least("cosine_restarts", "growth", growth, 1);
  return [=](int64_t step) {
    checked_step("cosine_restarts", step);
    auto left = static_cast<double>(growth == 1 ? step % steps : step);
    auto length = static_cast<double>(steps);
    while (left >= length) {
      left -= length;
      length *= static_cast<double>(growth);
    }
    return along_cosine(rate, last, left / length);
  };
}

Schedule one_cycle(double rate, int64_t steps, double rise, double first_divisor,
                   double last_divisor) {
  check_setting("one_cycle", "rate", rate, Interval::not_negative);
  check_at_least("one_cycle", "steps", steps, 1);
  check_setting("one_cycle", "rise", rise, Interval::below_one);
  check_setting("one_cycle", "first_divisor", first_divisor, Interval::positive);
  check_setting("one_cycle", "last_divisor", last_divisor, Interval::positive);
  const double top = rise * static_cast<double>(steps) - 1;  // the step of the highest rate
  const auto end = static_cast<double>(steps - 1);
  if (!(top > 0)) {
    throw Error(ErrorKind::value, {.where = "one_cycle",
                                   .what = "the rate rises for rise * steps steps",
                                   .expected = "more than 1",
                                   .got = fmt::format("{}", rise * static_cast<double>(steps)),
                                   .fix = "Give a greater share, or more steps."});
  }
  const double first = rate / first_divisor;
  return [=](int64_t step) {
    const auto at = static_cast<double>(checked_step("one_cycle", step));
    if (at <= top) return along_cosine(first, rate, at / top);
    return along_cosine(rate, first / last_divisor, std::min((at - top) / (end - top), 1.0));
  };
}

Schedule warm_up(int64_t steps, Schedule then) {
  check_at_least("warm_up", "steps", steps, 0);
  check_callable("warm_up", then);
  return [steps, then = std::move(then)](int64_t step) {
    if (checked_step("warm_up", step) >= steps) return then(step - steps);
    return then(0) * static_cast<double>(step + 1) / static_cast<double>(steps);
  };
}

Schedule joined(std::vector<Schedule> schedules, std::vector<int64_t> starts) {
  if (schedules.size() != starts.size() + 1) {
    throw Error(ErrorKind::value,
                {.where = "joined",
                 .what = fmt::format("{} schedules", schedules.size()),
                 .expected = "one more than there are starts",
                 .got = fmt::format("{} starts", starts.size()),
                 .fix = "Give the step at which each begins, but for the first."});
  }
  for (const Schedule& each : schedules) check_callable("joined", each);
  check_rising("joined", "starts", starts);
  return [schedules = std::move(schedules), starts = std::move(starts)](int64_t step) {
    checked_step("joined", step);
    const auto i =
        static_cast<std::size_t>(std::ranges::upper_bound(starts, step) - starts.begin());
    return schedules[i](i == 0 ? step : step - starts[i - 1]);
  };
}

}  // namespace nitinol::nn
