// The contract of compile(): one case per sentence of the design's sections 6 and 7.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

TEST_CASE("a function is recorded twice, then runs by its Plan", "[jit][compile]") {
  int runs = 0;
  const auto f = [&runs](const Tensor& x) {
    ++runs;
    return exp(x) * 2.0 + x;
  };
  const auto g = compile(f);
  const Tensor x = ramp(100);
  const Tensor expected = f(x);
  runs = 0;
  CHECK(same_bits(g(x), expected));
  CHECK(same_bits(g(x), expected));
  CHECK(runs == 2);
  CHECK(same_bits(g(x), expected));
  CHECK(runs == 2);
  const Explanation e = g.explain();
  REQUIRE(e.signatures.size() == 1);
  CHECK(e.signatures[0].tier == Tier::traced);
  CHECK(e.recorded_calls == 2);
  CHECK(e.plan_calls == 1);
  CHECK(e.signatures[0].plan.steps.size() == 1);
}

TEST_CASE("a trusted trace is recorded again at calls 4, 8, 16", "[jit][compile]") {
  int runs = 0;
  const auto g = compile([&runs](const Tensor& x) {
    ++runs;
    return x + 1.0;
  });
  const Tensor x = ramp(10);
  std::vector<int> recorded;
  for (int call = 1; call <= 40; ++call) {
    const int before = runs;
    g(x);
    if (runs != before) recorded.push_back(call);
  }
  CHECK(recorded == std::vector<int>{1, 2, 4, 8, 16, 32});
}

TEST_CASE("Check::always records every call, Check::never only until it is trusted",
          "[jit][compile]") {
  int runs = 0;
  const auto f = [&runs](const Tensor& x) {
    ++runs;
    return x + 1.0;
  };
  const Tensor x = ramp(10);
  const auto always = compile(f, {.name = "always", .check = Check::always});
  for (int i = 0; i < 6; ++i) always(x);
  CHECK(runs == 6);
  runs = 0;
  const auto never = compile(f, {.name = "never", .check = Check::never});
  for (int i = 0; i < 20; ++i) never(x);
  CHECK(runs == 2);
}

TEST_CASE("a signature that differs only in sizes needs one recorded call", "[jit][compile]") {
  int runs = 0;
  const auto f = [&runs](const Tensor& x) {
    ++runs;
    return sum(x * x);
  };
  const auto g = compile(f);
  settle(g, ramp(10));
  runs = 0;
  CHECK(same_bits(g(ramp(20)), f(ramp(20))));
  runs = 0;
  CHECK(same_bits(g(ramp(20)), sum(ramp(20) * ramp(20))));
  CHECK(runs == 0);
}

TEST_CASE("a function that does something else later loses its Plan, with the reason",
          "[jit][compile]") {
  bool flipped = false;
  const auto g = compile([&flipped](const Tensor& x) { return flipped ? x * x : x + x; });
  const Tensor x = ramp(10);
  settle(g, x);  // calls 1 to 3
  flipped = true;
  CHECK(same_bits(g(x), x * x));  // call 4 is recorded again
  const Explanation e = g.explain();
  CHECK(e.signatures[0].tier == without_plan());
  INFO(e.signatures[0].reason);
  CHECK(e.signatures[0].reason.find("it was add -> float32[10], now it is mul") !=
        std::string::npos);
  CHECK(e.signatures[0].reason.find("since call 2") != std::string::npos);
  CHECK(same_bits(g(x), x * x));
}

TEST_CASE(
    "a look at data gives the real value and leaves the signature without a Plan, with the place",
    "[jit][compile]") {
  const auto g = compile([](const Tensor& x) -> Tensor {
    if (sum(x).item<float>() > 0) return x * 2.0;
    return x - 1.0;
  });
  const Tensor positive = tensor({1.0F, 2.0F});
  const Tensor negative = tensor({-1.0F, -2.0F});
  for (int i = 0; i < 3; ++i) {
    CHECK(same_bits(g(positive), positive * 2.0));
    CHECK(same_bits(g(negative), negative - 1.0));
  }
  const SignatureReport report = g.explain().signatures[0];
  CHECK(report.tier == without_plan());
  CHECK(report.reason.find("item()") != std::string::npos);
  CHECK(report.place.find("compile_test.cpp:") != std::string::npos);
}

