// Learning rates by the step, some against what PyTorch's schedulers gave.
#include "nn/schedules.h"

#include "nitinol.h"

#include <catch2/catch.hpp>

#include <functional>
#include <limits>
#include <vector>

using namespace nitinol;

namespace {

std::vector<double> rates_of(const nn::Schedule& schedule, int64_t count) {
  std::vector<double> rates;
  for (int64_t i = 0; i < count; ++i) rates.push_back(schedule(i));
  return rates;
}

void check_rates(const nn::Schedule& schedule, const std::vector<double>& expected) {
  const std::vector<double> got = rates_of(schedule, static_cast<int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("step " << i);
    CHECK(got[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-15));
  }
}

}  // namespace

TEST_CASE("schedules step down, along a cosine, and rise at first", "[nn]") {
  const nn::Schedule steps = nn::step_decay(1.0, 10, 0.5);
  CHECK(steps(9) == 1.0);
  CHECK(steps(10) == 0.5);
  CHECK(steps(25) == 0.25);
  const nn::Schedule cosine = nn::cosine_decay(1.0, 100, 0.2);
  CHECK(cosine(0) == 1.0);
  CHECK(cosine(50) == Approx(0.6));
  CHECK(cosine(99) > 0.2);
  CHECK(cosine(100) == 0.2);
  CHECK(cosine(101) == 0.2);  // where the cosine would rise again
  CHECK(cosine(150) == 0.2);
  const nn::Schedule warm = nn::warm_up(4, cosine);
  CHECK(warm(0) == 0.25);
  CHECK(warm(3) == 1.0);
  CHECK(warm(4) == 1.0);  // the schedule's own first step
  CHECK(warm(5) == cosine(1));
  CHECK(warm(54) == Approx(0.6));
}

TEST_CASE("schedules step down, along lines, powers and cosines", "[nn]") {
  check_rates(nn::constant_rate(0.5), {0.5, 0.5, 0.5});
  check_rates(nn::multi_step_decay(1, {2, 3, 6}, 0.5), {1, 1, 0.5, 0.25, 0.25, 0.25, 0.125});
  check_rates(nn::multi_step_decay(1, {}), {1, 1});
  check_rates(nn::exponential_decay(2, 0.5), {2, 1, 0.5, 0.25});
  check_rates(nn::linear_decay(1, 4), {1, 0.75, 0.5, 0.25, 0, 0});
  check_rates(nn::linear_decay(0.25, 3, 1), {0.25, 0.5, 0.75, 1, 1});  // it may rise, too
  check_rates(nn::polynomial_decay(1, 4, 2, 0.2), {1, 0.65, 0.4, 0.25, 0.2, 0.2});
  check_rates(nn::cosine_restarts(1, 2), {1, 0.5, 1, 0.5, 1});
  check_rates(nn::cosine_restarts(1, 2, 2, 0.5),
              {1, 0.75, 1, 0.9267766952966369, 0.75, 0.5732233047033631, 1});
  CHECK(nn::cosine_restarts(1, 1, 3)(std::numeric_limits<int64_t>::max()) <= 1);
  CHECK(nn::cosine_restarts(1, 3)(std::numeric_limits<int64_t>::max() - 1) <= 1);
}

TEST_CASE("one_cycle gives PyTorch's rates", "[nn][reference]") {
  // OneCycleLR(optimizer, max_lr=0.5, total_steps=10), in float64
  check_rates(
      nn::one_cycle(0.5, 10),
      {0.020000000000000018, 0.26, 0.5, 0.47524231600673683, 0.40587282697488153,
       0.30563101096814466, 0.19437098903185537, 0.09412917302511849, 0.024759683993263143, 2e-06});
  // max_lr=1, total_steps=8, pct_start=0.5, div_factor=10, final_div_factor=100
  const nn::Schedule other = nn::one_cycle(1, 8, 0.5, 10, 100);
  check_rates(other, {0.09999999999999998, 0.32499999999999996, 0.7749999999999999, 1.0,
                      0.8536998372026805, 0.5005, 0.14730016279731956, 0.001});
  CHECK(other(100) == other(7));
}

TEST_CASE("joined schedules begin at their own step 0", "[nn]") {
  const nn::Schedule all = nn::joined(
      {nn::constant_rate(1), nn::linear_decay(0.5, 2), nn::exponential_decay(2, 0.5)}, {2, 5});
  check_rates(all, {1, 1, 0.5, 0.25, 0, 2, 1, 0.5});
  check_rates(nn::joined({nn::constant_rate(3)}, {}), {3, 3});
  check_rates(nn::warm_up(2, all), {0.5, 1, 1, 1, 0.5});
}
