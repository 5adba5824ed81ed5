// What a recording holds for: the numbers that host code looked at, and which Variables were one.
#include "jit/entries.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// Calls f, compiled and as written, with each of the numbers three times.
template <class F>
void check_numbers(const char* name, const F& f, const std::vector<Scalar>& numbers) {
  const auto g = compile(f);
  const Tensor x = arange(1, 7, 1, f32);
  for (int round = 0; round < 3; ++round) {
    for (const Scalar& number : numbers) {
      INFO(name << " of " << number.to_double() << ", round " << round);
      CHECK(same_bits(g(x, number), f(x, number)));
    }
  }
  INFO(name);
  CHECK(g.explain().plan_calls > 0);
}

}  // namespace

TEST_CASE("a Scalar that host code looks at is a guard, never a constant", "[jit][guards]") {
  const std::vector<Scalar> reals = {1.0, 2.0, 0.5};
  const std::vector<Scalar> counts = {2, 5, 3};
  check_numbers(
      "to_double", [](const Tensor& x, const Scalar& s) { return x * std::exp(s.to_double()); },
      reals);
  check_numbers(
      "a loop",
      [](const Tensor& x, const Scalar& n) {
        Tensor y = x;
        for (int64_t i = 0; i < n.to_integer(); ++i) y = y * 2;
        return y;
      },
      counts);
  check_numbers(
      "a branch", [](const Tensor& x, const Scalar& s) { return s.to_double() > 1 ? x : -x; },
      reals);
  check_numbers(
      "arange(n)", [](const Tensor& x, const Scalar& n) { return sum(x) + arange(n); }, counts);
  check_numbers(
      "arange(step)",
      [](const Tensor& x, const Scalar& s) { return sum(x) + arange(0, 3, s, f32); }, reals);
  check_numbers(
      "linspace",
      [](const Tensor& x, const Scalar& s) { return x + linspace(0.0, s.to_double(), 6); }, reals);
  check_numbers(
      "full", [](const Tensor& x, const Scalar& s) { return x + full({6}, s); }, reals);
  check_numbers(
      "pad",
      [](const Tensor& x, const Scalar& s) {
        return pad(x, {{1, 2}}, s);
      },
      reals);
  check_numbers(
      "clamp", [](const Tensor& x, const Scalar& s) { return clamp(x, s, s + 3.0); }, reals);
  check_numbers(
      "where", [](const Tensor& x, const Scalar& s) { return where(x > s, x, s); }, reals);
  check_numbers(
      "a number computed from it",
      [](const Tensor& x, const Scalar& s) { return x * (s * 2.0 + 1.0).item<double>(); }, reals);
}

TEST_CASE("a Scalar that only tensors meet stays a number of the call", "[jit][guards]") {
  const auto g = compile([](const Tensor& x, const Scalar& s) { return x * s; });
  for (int i = 0; i < 20; ++i) static_cast<void>(g(ones({3}), 0.1 * i));
  CHECK(g.explain().signatures.size() == 1);
}

TEST_CASE("a Scalar looked at with ever new values has no Plan, with reason and place",
          "[jit][guards]") {
  const auto g =
      compile([](const Tensor& x, const Scalar& s) { return x * std::exp(s.to_double()); },
              {.name = "g", .arguments = {"x", "power"}});
  const Tensor x = ones({3});
  for (int i = 0; i < 40; ++i) CHECK(same_bits(g(x, 0.25 * i), x * std::exp(0.25 * i)));
  const Explanation e = g.explain();
  CHECK(e.signatures.size() == jit::Entries::most_variants + 1);
  CHECK_THAT(e.signatures.at(1).cause,
             Catch::Contains("argument 1 (power) is 0.25, was 0, and host code looks at it by "
                             "to_double() at ") &&
                 Catch::Contains("guards_test.cpp:"));
  CHECK(e.signatures.back().tier != Tier::traced);
  CHECK_THAT(e.signatures.back().reason, Catch::Contains("to_double()"));
  CHECK_THAT(e.signatures.back().place, Catch::Contains("guards_test.cpp:"));
}

