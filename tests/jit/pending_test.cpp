// What is pending in a call that looks at data, where that is hard: errors, Variables, tapes,
// views, threads.

#include "tests/jit/segments.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// Square roots.
Tensor roots(const Tensor& x) {
  Tensor y = (x + 1.0) * 0.5;
  while (bool(max(abs(y * y - x)) > 1e-3)) y = (y + x / y) * 0.5;
  return y;
}

}  // namespace

TEST_CASE("nothing is pending outside of the call, also when it throws", "[jit][deferred]") {
  std::vector<Tensor> held;
  Variable kept(zeros({5}));
  const int never = 9;
  int throws_at = never;
  const auto g = compile([&](const Tensor& x) {
    if (throws_at == 0) throw std::runtime_error("before");
    const Tensor y = x + 1.0;
    held.push_back(y * y);
    kept = y;
    if (throws_at == 1) throw std::runtime_error("between");
    const bool is_large = bool(sum(y) > 1e6);
    held.push_back(exp(y));
    if (throws_at == 2) throw std::runtime_error("after");
    return is_large ? y : y * 3.0;
  });
  const Tensor x = ramp(5), y = x + 1.0;
  for (int i = 0; i < 4; ++i) CHECK(same_bits(g(x), y * 3.0));
  CHECK(same_bits(kept.get(), y));
  kept = zeros({5});
  for (int at = 0; at < 3; ++at) {
    for (int again = 0; again < 3; ++again) {
      throws_at = at;
      held.clear();
      CHECK_THROWS_AS(g(x), std::runtime_error);
      for (const Tensor& tensor : held) CHECK_FALSE(is_pending(tensor.internals()));
      if (at >= 1) CHECK(same_bits(held.at(0), y * y));
      if (at >= 2) CHECK(same_bits(held.at(1), exp(y)));
      CHECK(same_bits(kept.get(), zeros({5})));
    }
  }
  throws_at = never;
  CHECK(same_bits(g(x), y * 3.0));
}

TEST_CASE("nothing is kept longer than eagerly while a call does what no other did",
          "[jit][deferred]") {
  bool is_alone = true;
  const auto g = compile([&](const Tensor& x) {
    (void)x.at({0}).item<float>();
    const Tensor y = x * 2.0;
    const Tensor z = y + 1.0;
    if (!is_pending(y.internals())) is_alone &= is_unique(y.handle()) && is_unique(z.handle());
    return z;
  });
  for (int64_t n = 3; n < 20; ++n) CHECK(same_bits(g(ramp(n)), ramp(n) * 2.0 + 1.0));
  CHECK(is_alone);
}

TEST_CASE("an error comes from its line, and may be caught there", "[jit][deferred]") {
  const auto g = compile([](const Tensor& x, const Tensor& i) {
    Tensor y = x * 2.0;
    if (bool(sum(y) > 1e6)) return y;
    try {
      y = take(y, i + 0, 0);
    } catch (const Error& error) {
      return y - 1.0;
    }
    return y + 1.0;
  });
  const Tensor x = ramp(6);
  const Tensor good = tensor({int64_t{0}, int64_t{5}}), bad = tensor({int64_t{0}, int64_t{6}});
  for (int i = 0; i < 4; ++i) {
    CHECK(same_bits(g(x, good), take(x * 2.0, good, 0) + 1.0));
    CHECK(same_bits(g(x, bad), x * 2.0 - 1.0));
  }
  const auto h = compile([](const Tensor& a, const Tensor& b) {
    (void)a.at({0}).item<float>();
    return a + b;
  });
  CHECK(same_bits(h(x, x), x + x));
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(h(x, ramp(5)), Error);
    CHECK(same_bits(h(x, x), x + x));
  }
}

TEST_CASE("Variables change together when the call has ended, or not at all", "[jit][deferred]") {
  Variable a(zeros({3})), b(ones({3}));
  bool throws = false;
  const auto g = compile([&](const Tensor& x) {
    a = a.get() + x;
    const bool is_large = bool(sum(a.get()) > 1e6);
    const Tensor seen = a.get() * 2.0;
    const Tensor before = a.get();
    a = b.get() + seen;
    b = before;
    if (throws) throw std::runtime_error("stop");
    return is_large ? seen : seen + 1.0;
  });
  Tensor p = zeros({3}), q = ones({3});
  const Tensor x = ramp(3);
  for (int i = 0; i < 6; ++i) {
    const Tensor sum_of = p + x, seen = sum_of * 2.0;
    CHECK(same_bits(g(x), seen + 1.0));
    p = q + seen;
    q = sum_of;
    CHECK(same_bits(a.get(), p));
    CHECK(same_bits(b.get(), q));
  }
  throws = true;
  CHECK_THROWS(g(x));
  CHECK(same_bits(a.get(), p));
  CHECK(same_bits(b.get(), q));
}