TEST_CASE("different Scalars use one Plan", "[jit][compile]") {
  const auto g = compile([](const Tensor& x, Scalar s) { return x * s + s; });
  const Tensor x = ramp(50);
  settle(g, x, 0.5);
  for (int i = 0; i < 20; ++i) {
    const double s = 0.1 * i;
    CHECK(same_bits(g(x, s), x * s + s));
  }
  CHECK(g.explain().signatures.size() == 1);
  g(x, 3);  // an integer is another kind
  CHECK(g.explain().signatures.size() == 2);
}

TEST_CASE("plain numbers are part of the signature, and the third value draws a remark",
          "[jit][compile]") {
  const auto g = compile([](const Tensor& x, double s) { return x * s; });
  const Tensor x = ramp(5);
  for (const double s : {1.0, 2.0, 3.0}) settle(g, x, s);
  const Explanation e = g.explain();
  CHECK(e.signatures.size() == 3);
  REQUIRE(e.remarks.size() == 1);
  CHECK(e.remarks[0].find("Scalar") != std::string::npos);
}

TEST_CASE("assignments to Variables are committed together at the end of a call",
          "[jit][compile]") {
  const Variable a(ramp(4));
  const Variable b(ramp(4) + 10.0);
  const auto swap = compile([&] {
    const Tensor old = a.get();
    a.set(b.get());
    b.set(old);
  });
  const Tensor first = a.get();
  const Tensor second = b.get();
  for (int call = 1; call <= 6; ++call) {
    swap();
    CHECK(same_bits(a.get(), call % 2 == 1 ? second : first));
    CHECK(same_bits(b.get(), call % 2 == 1 ? first : second));
  }
  CHECK(swap.explain().plan_calls > 0);
}

TEST_CASE("within a call a read sees the last assignment", "[jit][compile]") {
  const Variable w(zeros({3}));
  const auto step = compile([&](const Tensor& x) {
    w += x;
    w += x;
    return w.get() * 1.0;
  });
  const Tensor x = ones({3});
  for (int call = 1; call <= 5; ++call)
    CHECK(step(x).to_vector<float>()[0] == static_cast<float>(2 * call));
}

TEST_CASE("a call that throws changes no Variable, compiled or eager", "[jit][compile]") {
  const Variable w(ones({3}));
  const auto step = compile([&](const Tensor& x) {
    w += 1.0;
    return w.get() + x;  // throws when x does not broadcast
  });
  for (int i = 0; i < 3; ++i) step(ones({3}));
  const Tensor before = w.get();
  CHECK_THROWS_AS(step(ones({2})), Error);
  CHECK(same_bits(w.get(), before));
  CHECK_THROWS_AS(step.eager(ones({2})), Error);
  CHECK(same_bits(w.get(), before));
  const StanceScope eager(Stance::eager);
  CHECK_THROWS_AS(step(ones({2})), Error);
  CHECK(same_bits(w.get(), before));
}

TEST_CASE("errors say the same from eager and compiled", "[jit][compile]") {
  const auto f = [](const Tensor& x, const Tensor& y) { return exp(x) + y; };
  const auto g = compile(f);
  settle(g, ones({3}), ones({3}));
  std::string eager;
  std::string compiled;
  try {
    f(ones({3}), ones({2}));
  } catch (const Error& error) {
    eager = error.what();
  }
  try {
    g(ones({3}), ones({2}));
  } catch (const Error& error) {
    compiled = error.what();
  }
  CHECK(!eager.empty());
  // Without debug information the place is the address of a call, of which there are two.
  const auto without_address = [](const std::string& text) {
    return text.substr(0, text.find(" + 0x"));
  };
  CHECK(without_address(eager) == without_address(compiled));
}

