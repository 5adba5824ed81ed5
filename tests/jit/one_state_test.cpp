// What a call reads is the state of one moment, in every tier.
#include "core/moment.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// Two Variables that are always assigned together, the same number to both.
struct Twins {
  Variable a = Variable(zeros({64})), b = Variable(zeros({64}));
};

/// Calls `read`, which gives a's value and b's, while other threads replace both. Says how often
/// they differed.
int torn_reads(const Twins& twins, const CompileOptions& writing,
               const std::function<std::pair<Tensor, Tensor>()>& read) {
  const auto write = compile(
      [twins](const Tensor& x) {
        const Tensor next = twins.a + x;
        twins.b.set(next * 1.0);
        twins.a.set(next);
      },
      writing);
  write(zeros({64}));  // tells what such calls assign
  constexpr int writers = 4, readers = 8, calls = 200;
  std::atomic<int> torn = 0;
  std::atomic<int> reading = readers;
  std::vector<std::thread> threads;
  for (int t = 0; t < writers; ++t) {
    threads.emplace_back([&] {
      while (reading > 0) write(ones({64}));
    });
  }
  for (int t = 0; t < readers; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < calls; ++i) {
        const auto [a, b] = read();
        if (!same_bits(a, b)) ++torn;
      }
      --reading;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return torn;
}

const CompileOptions always = {.check = Check::always};

}  // namespace

TEST_CASE("two Variables that are assigned together are never seen one before and one after",
          "[jit][order][threads][no-isa]") {
  const Twins twins;
  std::vector<Variable> between;  // read after a and before b, to give others time
  for (int i = 0; i < 300; ++i) between.emplace_back(zeros({1}));
  const auto body = [twins, between](const Tensor& x) {
    const Tensor a = twins.a + x;
    Tensor nothing = x;
    for (const Variable& each : between) nothing = nothing + each;
    return std::pair(a + nothing, twins.b + nothing);
  };
  const Tensor nothing = zeros({64});
  const CompileOptions writing = {.check = GENERATE(Check::scheduled, Check::always)};
  INFO((writing.check == Check::always ? "recorded" : "compiled") << " writers");
  SECTION("by a Plan") {
    const auto f = compile(body);
    CHECK(torn_reads(twins, writing, [&] { return f(nothing); }) == 0);
    CHECK(f.explain().plan_calls > 0);
  }
  SECTION("recorded") {
    const auto f = compile(body, always);
    CHECK(torn_reads(twins, writing, [&] { return f(nothing); }) == 0);
    CHECK(f.explain().recorded_calls > 0);
  }
  SECTION("eagerly") {
    const auto f = compile(body);
    CHECK(torn_reads(twins, writing, [&] { return f.eager(nothing); }) == 0);
  }
  SECTION("where Variables are arguments") {
    const auto f = compile(
        [](const Twins& given, const Tensor& x) { return std::pair(given.a + x, given.b + x); });
    CHECK(torn_reads(twins, writing, [&] { return f(twins, nothing); }) == 0);
  }
  SECTION("by a call that assigns another one") {
    const Variable count(zeros({}));
    const auto f = compile([twins, count](const Tensor& x) {
      count += 1.0;
      return std::pair(twins.a + x, twins.b + x);
    });
    f(nothing);
    CHECK(torn_reads(twins, writing, [&] { return f(nothing); }) == 0);
  }
}

TEST_CASE("a Plan's gradient is of the values that its call has read", "[jit][order][threads]") {
  // The sum of x * w * w is that of its gradient w * w where x is 1.
  const Variable w(ones({1 << 15}));
  const auto f = compile([w](const Tensor& x) { return x * w * w; });
  const auto write = compile([w](const Tensor& x) { w.set(w * 2.0 + x * 0.0); }, always);
  const auto both = [&](const Tensor& x) {
    return value_and_grad([&](const Tensor& v) { return sum(f(v)); })(x);
  };
  const Tensor x = ones({1 << 15});
  for (int i = 0; i < 4; ++i) both(x);
  std::atomic<bool> is_done = false;
  std::thread writer([&] {
    for (int i = 0; i < 500; ++i) {
      if (i % 8 == 0) w.set(x);
      write(x);
    }
    is_done = true;
  });
  int wrong = 0;
  while (!is_done) {
    const auto [value, gradient] = both(x);
    if (!same_bits(sum(gradient), value)) ++wrong;
  }
  writer.join();
  CHECK(wrong == 0);
  CHECK(f.explain().plan_calls > 0);
}

TEST_CASE("calls that each assign what the other reads do not wait for each other",
          "[jit][order][threads]") {
  const Variable a(zeros({4096})), b(zeros({4096}));
  const auto f = compile([a, b](const Tensor& x) { a.set(b + x); });
  const auto g = compile([a, b](const Tensor& x) { b.set(a + x); });
  const Tensor x = ones({4096});
  for (int i = 0; i < 3; ++i) {
    f(x);
    g(x);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) t % 2 == 0 ? f(x) : g(x);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(f.explain().plan_calls > 0);
}

TEST_CASE("a moment keeps what is replaced, and nothing else", "[core][order]") {
  const Variable a(zeros({1000})), b(ones({1000}));
  const std::size_t before = memory_statistics().in_use;
  {
    const Moment first;
    a.set(full({1000}, 1.0F));
    const Moment second;
    a.set(full({1000}, 2.0F));
    a.set(full({1000}, 3.0F));  // 2 was there at no moment
    CHECK(same_bits(first.value_of(a).value, zeros({1000})));
    CHECK(same_bits(second.value_of(a).value, ones({1000})));
    CHECK(first.value_of(a).is_replaced);
    CHECK(same_bits(first.value_of(b).value, ones({1000})));
    CHECK_FALSE(first.value_of(b).is_replaced);
    CHECK(memory_statistics().in_use <= before + 2 * 1000 * sizeof(float) + 1024);
    Moment third;
    a.set(zeros({1000}));
    third.move_on([] { return false; });
    CHECK(third.value_of(a).is_replaced);
    third.move_on([] { return true; });
    CHECK_FALSE(third.value_of(a).is_replaced);
  }
  CHECK(memory_statistics().in_use == before);
}