TEST_CASE("a generator that one branch draws from draws as eagerly", "[jit][deferred]") {
  const auto run = [](auto& f) {
    manual_seed(5);
    std::vector<Tensor> results;
    for (int i = 0; i < 12; ++i) results.push_back(f(ramp(9) + (i % 3 == 0 ? 9.0 : -9.0)));
    return results;
  };
  const auto f = [](const Tensor& x) -> Tensor {
    if (bool(mean(x) > 0.0)) return x + randn({9});
    return x * 2.0;
  };
  const auto g = compile(f);
  const std::vector<Tensor> eager = run(f), deferred = run(g);
  for (std::size_t i = 0; i < eager.size(); ++i) CHECK(same_bits(eager[i], deferred[i]));
}

namespace {

struct Net {
  nn::Linear hidden, out;
  Tensor operator()(const Tensor& x) const { return out(tanh(hidden(x))); }
};

Net net() {
  manual_seed(3);
  return {nn::linear(6, 8), nn::linear(8, 2)};
}

}  // namespace

TEST_CASE("a training step that is skipped when the loss is not finite", "[jit][deferred]") {
  const Net mine = net(), theirs = net();
  const nn::Adam my_adam(nn::parameters(mine), {.rate = 1e-2}),
      their_adam(nn::parameters(theirs), {.rate = 1e-2});
  const auto step = [](const Net& model, const nn::Adam& adam, const Tensor& x, const Tensor& y) {
    adam.zero_grad();
    const Tensor loss = mean(square(model(x) - y));
    loss.backward();
    if (bool(isfinite(loss))) adam.step();
    return stop_gradient(loss);
  };
  const auto g =
      compile([&](const Tensor& x, const Tensor& y) { return step(mine, my_adam, x, y); });
  manual_seed(4);
  const Tensor x = randn({5, 6}), y = randn({5, 2});
  const Tensor bad = y / 0.0;
  for (int i = 0; i < 16; ++i) {
    const Tensor& target = i % 5 == 4 ? bad : y;
    REQUIRE(same_bits(g(x, target), step(theirs, their_adam, x, target)));
  }
  const std::vector<Variable> a = nn::parameters(mine), b = nn::parameters(theirs);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(same_bits(a[i].get(), b[i].get()));
  if (!generates()) return;
  check_deferred(g);
  const Counts before = counts_of(g);
  g(x, y);
  const Counts warm = counts_of(g) - before;
  CHECK(warm.computed == 0);
  CHECK(warm.plans == 0);
}

TEST_CASE("gradients of what is pending: within the call, and of its results", "[jit][deferred]") {
  const auto f = [](const Tensor& x) {
    const Tensor y = exp(x) * sin(x);
    const Tensor z = bool(sum(y) > 0.0) ? tanh(y) : sigmoid(y);
    return sum(z * z);
  };
  const auto g = compile(f);
  const auto inner = compile([&](const Tensor& x) { return grad(f)(x); });
  for (int i = 0; i < 6; ++i) {
    const Tensor x = ramp(5) + 0.5 * i;
    CHECK(same_bits(inner(x), grad(f)(x)));
    CHECK(same_bits(grad(g)(x), grad(f)(x)));
  }
}

TEST_CASE("sizes from data", "[jit][deferred]") {
  const auto f = [](const Tensor& x, const Tensor& n) {
    const Tensor y = slice(x, 0, {0, n.item<int64_t>()}) * 2.0;
    return sum(y + 1.0) + sum(nonzero(y > 1.0)[0]);
  };
  const auto g = compile(f);
  const Tensor x = ramp(300);
  for (int round = 0; round < 3; ++round) {
    for (int64_t n = 0; n < 300; n += 7) {
      const Tensor count = tensor(n);
      REQUIRE(same_bits(g(x, count), f(x, count)));
    }
  }
  if (generates()) CHECK(counts_of(g).plans <= 256);
}

TEST_CASE("many lengths in turn all run by Plans", "[jit][deferred]") {
  const auto f = [](const Tensor& x) {
    const Tensor y = tanh(x) + x * 0.5;
    return bool(max(y) > 1e9) ? y : y * y - x;
  };
  std::vector<Tensor> inputs;
  for (int64_t n = 1; n <= 40; ++n) inputs.push_back(ramp(n));
  check_all_by_plans(f, inputs);
}