TEST_CASE("a Variable that is captured and passed is one Variable", "[jit][guards]") {
  const Variable c(full({3}, 2.0));
  const Variable d(full({3}, 5.0));
  const Tensor x = ones({3});
  const auto body = [](const Variable& captured, const Variable& a, const Tensor& in) {
    a += in;
    captured *= 2;
    return a.get() + captured.get();
  };
  for (const bool alias_first : {false, true}) {
    const auto f =
        compile([c, body](const Variable& a, const Tensor& in) { return body(c, a, in); });
    const Variable mirror_c = c.clone();
    const Variable mirror_d = d.clone();
    // Each way often enough to be trusted, then in turn.
    for (const int way : {0, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1, 0}) {
      const bool aliased = (way == 1) != alias_first;
      const Tensor got = f(aliased ? c : d, x);
      CHECK(same_bits(got, body(mirror_c, aliased ? mirror_c : mirror_d, x)));
      CHECK(same_bits(c.get(), mirror_c.get()));
      CHECK(same_bits(d.get(), mirror_d.get()));
    }
    CHECK(f.explain().plan_calls >= 4);
    CHECK(f.explain().signatures.size() == 2);
  }
}

TEST_CASE("a Plan that serves any argument does not serve the captured Variable", "[jit][guards]") {
  const Variable c(full({3}, 2.0)), d(full({3}, 5.0)), e(full({3}, 7.0));
  const auto body = [](const Variable& captured, const Variable& a) {
    a += 1.0;
    captured *= 2.0;
    return a.get() + captured.get();
  };
  const auto f = compile([c, body](const Variable& a) { return body(c, a); });
  const Variable mirror_c = c.clone(), mirror_d = d.clone(), mirror_e = e.clone();
  const auto call = [&](const Variable& given, const Variable& mirror) {
    const Tensor got = f(given);
    CHECK(same_bits(got, body(mirror_c, mirror)));
    CHECK(same_bits(c.get(), mirror_c.get()));
    CHECK(same_bits(given.get(), mirror.get()));
  };
  for (int i = 0; i < 4; ++i) {  // until Variables are told apart by their places alone
    call(d, mirror_d);
    call(e, mirror_e);
  }
  CHECK(f.explain().plan_calls >= 2);
  for (int i = 0; i < 4; ++i) call(c, mirror_c);
}

TEST_CASE("one Plan serves two models of one type", "[jit][guards]") {
  const auto f = compile([](const Variable& w, const Tensor& x) {
    w += x;
    return w.get() * 2;
  });
  const Variable a(zeros({3}));
  const Variable b(zeros({3}));
  for (int i = 0; i < 3; ++i) static_cast<void>(f(a, ones({3})));
  static_cast<void>(f(b, ones({3})));  // compared once
  const uint64_t plans = f.explain().plan_calls;
  for (int i = 0; i < 2; ++i) static_cast<void>(f(b, ones({3})));
  static_cast<void>(f(Variable(zeros({3})), ones({3})));
  CHECK(f.explain().signatures.size() == 1);
  CHECK(f.explain().plan_calls >= plans + 2);
  CHECK(same_bits(b.get(), full({3}, 3.0)));
}

TEST_CASE("one recording is not enough after a HostValue has changed", "[jit][guards]") {
  HostValue<bool> flag = true;
  const auto f = compile([&flag](const Tensor& x) { return flag ? x * 2.0 : x * 3.0; });
  for (int i = 0; i < 3; ++i) static_cast<void>(f(ones({3})));
  flag = false;
  static_cast<void>(f(ones({3})));
  CHECK(f.explain().signatures.at(1).tier == Tier::recorded);
  static_cast<void>(f(ones({3})));
  CHECK(f.explain().signatures.at(1).tier == Tier::traced);
}

TEST_CASE("one recording is enough for other sizes, if it does the same", "[jit][guards]") {
  std::vector<int> visits(10, 0);
  const auto lazy = compile([&visits](const Tensor& x) {
    return visits[static_cast<std::size_t>(x.size())]++ == 0 ? x * 2.0 + 1.0 : x * 2.0;
  });
  for (int i = 0; i < 6; ++i) static_cast<void>(lazy(ones({3})));
  static_cast<void>(lazy(ones({4})));
  CHECK(lazy.explain().signatures.at(1).tier == Tier::recorded);
  CHECK(same_bits(lazy(ones({4})), full({4}, 2.0)));
  const auto plain = compile([](const Tensor& x) { return mean(reshape(x, {x.size(), 1})) * 2.0; });
  for (int i = 0; i < 3; ++i) static_cast<void>(plain(ones({3})));
  static_cast<void>(plain(ones({4})));
  CHECK(plain.explain().signatures.at(1).tier == Tier::traced);
}

