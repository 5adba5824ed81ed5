// Ops that may fail in calls that look at data: checked where they are applied, and left to a Plan.
#include "core/error.h"
#include "core/variable.h"
#include "tests/jit/segments.h"
#include "tests/message_of.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

Tensor indices(std::initializer_list<int64_t> list) {
  return from_span(std::span<const int64_t>(list.begin(), list.size()),
                   {static_cast<int64_t>(list.size())});
}

bool checks_at_once() {
  return generates() && !backend(default_device()).is_asynchronous();
}

/// What a warm call does.
template <class F, class... A>
Counts warm_counts(const F& f, const A&... arguments) {
  for (int i = 0; i < 6; ++i) static_cast<void>(f(arguments...));
  const Counts before = counts_of(f);
  static_cast<void>(f(arguments...));
  return counts_of(f) - before;
}

/// Where the host would wait for a check the op runs by itself.
template <class F, class... A>
void check_all(const F& f, const std::vector<A>&... arguments) {
  if (!generates() || checks_at_once()) return check_all_by_plans(f, arguments...);
  const auto compiled = compile(f);
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < std::min({arguments.size()...}); ++i)
      REQUIRE(same_bits(compiled(arguments[i]...), f(arguments[i]...)));
  }
}

}  // namespace

TEST_CASE("an op that may fail is left to the Plan of its segment if its indices are there",
          "[jit][deferred]") {
  const auto f = [](const Tensor& x, const Tensor& i) {
    const Tensor y = take(relu(x * 2.0), i) + 1.0;
    return bool(sum(y) > 0.0) ? y * 2.0 : y;
  };
  const Tensor x = ramp(24), few = indices({5, 0, -1, 23}), others = indices({1, 2, 3, -24});
  check_all(f, std::vector{x, x + 1.0}, std::vector{few, others});
  const auto g = compile(f);
  const Counts warm = warm_counts(g, x, few);
  // The look and the end; where the host would wait for the check, what is pending before it, too.
  if (generates()) CHECK(warm.cuts == (checks_at_once() ? 2 : 3));
}

TEST_CASE("indices that are pending end the segment", "[jit][deferred]") {
  const auto f = [](const Tensor& x, const Tensor& i) {
    const Tensor y = take(x * 2.0, i + 1) + 1.0;
    return bool(sum(y) > 0.0) ? y * 2.0 : y;
  };
  const Tensor x = ramp(9) + 4.0;
  check_all(f, std::vector{x}, std::vector{indices({0, 7, -2})});
  const auto g = compile(f);
  const Counts warm = warm_counts(g, x, indices({0, 7, -2}));
  if (checks_at_once()) CHECK(warm.cuts == 3);
  CHECK_THROWS_AS(g(x, indices({8})), Error);
  CHECK(same_bits(g(x, indices({7})), f(x, indices({7}))));
}

TEST_CASE("all that may fail is left to Plans, and forward and backward of an embedding",
          "[jit][deferred]") {
  const auto looked = [](const Tensor& y) { return bool(sum(cast(y, f32)) > 0.0) ? y + y : y; };
  const Tensor i = indices({2, 0, 2, 1});
  const auto scatters = [&](const Tensor& x, const Tensor& at) {
    return looked(scatter_add(x * 2.0, at, 3));
  };
  check_all(scatters, std::vector{ramp(4)}, std::vector{i});
  const auto sets = [&](const Tensor& x, const Tensor& at) {
    return looked(scatter(x * 2.0, at, x * 3.0, Arrival::add));
  };
  check_all(sets, std::vector{ramp(4)}, std::vector{i});
  const auto gathers = [&](const Tensor& x, const Tensor& at) {
    return looked(gather(x * 2.0, 0, at));
  };
  check_all(gathers, std::vector{ramp(4)}, std::vector{i});
  const auto divides = [&](const Tensor& x, const Tensor& by) {
    return looked(floor_divide(x + 7, by) + remainder(x + 1, by));
  };
  for (const DType dtype : {i8, u16, i32, i64, u64})
    check_all(divides, std::vector{arange(0, 6, 1, dtype)}, std::vector{full({6}, 3, dtype)});
  const Variable table = parameter(reshape(ramp(12), {4, 3}));
  const auto steps = [&](const Tensor& at) {
    table.clear_grad();
    const Tensor loss = sum(square(take(table.get(), at)));
    if (bool(loss < 1e9)) loss.backward();
    return table.grad() + 0.0;
  };
  check_all(steps, std::vector{i});
}