TEST_CASE("an attribute that host code changes at each call needs no memory", "[jit][deferred]") {
  int64_t n = 0;
  const auto f = [&n](const Tensor& x) {
    (void)x.at({0}).item<float>();
    return slice(x, 0, {0, 1 + n % 500}) * 2.0;
  };
  const auto g = compile(f);
  const Tensor x = ramp(500);
  for (n = 0; n < 2000; ++n) {
    const Tensor result = g(x);
    if (n % 100 == 0) REQUIRE(same_bits(result, f(x)));
  }
  if (!generates() || tier_of(g) == Tier::eager) return;
  const Explanation explanation = g.explain();
  CHECK(explanation.segments->crowded > 1000);
  CHECK(explanation.segments->crowded_at.at(0).second == explanation.segments->crowded);
  CHECK(to_string(explanation).find("op had had so many") == std::string::npos);  // several
  CHECK(counts_of(g).plans < 64);
}

TEST_CASE("views that are pending: of imports, of views, alone alive", "[jit][deferred]") {
  const auto f = [](const Tensor& x) {
    const Tensor t = transpose(x, 0, 1);
    const Tensor y = slice(t, 0, {1, 3});
    const Tensor z = transpose(exp(x), 0, 1);
    const bool is_large = bool(sum(x) > 1e6);
    return std::tuple(t, y, z, is_large ? z : slice(z, 1, {0, 2}), reshape(x, {-1}));
  };
  const auto g = compile(f);
  const Tensor x = reshape(ramp(20), {4, 5});
  for (int i = 0; i < 5; ++i) {
    const auto a = g(x), b = f(x);
    const auto check = [](const Tensor& p, const Tensor& q) {
      CHECK(same_bits(p, q));
      CHECK(p.strides() == q.strides());
    };
    check(std::get<0>(a), std::get<0>(b));
    check(std::get<1>(a), std::get<1>(b));
    check(std::get<2>(a), std::get<2>(b));
    check(std::get<3>(a), std::get<3>(b));
    check(std::get<4>(a), std::get<4>(b));
  }
}

TEST_CASE("images that lie channels last keep lying so", "[jit][deferred]") {
  manual_seed(1);
  const Tensor weight = randn({4, 3, 3, 3});
  const auto f = [&](const Tensor& x) {
    const Tensor y = relu(conv2d(x, weight)) * 2.0;
    const bool is_large = bool(sum(y) > 1e9);
    return is_large ? y : relu(y - 1.0);
  };
  const auto g = compile(f);
  const Tensor x = randn({2, 3, 8, 8});
  for (int i = 0; i < 5; ++i) {
    const Tensor a = g(x), b = f(x);
    CHECK(same_bits(a, b));
    CHECK(a.strides() == b.strides());
  }
}

TEST_CASE("an op that gives back its operand", "[jit][deferred]") {
  const auto f = [](const Tensor& x) {
    const Tensor y = cast(x, f32) + 1.0;
    if (bool(sum(y) > 1e9)) return y;
    return cast(y, f32) * 2.0;
  };
  check_all_by_plans(f, std::vector{ramp(4), ramp(4) * 3.0});
}

TEST_CASE("composites and reductions have the same bits as outside", "[jit][deferred]") {
  const auto f = [](const Tensor& x) {
    const Tensor y = layer_norm(softmax(x, -1)) + logsumexp(x, {1}, keepdims);
    if (bool(sum(y) > 1e9)) return y;
    return log_softmax(y, 0) * var(x);
  };
  check_all_by_plans(f, std::vector{reshape(ramp(60), {6, 10}), reshape(ramp(60), {6, 10}) * 9.0});
}

TEST_CASE("a compiled function within one", "[jit][deferred]") {
  const auto inner = compile([](const Tensor& x) -> Tensor {
    if (bool(sum(x) > 0.0)) return x * 2.0;
    return x - 1.0;
  });
  const auto f = [&](const Tensor& x) {
    const Tensor y = inner(x + 1.0);
    return bool(max(y) > 3.0) ? inner(y) : y;
  };
  check_all_by_plans(f, std::vector{ramp(9), ramp(9) + 4.0, ramp(9) - 4.0});
  const auto eagerly = compile([&](const Tensor& x) {
    const Tensor y = inner.eager(x + 1.0);
    return bool(max(y) > 3.0) ? y * 2.0 : y;
  });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = ramp(9) + 1.0 * i;
    CHECK(same_bits(eagerly(x), f(x).handle() == x.handle() ? x : eagerly.eager(x)));
  }
}