TEST_CASE("what has an argument's value but no gradient is returned without one", "[jit][guards]") {
  const auto check = [](const char* name, auto f) {
    const auto g = compile(f);
    for (int call = 0; call < 5; ++call) {
      const Variable p = parameter(ones({2, 2}));
      const Tensor x = p.get();
      INFO(name << ", call " << call + 1);
      const Tensor got = g(x);
      const Tensor wanted = f(x);
      CHECK(got.tracks_gradient() == wanted.tracks_gradient());
      CHECK((got.handle() == x.handle()) == (wanted.handle() == x.handle()));
    }
  };
  check("stop_gradient", [](const Tensor& x) { return stop_gradient(x); });
  check("stop_gradient of a view", [](const Tensor& x) { return stop_gradient(transpose(x)); });
  check("no_grad", [](const Tensor& x) { return no_grad([&] { return x + 0.0; }); });
  check("a view that does nothing",
        [](const Tensor& x) { return no_grad([&] { return transpose(transpose(x)); }); });
  check("a reshape that does nothing", [](const Tensor& x) {
    return no_grad([&] { return reshape(x, {2, 2}); });
  });
  check("a cast that does nothing",
        [](const Tensor& x) { return no_grad([&] { return cast(x, f32); }); });
  check("itself", [](const Tensor& x) { return x; });
  check("copy", [](const Tensor& x) { return no_grad([&] { return copy(x); }); });
}

TEST_CASE("a Variable holds a value, not what it was computed from", "[jit][guards]") {
  const Variable outer(zeros({2}));
  const auto check = [](const char* name, auto inner) {
    const auto f = [inner](const Tensor& w) {
      auto [y, pull] = vjp(inner, w);
      return pull(ones({}));
    };
    const auto g = compile(f);
    const Tensor w = full({2}, 3.0);
    for (int call = 0; call < 5; ++call) {
      INFO(name << ", call " << call + 1);
      CHECK(same_bits(f(w), w));  // the gradient of sum(v * t), where v = t is constant
      CHECK(same_bits(g(w), w));
    }
  };
  check("Variable", [](const Tensor& t) { return sum(Variable(t).get() * t); });
  check("parameter", [](const Tensor& t) { return sum(parameter(t).get() * t); });
  check("clone", [](const Tensor& t) { return sum(Variable(t).clone().get() * t); });
  check("set", [outer](const Tensor& t) {
    outer.set(t);
    return sum(outer.get() * t);
  });
}

TEST_CASE("Variables that a call makes are its own affair", "[jit][guards]") {
  const auto f = compile([](const Tensor& x) {
    const Variable w = parameter(x);
    sum(square(w)).backward();
    return w.grad();
  });
  for (int i = 0; i < 20; ++i) CHECK(same_bits(f(full({3}, 1.0 + i)), full({3}, 2.0 + 2.0 * i)));
  CHECK(f.explain().signatures.size() == 1);
  CHECK(f.explain().plan_calls > 10);

  Variable kept(zeros({3}));
  const auto leaking = compile([&kept](const Tensor& x) {
    kept = Variable(x);
    kept += 1.0;
    return x * 2.0;
  });
  for (int i = 0; i < 6; ++i) static_cast<void>(leaking(full({3}, 1.0 * i)));
  CHECK(same_bits(kept.get(), full({3}, 6.0)));
  CHECK_THAT(leaking.explain().signatures.at(0).reason,
             Catch::Contains("a Variable float32[3] that the function makes is still held"));
}

TEST_CASE("what is computed from a loss after backward() does not keep a step from its Plan",
          "[jit][guards]") {
  const Variable w = parameter(ones({3}));
  const Tensor x = ones({4, 3});
  const auto check = [&](auto after) {
    const auto step = [w, after](const Tensor& in) {
      w.clear_grad();
      const Tensor loss = mean(square(matmul(in, w)));
      loss.backward();
      return after(loss);
    };
    const auto f = compile(step);
    const auto message = [](const Tensor& result) {
      return error_of([&] {
        result.backward();
        return 0;
      });
    };
    const std::string wanted = message(step(x));
    for (int i = 0; i < 6; ++i) {
      const Tensor result = f(x);
      CHECK(result.tracks_gradient() == step(x).tracks_gradient());
      CHECK(message(result) == wanted);
    }
    CHECK(f.explain().plan_calls == 3);
  };
  check([](const Tensor& loss) { return loss; });
  check([](const Tensor& loss) { return loss * 4; });
  check([](const Tensor& loss) { return exp(loss * 2) + loss; });
  check([](const Tensor& loss) { return stop_gradient(loss) * 4; });
}
