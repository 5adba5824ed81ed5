// Which of the user's lines each step comes from.
#include "nitinol.h"
#include "tests/jit/calls.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// Lines of this file that some steps come from, sorted; 0: of another file.
std::vector<int> lines_of(const std::vector<program::StepReport>& steps) {
  std::vector<int> lines;
  for (const program::StepReport& step : steps) {
    for (const std::string& place : step.places) {
      const std::size_t colon = place.rfind(':');
      const bool is_here = place.substr(0, colon).ends_with("origin_test.cpp");
      lines.push_back(is_here ? std::stoi(place.substr(colon + 1)) : 0);
    }
  }
  std::ranges::sort(lines);
  lines.erase(std::ranges::unique(lines).begin(), lines.end());
  return lines;
}

/// Without line tables, or in a static program, there are none.
bool has_places() {
  const auto f = compile([](const Tensor& x) { return exp(x); }, {.check = Check::never});
  settle(f, ones({3}));
  return !f.explain().signatures.at(0).plan.steps.at(0).places.empty();
}

}  // namespace

TEST_CASE("steps name the lines that they come from", "[jit][explain][origin]") {
  if (!has_places()) return;
  const int line = __LINE__ - 1;
  const auto f = compile(
      [](const Tensor& x, const Tensor& w) {
        const Tensor y = matmul(x, w);     // 4
        const Tensor z = exp(y) * 2;       // 5
        const Tensor s = sum(z, {1});      // 6
        return s + sum(transpose(z), {0})  // 7
               - 1;
      },
      {.check = Check::never});
  const Tensor x = ones({4, 3}), w = ones({3, 5});
  settle(f, x, w);
  const Explanation explanation = f.explain();
  const std::vector<program::StepReport>& steps = explanation.signatures.at(0).plan.steps;
  CHECK(lines_of({steps.at(0)}) == std::vector<int>{line + 4});
  std::vector<program::StepReport> others(steps.begin() + 1, steps.end());
  const std::vector<int> rest = lines_of(others);
  CHECK(std::ranges::includes(rest, std::vector<int>{line + 5, line + 6}));
  CHECK((rest.back() == line + 7 || rest.back() == line + 8));
  CHECK(rest.front() == line + 5);
  CHECK_THAT(to_string(explanation),
             Catch::Contains("from origin_test.cpp:" + std::to_string(line + 4) + "\n"));
  CHECK_THAT(explanation.to_json(), Catch::Contains("\"places\""));
}

TEST_CASE("steps that passes have made come from what they stand for", "[jit][explain][origin]") {
  if (!has_places()) return;
  const int line = __LINE__ - 1;
  const auto f = compile(
      [](const Tensor& x) {
        const Tensor t = reshape(transpose(x), {-1});  // 4: a copy
        return sum(reshape(x, {4, 2, 6}), {0, 2}) +    // 5: gathered
               sum(slice(exp(t), 0, {.start = 3}));    // 6: a part is computed
      },
      {.check = Check::never});
  settle(f, reshape(arange(0, 48, 1, f32), {8, 6}));
  const Explanation explanation = f.explain();
  for (const program::StepReport& step : explanation.signatures.at(0).plan.steps) {
    CAPTURE(step.ops);
    CHECK(!step.places.empty());
    for (const int each : lines_of({step})) CHECK((each >= line + 4 && each <= line + 6));
  }
}

TEST_CASE("what goes back comes from where it went forward", "[jit][explain][origin]") {
  if (!has_places()) return;
  const Variable a = parameter(ones({5})), b = parameter(ones({5}));
  const nn::Sgd optimizer({a, b}, {.rate = 0.1});
  const int line = __LINE__ - 1;
  const auto step = compile(
      [&](const Tensor& x) {
        optimizer.zero_grad();
        const Tensor y = tanh(x * a);    // 5
        const Tensor loss = sum(y * b);  // 6
        loss.backward();                 // 7
        optimizer.step();                // 8
        return stop_gradient(loss);
      },
      {.check = Check::never});
  settle(step, ones({5}));
  const Explanation explanation = step.explain();
  const std::vector<int> lines = lines_of(explanation.signatures.at(0).plan.steps);
  CHECK(lines.front() >= line + 5);
  CHECK(lines.back() == line + 8);
  CHECK(std::ranges::includes(lines, std::vector<int>{line + 5, line + 6}));
  CHECK(std::ranges::count(lines, line + 7) == 0);  // nothing of it is backward()'s own

  // The Plan by which gradients of a compiled function's results go back.
  const int second = __LINE__ - 1;
  const auto f = compile(
      [](const Tensor& x) {
        return tanh(x * 3)  // 4
               * cos(x);    // 5
      },
      {.check = Check::never});
  const auto gradient = grad([&](const Tensor& x) { return sum(f(x)); });
  for (int call = 0; call < 5; ++call) static_cast<void>(gradient(ones({7})));
  const Explanation of_f = f.explain();
  const auto& report = of_f.signatures.at(0);
  REQUIRE(report.backward);
  for (const int each : lines_of(report.backward->steps))
    CHECK((each == second + 4 || each == second + 5));
  CHECK(!lines_of(report.backward->steps).empty());
}

TEST_CASE("the operations of a layer and of an optimizer share one place",
          "[jit][explain][origin]") {
  if (!has_places()) return;
  const auto model = nn::lstm(3, 4);
  const nn::Adam optimizer(nn::parameters(model));
  const int line = __LINE__ - 1;
  const auto step = compile(
      [&](const Tensor& x) {
        optimizer.zero_grad();
        const Tensor loss = sum(model(x).last.hidden);  // 5
        loss.backward();                                // 6
        optimizer.step();                               // 7
        return stop_gradient(loss);
      },
      {.check = Check::never});
  settle(step, ones({20, 2, 3}));
  const Explanation explanation = step.explain();
  // What passes a gradient to the layer is backward()'s own.
  CHECK(lines_of(explanation.signatures.at(0).plan.steps) ==
        std::vector<int>{line + 5, line + 6, line + 7});

  // Who gives places is asked a few times, and not at each of 600 operations.
  int asked = 0;
  const PlaceScope scope(
      [](void* count) {
        ++*static_cast<int*>(count);
        return std::string("model.py:1");
      },
      &asked);
  static_cast<void>(step(ones({21, 2, 3})));
  CHECK(asked > 0);
  CHECK(asked < 60);
}

TEST_CASE("what is launched at once comes from all its lines", "[jit][explain][origin]") {
  if (!has_places()) return;
  const Variable a(ones({40})), b(ones({40}));
  const int line = __LINE__ - 1;
  const auto f = compile(
      [&](const Tensor& x) {
        a.set(tanh(a * x));  // 4
        b.set(tanh(b * x));  // 5
        return sum(x);
      },
      {.check = Check::never});
  settle(f, ones({40}));
  const Explanation explanation = f.explain();
  std::size_t joined = 0;
  for (const program::StepReport& step : explanation.signatures.at(0).plan.steps) {
    if (step.launches != 2) continue;
    ++joined;
    CHECK(lines_of({step}) == std::vector<int>{line + 4, line + 5});
  }
  CHECK(joined <= 1);
  if (joined == 0)  // or one kernel computes both
    CHECK(explanation.signatures.at(0).plan.steps.at(0).ops.size() >= 4);
}
