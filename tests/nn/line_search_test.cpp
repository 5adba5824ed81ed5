#include "nn/line_search.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace nitinol::line_search_test {

using nn::LinePoint;

struct Line {
  const char* name;
  std::function<double(double)> value, slope;
};

TEST_CASE("a line search ends where the strong Wolfe conditions hold", "[nn]") {
  const std::vector<Line> lines = {
      {"a parabola", [](double t) { return (t - 3) * (t - 3); },
       [](double t) { return 2 * (t - 3); }},
      {"a far minimum", [](double t) { return (t / 500 - 1) * (t / 500 - 1); },
       [](double t) { return (t / 500 - 1) / 250; }},
      {"a near one", [](double t) { return (t * 1e4 - 1) * (t * 1e4 - 1); },
       [](double t) { return 2e4 * (t * 1e4 - 1); }},
      // J. Moré, D. Thuente, 1994, functions 5.1 and 5.2
      {"Moré's first", [](double t) { return -t / (t * t + 2); },
       [](double t) { return (t * t - 2) / ((t * t + 2) * (t * t + 2)); }},
      {"Moré's second",
       [](double t) { return std::pow(t + 0.004, 5) - 2 * std::pow(t + 0.004, 4); },
       [](double t) { return 5 * std::pow(t + 0.004, 4) - 8 * std::pow(t + 0.004, 3); }},
      {"with a pole", [](double t) { return -std::log(1 - t) - 3 * t; },
       [](double t) { return 1 / (1 - t) - 3; }},
      {"waves", [](double t) { return std::sin(5 * t) / 5 - 1.2 * t + t * t / 10; },
       [](double t) { return std::cos(5 * t) - 1.2 + t / 5; }},
  };
  for (const Line& line : lines) {
    const LinePoint start = {.step = 0, .value = line.value(0), .slope = line.slope(0)};
    REQUIRE(start.slope < 0);
    for (const double first : {1e-3, 0.5, 1.0, 40.0}) {
      INFO(line.name << ", first " << first);
      std::vector<double> tried;
      const LinePoint found = nn::search_line(start, first, 40, [&](double t) {
        tried.push_back(t);
        return LinePoint{.step = t, .value = line.value(t), .slope = line.slope(t)};
      });
      CHECK(tried.front() == first);
      CHECK(tried.size() <= 20);
      CHECK(found.step > 0);
      CHECK(found.value == line.value(found.step));
      CHECK(found.value <= start.value + 1e-4 * found.step * start.slope);
      CHECK(std::abs(found.slope) <= 0.9 * std::abs(start.slope));
    }
  }
}

TEST_CASE("a line search that may not go on gives the least it has found", "[nn]") {
  int calls = 0;
  const auto narrow = [&](double t) {
    ++calls;
    return LinePoint{
        .step = t, .value = (t * 1e9 - 1) * (t * 1e9 - 1), .slope = 2e9 * (t * 1e9 - 1)};
  };
  const LinePoint start = {.step = 0, .value = 1, .slope = -2e9};
  CHECK(nn::search_line(start, 1, 3, narrow).step == 0);
  CHECK(calls == 3);
  CHECK(nn::search_line(start, 1, 100, narrow).step > 0);
  // No number anywhere but at the start: it ends all the same.
  calls = 0;
  const LinePoint found = nn::search_line(start, 1, 1000, [&](double t) {
    ++calls;
    return LinePoint{.step = t, .value = std::numeric_limits<double>::quiet_NaN(), .slope = 0};
  });
  CHECK(found.step == 0);
  CHECK(calls < 1000);
}

}  // namespace nitinol::line_search_test