TEST_CASE("a first call that throws leaves the function usable", "[jit][compile][traps]") {
  bool fails = true;
  const auto g = compile([&fails](const Tensor& x) {
    const Tensor y = x * 3.0;
    if (fails) throw std::runtime_error("user");
    return y;
  });
  CHECK_THROWS_AS(g(ones({2})), std::runtime_error);
  fails = false;
  CHECK(same_bits(settle(g, ones({2})), ones({2}) * 3.0));
  CHECK(g.explain().signatures[0].tier == Tier::traced);
}

TEST_CASE("Variables in arguments are inputs by position: one Plan serves two models",
          "[jit][compile]") {
  struct Model {
    Variable w, b;
  };
  int runs = 0;
  const auto step = compile([&runs](Model& m, const Tensor& x) {
    ++runs;
    m.b += 1.0;
    return x * m.w + m.b;
  });
  Model one{Variable(ones({4})), Variable(zeros({4}))};
  Model two{Variable(ones({4}) * 5.0), Variable(zeros({4}))};
  const Tensor x = ramp(4);
  settle(step, one, x);
  CHECK(runs == 2);
  CHECK(same_bits(step(two, x), [&] { return x * two.w.get() + ones({4}); }()));
  CHECK(step.explain().signatures.size() == 1);
  CHECK(same_bits(two.b.get(), ones({4})));
}

TEST_CASE("the same tensor given twice is another signature than two tensors",
          "[jit][compile][traps]") {
  const auto g = compile([](const Tensor& a, const Tensor& b) { return a * 2.0 + b; });
  const Tensor x = ramp(6);
  const Tensor y = ramp(6) + 1.0;
  settle(g, x, x);
  CHECK(same_bits(g(x, y), x * 2.0 + y));
  CHECK(same_bits(settle(g, x, y), x * 2.0 + y));
  CHECK(g.explain().signatures.size() == 2);
}

TEST_CASE("a captured tensor that is replaced is not frozen", "[jit][compile][traps]") {
  Tensor captured = ones({3});
  const auto g = compile([&captured](const Tensor& x) { return x + captured; },
                         {.name = "g", .check = Check::always});
  const Tensor x = ramp(3);
  settle(g, x);
  captured = ones({3}) * 7.0;
  CHECK(same_bits(g(x), x + captured));
  CHECK(g.explain().signatures[0].tier == without_plan());
  CHECK(g.explain().signatures[0].reason.find("captured tensor") != std::string::npos);
}

TEST_CASE("results keep their identity: input, view, twice the same", "[jit][compile]") {
  const auto g = compile([](const Tensor& x) {
    const Tensor y = x + 1.0;
    return std::tuple{x, transpose(x, 0, 1), y, y};
  });
  const Tensor x = reshape(ramp(6), {2, 3});
  const auto [same, view, first, second] = settle(g, x);
  CHECK(same.handle() == x.handle());
  CHECK(view.internals().storage == x.internals().storage);
  CHECK(view.shape() == Shape{3, 2});
  CHECK(same_bits(first, second));
}

TEST_CASE("a captured tensor that is also an argument is not taken for it",
          "[jit][compile][traps]") {
  const Tensor w = ramp(8);
  const auto g =
      compile([w](const Tensor& x) { return x * w; }, {.name = "g", .check = Check::never});
  settle(g, w);
  const Tensor other = ones({8}) * 5.0;
  CHECK(same_bits(g(other), other * w));
  CHECK(g.explain().plan_calls == 2);
}

TEST_CASE("an argument returned unchanged is the same handle", "[jit][compile]") {
  const auto g = compile([](const Tensor& x) { return std::pair(x, x + 1.0); });
  const Tensor x = ramp(8);
  for (int call = 1; call <= 4; ++call) CHECK(g(x).first.handle() == x.handle());
}