TEST_CASE("what has no elements is not checked, as eagerly", "[jit][deferred]") {
  const auto f = [](const Tensor& x, const Tensor& i) {
    const Tensor y = x + 1.0;
    return bool(sum(y) > 1e9) ? y : take(y, i) * 2.0;
  };
  check_all(f, std::vector{zeros({7, 0}), ones({7, 2})},
            std::vector{indices({1'000'000, -9}), indices({6, -7})});
}

TEST_CASE("what fails a check is told at its line, and the call may go on", "[jit][deferred]") {
  const auto f = [](const Tensor& x, const Tensor& i, const Tensor& j) {
    const Tensor y = x * 2.0;
    Tensor z = y + 1.0;
    try {
      z = z + take(y, i);
    } catch (const Error&) {
      z = z - take(y * 3.0, j);
    }
    return bool(sum(z) > 1e6) ? z : z + y;
  };
  const Tensor x = ramp(3);
  const Tensor good = indices({2, 0, 1}), bad = indices({2, 0, 3}), low = indices({-4, 0, 1});
  const auto g = compile(f);
  for (int round = 0; round < 5; ++round) {
    CHECK(same_bits(g(x, good, good), f(x, good, good)));
    CHECK(same_bits(g(x, bad, good), f(x, bad, good)));
    CHECK(same_bits(g(x, low, good), f(x, low, good)));
    CHECK_THROWS_AS(g(x, bad, low), Error);
  }
  const auto retries = [&](const Tensor& a, const Tensor& i, const Tensor& j) {
    const Tensor y = a * 2.0;
    Tensor z;
    try {
      z = take(y, i) + 1.0;
    } catch (const Error&) {
      z = take(y, j) + 1.0;
    }
    return bool(sum(z) > 1e6) ? z : z * y;
  };
  const auto h = compile(retries);
  for (int round = 0; round < 5; ++round) {
    CHECK(same_bits(h(x, good, good), retries(x, good, good)));
    CHECK(same_bits(h(x, bad, good), retries(x, bad, good)));
  }
  if (checks_at_once()) {
    const Counts before = counts_of(g);
    CHECK(same_bits(g(x, bad, good), f(x, bad, good)));
    CHECK((counts_of(g) - before).computed == 0);
  }
  const std::string said = message_of([&] { g(x, bad, bad); });
  CHECK(said == message_of([&] { f(x, bad, bad); }));
  CHECK_THAT(said, Catch::Contains("index 3 for an axis of 3") &&
                       Catch::Contains("deferred_checks_test.cpp"));
  const auto divides = compile([](const Tensor& a, const Tensor& b) {
    const Tensor y = a + 1;
    if (bool(sum(y) > 1000)) return y;
    return floor_divide(y, b);
  });
  const Tensor sevens = full({4}, 7, i32), zero = indices({1, 2, 0, 4}).to(i32);
  for (int i = 0; i < 4; ++i) {
    CHECK(same_bits(divides(sevens, sevens), full({4}, 1, i32)));
    CHECK_THAT(message_of([&] { divides(sevens, zero); }), Catch::Contains("floor_divide"));
  }
}

TEST_CASE("borrowed indices that their owner writes after the check are checked by the Plan",
          "[jit][deferred][host]") {
  std::array<int64_t, 3> memory = {0, 1, 2};
  bool writes = false, assigns = false;
  const Variable total(zeros({3}));
  const auto f = compile([&](const Tensor& x, const Tensor& i) {
    const Tensor y = x * 2.0;
    const bool goes = bool(sum(y) < 1e6);
    const Tensor z = take(y + 1.0, i);
    if (assigns) total += z;
    if (writes) memory[1] = 1'000'000;
    return goes ? z * 2.0 : z;
  });
  const Tensor x = ramp(3), i = borrow(memory.data(), {3}, [] {});
  for (assigns = false;; assigns = true) {
    for (int call = 0; call < 4; ++call)
      CHECK(same_bits(f(x, i), (take(x * 2.0 + 1.0, indices({0, 1, 2}))) * 2.0));
    const std::vector<float> before = total.get().to_vector<float>();
    writes = true;
    CHECK_THAT(message_of([&] { f(x, i); }), Catch::Contains("index 1000000 for an axis of 3"));
    CHECK(total.get().to_vector<float>() == before);
    writes = false;
    memory[1] = 1;
    CHECK(same_bits(f(x, i), (take(x * 2.0 + 1.0, indices({0, 1, 2}))) * 2.0));
    if (assigns) break;
  }
}
