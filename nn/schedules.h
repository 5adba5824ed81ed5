// Learning rates by the step.
//
//     optimizer.set_rate(schedule(i));
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// The learning rate of step 0, 1, 2, ...: `optimizer.set_rate(schedule(i))`. Making one throws
/// Error(value) for rates or factors that are negative or not finite and for numbers of steps below
/// 1 (0, for warm_up); calling one, for a negative step.
using Schedule = std::function<double(int64_t step)>;

/// Always `rate`: a part of joined().
[[nodiscard]] Schedule constant_rate(double rate);
/// rate * factor^(step / every), rounded down.
[[nodiscard]] Schedule step_decay(double rate, int64_t every, double factor = 0.1);
/// `rate`, times `factor` from each of these steps on, which rise.
[[nodiscard]] Schedule multi_step_decay(double rate, const std::vector<int64_t>& steps,
                                        double factor = 0.1);
/// rate * factor^step.
[[nodiscard]] Schedule exponential_decay(double rate, double factor);
/// From `rate` to `last` along a line over `steps`, then `last`.
[[nodiscard]] Schedule linear_decay(double rate, int64_t steps, double last = 0);
/// last + (rate - last) * (1 - step / steps)^power, then `last`.
[[nodiscard]] Schedule polynomial_decay(double rate, int64_t steps, double power = 1,
                                        double last = 0);
/// From `rate` to `last` along half a cosine over `steps` (arXiv:1608.03983), then `last`.
[[nodiscard]] Schedule cosine_decay(double rate, int64_t steps, double last = 0);
/// cosine_decay again and again; each is `growth` times as long as the one before.
[[nodiscard]] Schedule cosine_restarts(double rate, int64_t steps, int64_t growth = 1,
                                       double last = 0);
/// Up to `rate` along half a cosine, then down, in `steps` steps (L. Smith, N. Topin,
/// arXiv:1708.07120), as in PyTorch: from rate / first_divisor, the share `rise` of the steps long,
/// to rate / first_divisor / last_divisor, where it stays. Throws Error(value) unless
/// 1 < rise * steps and rise < 1.
[[nodiscard]] Schedule one_cycle(double rate, int64_t steps, double rise = 0.3,
                                 double first_divisor = 25, double last_divisor = 1e4);
/// Rises linearly to `then`'s first rate during `steps` steps, then follows it from its beginning.
[[nodiscard]] Schedule warm_up(int64_t steps, Schedule then);
/// One after another: number i + 1 begins, with its step 0, at starts[i], which rise. Throws
/// Error(value) unless there is one start less than there are schedules.
[[nodiscard]] Schedule joined(std::vector<Schedule> schedules, std::vector<int64_t> starts);

}  // namespace nitinol::nn

#pragma GCC visibility pop