TEST_CASE("no result is overwritten by a later call", "[jit][compile][traps]") {
  const auto g = compile([](const Tensor& x) { return x * 2.0; });
  settle(g, ramp(8));
  const Tensor first = g(ones({8}));
  const Tensor second = g(zeros({8}));
  CHECK(same_bits(first, ones({8}) * 2.0));
  CHECK(same_bits(second, zeros({8})));
}

TEST_CASE("a Variable's old value held by the user survives in-place updates",
          "[jit][compile][traps]") {
  const Variable w(ones({1000}));
  const auto step = compile([&](const Tensor& g) { w -= g * 0.5; });
  const Tensor g = ones({1000});
  settle(step, g);
  const Tensor held = w.get();
  const Tensor copy = held + 0.0;
  step(g);
  CHECK(same_bits(held, copy));
  CHECK(same_bits(w.get(), copy - g * 0.5));
  const void* address = w.get().internals().address();
  step(g);
  CHECK(w.get().internals().address() == address);  // nobody else looks: updated in place
}

TEST_CASE("HostValue is guarded at each call", "[jit][compile]") {
  HostValue<bool> training = true;
  const auto g = compile([&training](const Tensor& x) { return training ? x * 2.0 : x; });
  const Tensor x = ramp(5);
  CHECK(same_bits(settle(g, x), x * 2.0));
  training = false;
  CHECK(same_bits(settle(g, x), x));
  training = true;
  CHECK(same_bits(g(x), x * 2.0));
  CHECK(g.explain().signatures.size() == 2);
  CHECK(g.explain().signatures[0].tier == Tier::traced);
}

TEST_CASE("a HostValue that the function makes is no guard", "[jit][compile]") {
  const auto f = compile(
      [](const Tensor& x, bool doubles) {
        const HostValue<bool> own = doubles;
        return own ? x * 2.0 : x;
      },
      {.check = Check::never});
  const Tensor x = ramp(5);
  for (const bool doubles : {true, false})
    CHECK(same_bits(settle(f, x, doubles), doubles ? x * 2.0 : x));
  CHECK(f.explain().plan_calls == 2);
}

TEST_CASE("a HostValue that the function has made and kept is a guard", "[jit][compile]") {
  std::optional<HostValue<bool>> kept;
  const auto f = compile([&kept](const Tensor& x) {
    if (!kept) kept.emplace(true);
    return *kept ? x * 2.0 : x;
  });
  const Tensor x = ramp(5);
  CHECK(same_bits(settle(f, x), x * 2.0));
  *kept = false;
  CHECK(same_bits(settle(f, x), x));
  *kept = true;
  CHECK(same_bits(settle(f, x), x * 2.0));
}

TEST_CASE("random numbers are the same eagerly and compiled", "[jit][compile][traps]") {
  const auto mask = [](const Tensor& x, const Generator& generator) {
    return where(rand(x.shape(), f32, generator) < 0.5, x, 0.0);
  };
  const auto g = compile(mask);
  const Generator a(42);
  const Generator b(42);
  const Tensor x = ones({1000});
  for (int i = 0; i < 6; ++i) CHECK(same_bits(g(x, a), mask(x, b)));
  CHECK(g.explain().plan_calls > 0);
}

TEST_CASE("compiled functions nest by inlining", "[jit][compile]") {
  const auto inner = compile([](const Tensor& x) { return x * 2.0; }, {.name = "inner"});
  const auto outer =
      compile([&inner](const Tensor& x) { return inner(x) + 1.0; }, {.name = "outer"});
  const Tensor x = ramp(5);
  CHECK(same_bits(settle(outer, x), x * 2.0 + 1.0));
  CHECK(inner.explain().calls == 0);
  CHECK(outer.explain().signatures[0].plan.steps.size() == 1);
}