TEST_CASE("results that are arguments are the same handles", "[jit][deferred]") {
  const auto g = compile([](const Tensor& x, const Tensor& y) -> Tensor {
    if (bool(sum(x) > 0.0)) return x;
    return y;
  });
  const Tensor x = ramp(3) + 9.0, y = ramp(3);
  for (int i = 0; i < 4; ++i) {
    CHECK(g(x, y).handle() == x.handle());
    CHECK(g(y, x).handle() == x.handle());
  }
}

TEST_CASE("threads call one function with other outcomes", "[jit][deferred][threads]") {
  const auto g = compile(roots);
  std::vector<Tensor> inputs, expected;
  for (int i = 0; i < 8; ++i) {
    inputs.push_back(abs(ramp(32)) + 1.0 + 0.5 * i);
    expected.push_back(roots(inputs.back()));
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) {
        const auto k = static_cast<std::size_t>((i + n) % 8);
        wrong += same_bits(g(inputs[k]), expected[k]) ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("another thread reads what is pending while its owner goes on, or waits for it",
          "[jit][deferred][threads]") {
  const auto g = compile([](const Tensor& x) {
    const Tensor y = exp(x) + 1.0, z = y * y;
    float first = 0, second = 0;
    std::thread reader([&] {
      first = max(z).item<float>();
      second = transpose(reshape(y, {1, -1}), 0, 1).at({0, 0}).item<float>();
    });
    Tensor w = z;
    for (int i = 0; i < 20; ++i) w = w * 0.5 + y;
    if (bool(sum(w) > 1e9)) w = w + 1.0;
    const Tensor v = tanh(w);
    reader.join();
    return v + static_cast<double>(first) + static_cast<double>(second);
  });
  const Tensor x = ramp(11);
  const Tensor expected = g.eager(x);
  for (int i = 0; i < 50; ++i) REQUIRE(same_bits(g(x), expected));
}

TEST_CASE("what a call changes of its surroundings while it runs", "[jit][deferred]") {
  int turn = 0;
  const auto f = [&turn](const Tensor& x) {
    Tensor y = exp(x) * 2.0;
    const int threads = num_threads();
    if (turn % 4 == 1) set_num_threads(threads + 1);
    if (turn % 4 == 2) clear_executables();
    y = bool(sum(y) > 1e9) ? y : y + x;
    const StanceScope scope(turn % 4 == 3 ? Stance::eager : Stance::normal);
    y = bool(max(y) > 1e9) ? y : y * y;
    set_num_threads(threads);
    return y - 1.0;
  };
  const auto g = compile(f);
  const Tensor x = ramp(3000);
  for (turn = 0; turn < 20; ++turn) REQUIRE(same_bits(g(x), f(x)));
}

TEST_CASE("a function is destroyed while a thread is inside", "[jit][deferred][threads]") {
  const Tensor x = ramp(6);
  for (int i = 0; i < 10; ++i) {
    std::atomic<bool> is_inside = false, goes_on = false;
    auto f = std::make_unique<Compiled<std::function<Tensor(const Tensor&)>>>(
        compile(std::function<Tensor(const Tensor&)>([&](const Tensor& a) {
          const Tensor y = exp(a) + 1.0;
          is_inside = true;
          while (!goes_on) std::this_thread::yield();
          return bool(sum(y) > 1e9) ? y : y * 2.0;
        })));
    goes_on = true;
    for (int n = 0; n < i; ++n) (*f)(x);
    is_inside = goes_on = false;
    Tensor result;
    std::thread caller([&, held = *f] { result = held(x); });
    while (!is_inside) std::this_thread::yield();
    f.reset();
    goes_on = true;
    caller.join();
    CHECK(same_bits(result, (exp(x) + 1.0) * 2.0));
  }
}

TEST_CASE("stances hold for functions that look at data", "[jit][deferred]") {
  const auto f = [](const Tensor& x) { return bool(sum(x) > 0.0) ? x * 2.0 : x - 1.0; };
  const auto g = compile(f);
  const Tensor x = ramp(4);
  for (int i = 0; i < 4; ++i) CHECK(same_bits(g(x), f(x)));
  if (generates()) {
    g.set_stance(Stance::fail_on_fallback);
    CHECK(same_bits(g(x), f(x)));
    g.set_stance(Stance::normal);
  }
  if (generates()) {
    g.set_stance(Stance::fail_on_recompile);
    CHECK(same_bits(g(x), f(x)));
    CHECK(same_bits(g(-x + 99.0), f(-x + 99.0)));  // comes for the first time: is computed
    CHECK_THROWS_WITH(g(-x + 99.0), Catch::Contains("needs another Plan"));
    g.set_stance(Stance::normal);
    CHECK(same_bits(g(-x + 99.0), f(-x + 99.0)));
  }
  const Counts before = counts_of(g);
  CHECK(same_bits(g.eager(x), f(x)));
  CHECK((counts_of(g) - before).cuts == 0);
}

TEST_CASE("Plans of segments are made in the background if asked", "[jit][deferred][threads]") {
  const auto f = [](const Tensor& x) {
    const Tensor y = tanh(x) * 2.0;
    return bool(sum(y) > 1e9) ? y : y * y - x;
  };
  const auto g = compile(f, {.in_background = true});
  const Tensor x = ramp(6);
  for (int i = 0; i < 4; ++i) REQUIRE(same_bits(g(x), f(x)));
  while (generates() && tier_of(g) == Tier::deferred && counts_of(g).by_plan < 2)
    REQUIRE(same_bits(g(x), f(x)));
}

TEST_CASE("a look at elements in place is told of, too", "[jit][deferred][host]") {
  if (!generates()) return;
  const auto g = compile([](const Tensor& x) {
    const Tensor y = x * 2.0;
    return y.data<float>()[0] > 1e9F ? y : y - x;
  });
  for (int i = 0; i < 4; ++i) CHECK(same_bits(g(ramp(3)), ramp(3) * 2.0 - ramp(3)));
  const Explanation explanation = g.explain();
  uint64_t looks = 0;
  for (const auto& segment : explanation.segments->segments) {
    for (const auto& look : segment.looks) {
      CHECK(look.what == "data()");
      looks += look.count;
    }
  }
  CHECK(looks == 3);  // all calls but the first, which is recorded
}

TEST_CASE("explain() tells of segments and looks", "[jit][deferred][explain]") {
  if (!generates()) return;
  const auto g = compile(
      [](const Tensor& x) {
        const Tensor y = x * 2.0 + 1.0;
        if (bool(sum(y) > 0.0)) return y;
        return y - 1.0;
      },
      {.name = "g"});
  g.set_stance(Stance::fail_on_fallback);  // no call is compared with an eager one
  for (int i = 0; i < 10; ++i) g(ramp(4) + (i < 3 ? 100.0 : -100.0));
  const Explanation e = g.explain();
  CHECK(e.signatures.at(0).tier == Tier::deferred);
  CHECK(e.signatures[0].deferred_calls == 9);
  CHECK(e.deferred_calls == 9);
  REQUIRE(e.segments.has_value());
  REQUIRE(e.segments->segments.size() == 2);
  const SegmentsReport::Segment& first = e.segments->segments[0];
  CHECK(first.visits == 9);
  CHECK(first.ops == 4);
  REQUIRE(first.looks.size() == 1);
  CHECK(first.looks[0].what == "bool(tensor)");
  CHECK(first.looks[0].count == 9);
  CHECK(first.looks[0].true_count == 2);
  CHECK(e.segments->segments[1].visits == 7);
  const std::string text = to_string(e);
  INFO(text);
  CHECK(text.find("9 in segments") != std::string::npos);
  CHECK(text.find("2 times true, 7 false") != std::string::npos);
  if (default_device() == Device{}) CHECK(text.find("pending_test.cpp") != std::string::npos);
  CHECK(e.to_json().find("\"segments\"") != std::string::npos);
  CHECK(text.find("last compared") == std::string::npos);
  Explanation compared = e;
  compared.signatures[0].segments_s = 1e-3;
  compared.signatures[0].eager_s = 3e-3;
  CHECK(to_string(compared).find("last compared: 1 ms a call in segments, 3 ms eagerly; about 18 "
                                 "ms saved") != std::string::npos);
}

TEST_CASE("a call that is recorded looks as often as it likes", "[jit][deferred]") {
  int looks = 0;
  const auto f = compile([&](const Tensor& x, const Scalar& s) {
    Tensor y = x;
    Tensor n = s + 1;
    for (int i = 0; i < 10'000; ++i) {
      n = n + 1;
      if (n.item<int64_t>() < 0) break;  // depends on the Scalar alone: a guard
      ++looks;
    }
    while (looks < 40'000) {
      y = y * 0.5 + 1.0;
      if (bool(sum(y) > 1e30)) break;
      ++looks;
    }
    return y * n;
  });
  CHECK(f(ramp(4), 2).shape() == Shape{4});
  CHECK(looks == 40'000);
}