TEST_CASE("stances and eager() run the function as written", "[jit][compile]") {
  int runs = 0;
  const auto g = compile([&runs](const Tensor& x) {
    ++runs;
    return x + 1.0;
  });
  const Tensor x = ramp(5);
  settle(g, x);
  runs = 0;
  g.eager(x);
  CHECK(runs == 1);
  {
    const StanceScope scope(Stance::eager);
    g(x);
    CHECK(runs == 2);
  }
  {
    const StanceScope scope(Stance::fail_on_recompile);
    CHECK_THROWS_AS(g(ramp(6)), Error);
  }
  g.set_stance(Stance::eager);
  g(x);
  CHECK(runs == 3);
}

TEST_CASE("sixteen threads making the first calls agree and compile once",
          "[jit][compile][threads]") {
  const auto f = [](const Tensor& x) { return tanh(x) * 3.0 - exp(x); };
  const auto g = compile(f);
  const Tensor x = ramp(777);
  const Tensor expected = f(x);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        if (!same_bits(g(x), expected)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  const Explanation e = g.explain();
  CHECK(e.signatures.size() == 1);
  CHECK(e.calls == 320);
}

TEST_CASE("a Plan made in the background changes nothing but when it is there",
          "[jit][compile][threads]") {
  const auto f = [](const Tensor& x) { return tanh(x) * 3.0 - exp(x); };
  const auto g = compile(f, {.name = "g", .in_background = true});
  for (const int64_t n : {10, 20, 30}) {
    const Tensor x = ramp(n);
    const Tensor expected = f(x);
    while (g.explain().signatures.empty() || g.explain().signatures.back().plan_calls == 0) {
      REQUIRE(same_bits(g(x), expected));
      REQUIRE(g.explain().signatures.back().tier != Tier::eager);
    }
  }
  const auto dropped = compile(f, {.name = "dropped", .in_background = true});
  dropped(ramp(5));
  dropped(ramp(5));  // goes while its Plan is being made
}

TEST_CASE("a tensor that another thread makes during a recording is noticed", "[jit][compile]") {
  const auto g = compile([](const Tensor& x) {
    Tensor other;
    std::thread([&other, n = x.size()] { other = ramp(n); }).join();
    return x + other;
  });
  const Tensor x = ramp(5);
  CHECK(same_bits(settle(g, x), x + ramp(5)));
  CHECK(g.explain().signatures[0].tier == without_plan());
  CHECK(g.explain().signatures[0].reason.find("another thread") != std::string::npos);
}

TEST_CASE("copies share entries; containers, structs and optionals pass through",
          "[jit][compile]") {
  struct Result {
    Tensor total;
    std::vector<Tensor> parts;
    std::optional<Tensor> none;
    int count = 0;
  };
  const auto g = compile([](const std::vector<Tensor>& xs) {
    Result r{zeros({3}), {}, std::nullopt, static_cast<int>(xs.size())};
    for (const Tensor& x : xs) {
      r.total = r.total + x;
      r.parts.push_back(x * 2.0);
    }
    return r;
  });
  const auto copy = g;
  const std::vector<Tensor> xs = {ones({3}), ones({3}) * 2.0};
  g(xs);
  copy(xs);
  const Result r = copy(xs);
  CHECK(g.explain().plan_calls == 1);
  CHECK(r.count == 2);
  REQUIRE(r.parts.size() == 2);
  CHECK(same_bits(r.parts[1], ones({3}) * 4.0));
  CHECK(same_bits(r.total, ones({3}) * 3.0));
  CHECK(!r.none);
}

TEST_CASE("signatures beyond the limit go, the least recently used first", "[jit][compile]") {
  const auto g =
      compile([](const Tensor& x) { return x + 1.0; }, {.name = "g", .signature_limit = 4});
  for (int64_t n = 1; n <= 20; ++n) CHECK(same_bits(g(ramp(n)), ramp(n) + 1.0));
  CHECK(g.explain().signatures.size() == 4);
}
