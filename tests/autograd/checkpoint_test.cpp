// checkpoint() and custom_gradient() beside what they close over, draw, assign, look at and keep:
// eagerly, in a compiled function, and around one.
#include "core/call_order.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

using Function = std::function<Tensor(const Tensor&)>;

/// `function` and `plain` have the same gradient: by grad(), by backward(), twice, compiled inside
/// and outside.
void check_same_gradients(const Function& function, const Function& plain, const Tensor& x) {
  const Tensor expected = grad(plain)(x);
  CHECK(same_bits(grad(function)(x), expected));
  const auto by_backward = [&](const Function& f) {
    const Variable p = parameter(x);
    f(p.get()).backward();
    return p.grad();
  };
  CHECK(same_bits(by_backward(function), by_backward(plain)));
  const auto twice = [&](const Function& f) {
    return grad([&](const Tensor& at) { return sum(sin(grad(f)(at))); })(x);
  };
  CHECK(same_bits(twice(function), twice(plain)));
  const auto inside = compile(grad(function), {.check = Check::never});
  const auto compiled = compile(function, {.check = Check::never});
  const auto outside = grad([&](const Tensor& at) { return compiled(at); });
  for (int i = 0; i < 4; ++i) {
    CHECK(same_bits(inside(x), expected));
    CHECK(same_bits(outside(x), expected));
    CHECK(
        same_bits(by_backward([&](const Tensor& at) { return compiled(at); }), by_backward(plain)));
  }
  CHECK(inside.explain().plan_calls > 0);
  CHECK(compiled.explain().plan_calls > 0);
}

Tensor input() {
  return tensor({0.5, 1.0, 2.0});
}

}  // namespace

TEST_CASE("checkpoint: gradients flow through what the function closes over", "[autograd][jit]") {
  SECTION("a value computed from the argument") {
    check_same_gradients(
        [](const Tensor& x) {
          const Tensor v = x * 2;
          return sum(checkpoint([v](const Tensor& t) { return exp(v) + t; })(x)) + sum(v);
        },
        [](const Tensor& x) {
          const Tensor v = x * 2;
          return sum(exp(v) + x) + sum(v);
        },
        input());
  }
  SECTION("the argument itself, and a value computed from another one") {
    check_same_gradients(
        [](const Tensor& x) {
          const Tensor v = x * 2;
          const Tensor u = sin(v);
          return sum(checkpoint([=](const Tensor& t) { return u * v + t * x; })(x));
        },
        [](const Tensor& x) {
          const Tensor v = x * 2;
          const Tensor u = sin(v);
          return sum(u * v + x * x);
        },
        input());
  }
  SECTION("alone: the argument is not tracked") {
    check_same_gradients(
        [](const Tensor& x) {
          const Tensor v = x * 2;
          return sum(checkpoint([v](const Tensor& t) { return v * t; })(ones({3}, f64)));
        },
        [](const Tensor& x) { return sum(x * 2 * ones({3}, f64)); }, input());
  }
  SECTION("a result that was captured") {
    check_same_gradients(
        [](const Tensor& x) {
          const Tensor v = x * 2;
          const auto [a, b] = checkpoint([v](const Tensor& t) { return std::pair(v, exp(t)); })(x);
          return sum(a * b);
        },
        [](const Tensor& x) { return sum(x * 2 * exp(x)); }, input());
  }
  SECTION("checkpoints in one another") {
    check_same_gradients(
        [](const Tensor& x) {
          const Tensor v = x * 2;
          const auto inner = [v](const Tensor& t) {
            const Tensor w = t * v;
            return checkpoint([v, w](const Tensor& s) { return exp(s * w) + v; })(t);
          };
          return sum(checkpoint(inner)(sin(x)));
        },
        [](const Tensor& x) {
          const Tensor v = x * 2;
          const Tensor t = sin(x);
          return sum(exp(t * (t * v)) + v);
        },
        input() * 0.3);
  }
  SECTION("under grad() in the function") {
    check_same_gradients(
        [](const Tensor& x) {
          const Tensor v = x * 2;
          return sum(checkpoint([v](const Tensor& t) {
            return grad([&](const Tensor& s) { return sum(sin(s * v)); })(t);
          })(x));
        },
        [](const Tensor& x) {
          const Tensor v = x * 2;
          return sum(grad([&](const Tensor& s) { return sum(sin(s * v)); })(x));
        },
        input());
  }
}

TEST_CASE("checkpoint: what a compiled function in it is given flows back", "[autograd][jit]") {
  const auto product =
      compile([](const Tensor& a, const Tensor& b) { return sin(a) * b; }, {.check = Check::never});
  for (int i = 0; i < 4; ++i) (void)product(input(), input());
  const auto gradient = grad([&](const Tensor& x) {
    const Tensor v = x * 2;
    return sum(checkpoint([&product, v](const Tensor& t) { return product(t, v); })(x));
  });
  const auto expected = grad([](const Tensor& x) { return sum(sin(x) * (x * 2)); });
  for (int i = 0; i < 4; ++i) CHECK(same_bits(gradient(input()), expected(input())));
}

TEST_CASE("checkpoint: a parameter's value that was read outside", "[autograd][jit]") {
  const auto step = [](const Variable& w, const Tensor& x, bool is_checkpointed) {
    w.clear_grad();
    const Tensor h = matmul(x, w);
    const auto gate = [h](const Tensor& t) { return tanh(t) * h; };
    sum(is_checkpointed ? checkpoint(gate)(h) : gate(h)).backward();
    return w.grad();
  };
  const Tensor x = ones({2, 3});
  const Variable w = parameter(full({3, 3}, 0.5));
  const Tensor expected = step(w, x, false);
  CHECK(same_bits(step(w, x, true), expected));
  const auto compiled =
      compile([&](const Tensor& at) { return step(w, at, true); }, {.check = Check::never});
  for (int i = 0; i < 4; ++i) CHECK(same_bits(compiled(x), expected));
  CHECK(compiled.explain().plan_calls > 0);
}

TEST_CASE("checkpoint of a compiled function", "[autograd][jit]") {
  const Variable w = parameter(full({4, 4}, 0.1));
  const auto plain = [w](const Tensor& x) { return tanh(matmul(x, w)); };
  const auto compiled = compile(plain, {.check = Check::never});
  const auto block = checkpoint([&](const Tensor& x) { return compiled(x); });
  const Tensor x = ones({3, 4});
  const Tensor expected = grad([&](const Tensor& at) { return sum(plain(at)); })(x);
  const auto of_w = [&](const auto& f) {
    w.clear_grad();
    sum(f(x)).backward();
    return w.grad();
  };
  const Tensor expected_of_w = of_w(plain);
  for (int i = 0; i < 6; ++i) {
    CHECK(same_bits(grad([&](const Tensor& at) { return sum(block(at)); })(x), expected));
    CHECK(same_bits(vjp(block, x).second(ones({3, 4})), expected));
    CHECK(same_bits(of_w(block), expected_of_w));
  }
  CHECK(compiled.explain().plan_calls > 0);
}

namespace {

/// Drops half of its argument, and counts its calls.
struct Drop {
  Generator generator{1};
  Variable calls{zeros({}, i64)};

  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    return custom_gradient([this](const Tensor& t) {
      calls += 1;
      const Tensor mask = cast(rand({8}, f32, generator) > 0.5, f32);
      return std::pair(t * mask, [mask](const Tensor& g) { return g * mask; });
    })(x);
  }
};

}  // namespace

TEST_CASE("custom_gradient: the function draws and assigns once", "[autograd][jit]") {
  const Drop drop;
  const Variable w = parameter(ones({8}));
  const auto f = [&](const Tensor& x) {
    const Tensor dropped = drop(x);
    const Tensor y = checkpoint([&](const Tensor& t) { return t * w; })(dropped);
    return std::pair(sum(y), stop_gradient(dropped));
  };
  const auto check = [&](const auto& both) {
    const int64_t before = drop.calls.item<int64_t>();
    const auto [result, gradient] = both(ones({8}));
    CHECK(same_bits(result.second, gradient));
    CHECK(drop.calls.item<int64_t>() == before + 1);
  };
  SECTION("beside a checkpoint that reads a parameter") {
    check(value_and_grad(f));
  }
  SECTION("compiled") {
    const auto inside = compile(value_and_grad(f), {.check = Check::never});
    const auto compiled = compile(f, {.check = Check::never});
    for (int i = 0; i < 5; ++i) {
      check(inside);
      check(value_and_grad([&](const Tensor& x) { return compiled(x); }));
    }
    CHECK(inside.explain().plan_calls > 0);
    CHECK(compiled.explain().signatures.at(0).tier == Tier::traced);
  }
  SECTION("differentiated twice") {
    const int64_t before = drop.calls.item<int64_t>();
    Tensor mask, gradient;
    const auto penalty = [&](const Tensor& x) {
      auto [loss, g] = value_and_grad([&](const Tensor& at) {
        const Tensor y = drop(at);
        mask = stop_gradient(y);
        return sum(square(y));
      })(x);
      gradient = stop_gradient(g) / 2;
      return sum(square(g));
    };
    (void)grad(penalty)(ones({8}));
    CHECK(same_bits(mask, gradient));
    CHECK(drop.calls.item<int64_t>() == before + 1);
  }
}

TEST_CASE("custom_gradient: threads lose no update", "[autograd][threads]") {
  const Variable count(zeros({}, i64));
  const auto f = custom_gradient([&](const Tensor& x) {
    count += 1;
    return std::pair(x * 1, [](const Tensor& g) { return g; });
  });
  const auto gradient = grad([&](const Tensor& x) { return sum(f(x)); });
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < 4; ++k) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) (void)gradient(ones({2}));
      });
    }
  }
  CHECK(count.item<int64_t>() == 400);
}

TEST_CASE("checkpoint: threads wait for one that draws for long", "[autograd][threads][no-isa]") {
  const Variable count(zeros({}, i64));
  const auto gradient = grad([&](const Tensor& x) {
    return sum(checkpoint([&](const Tensor& t) {
      count += 1;
      std::this_thread::sleep_for(CallOrder::patience * 3 / 2);
      return t * 2;
    })(x));
  });
  std::atomic<int> errors = 0;
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < 2; ++k) {
      threads.emplace_back([&] {
        try {
          (void)gradient(ones({2}));
        } catch (const Error&) {
          ++errors;
        }
      });
    }
  }
  CHECK(errors == 0);
  CHECK(count.item<int64_t>() == 2);
}

TEST_CASE("checkpoint: threads that draw from two in either order do not wait in a circle",
          "[autograd][threads][no-isa]") {
  const Variable a(zeros({}, i64)), b(zeros({}, i64));
  std::atomic<int> first_reads = 0, done = 0, told = 0, failed = 0;
  const auto train = [&](const Variable& first, const Variable& second) {
    const auto f = checkpoint([&](const Tensor& t) {
      first += 1;
      ++first_reads;
      for (int i = 0; i < 100 && first_reads < 2; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      second += 1;
      return t * 2;
    });
    try {
      (void)grad([&](const Tensor& x) { return sum(f(x)); })(ones({2}));
      ++done;
    } catch (const Error& error) {  // it has changed nothing
      ++failed;
      if (error.message().starts_with("checkpoint: a Variable int64[] that this call read")) ++told;
    }
  };
  const auto start = std::chrono::steady_clock::now();
  {
    const std::jthread one([&] { train(a, b); });
    const std::jthread other([&] { train(b, a); });
  }
  CHECK(std::chrono::steady_clock::now() - start < CallOrder::long_patience / 2);
  CHECK(done >= 1);
  CHECK(told == failed);
  CHECK(a.item<int64_t>() == done);
  CHECK(b.item<int64_t>() == done);
}

TEST_CASE("what a checkpointed function keeps aside has elements", "[autograd][jit]") {
  const Variable w = parameter(ones({4, 4}));
  const Tensor x = ones({3, 4});
  Tensor kept;
  const auto f = compile([&](const Tensor& at) {
    return sum(checkpoint([&](const Tensor& t) {
      const Tensor y = tanh(matmul(t, w));
      kept = stop_gradient(y);
      return y;
    })(at));
  });
  for (int i = 0; i < 4; ++i) {
    kept = Tensor();
    (void)f(x);
    if (kept.is_defined()) CHECK(same_bits(kept, tanh(matmul(x, w.get()))));
  }
}

TEST_CASE("a gradient rule that does more than compute leaves a function eager, with the reason",
          "[autograd][jit]") {
  const Variable w = parameter(ones({4}));
  const auto tier_of = [&](const auto& f) { return f.explain().signatures.at(0); };
  SECTION("it assigns a Variable") {
    const Variable norm(zeros({}));
    const auto f = compile([&](const Tensor& x) {
      return sum(custom_gradient([&](const Tensor& t) {
        return std::pair(t * 1, [&](const Tensor& g) {
          norm = sum(square(g));
          return g;
        });
      })(x * w));
    });
    for (int i = 0; i < 4; ++i) {
      norm = zeros({});
      const Tensor loss = f(ones({4}));
      CHECK(norm.item<float>() == 0);
      loss.backward();
      CHECK(norm.item<float>() == 4);
    }
    CHECK(tier_of(f).tier == without_plan());
    CHECK_THAT(tier_of(f).reason, Catch::Contains("a gradient rule assigns a Variable float32[]"));
  }
  SECTION("it reads a Variable") {
    const Variable scale(tensor(1.0F));
    const auto f = compile([&](const Tensor& x) {
      return sum(custom_gradient([&](const Tensor& t) {
        return std::pair(t * 1, [&](const Tensor& g) { return g * scale; });
      })(x * w));
    });
    for (int i = 0; i < 4; ++i) {
      w.clear_grad();
      scale = tensor(0.0F);
      const Tensor loss = f(ones({4}));
      scale = tensor(3.0F);
      loss.backward();
      CHECK(same_bits(w.grad(), full({4}, 3.0F)));
    }
    CHECK_THAT(tier_of(f).reason, Catch::Contains("a gradient rule reads a Variable float32[]"));
  }
  SECTION("it keeps its gradient") {
    std::vector<Tensor> kept;
    const auto f = compile([&](const Tensor& x) {
      return sum(custom_gradient([&](const Tensor& t) {
        return std::pair(t * 1, [&](const Tensor& g) {
          kept.push_back(g);
          return g * 2;
        });
      })(x * w));
    });
    (void)f(ones({4}));
    REQUIRE(kept.size() == 1);  // the rule has been asked what it does
    CHECK_THROWS_WITH(kept[0].to_vector<float>(),
                      Catch::Contains("a tensor float32[4] that has no elements"));
    CHECK_THROWS_WITH(kept[0] + 1, Catch::Contains("no elements"));
    CHECK_THROWS_WITH(kept[0][1] * 2, Catch::Contains("no elements"));
    const Variable holder(zeros({4}));
    holder = kept[0];
    CHECK_THROWS_WITH(holder + 1, Catch::Contains("no elements"));
    const auto returns = compile([&] { return kept[0]; });
    for (int i = 0; i < 3; ++i) (void)returns();
    CHECK_THAT(tier_of(returns).reason, Catch::Contains("no elements"));
    kept.clear();
    for (int i = 0; i < 3; ++i) f(ones({4})).backward();
    for (const Tensor& g : kept) CHECK(same_bits(g, ones({4})));
    CHECK(kept.size() == 3);
    CHECK_THAT(tier_of(f).reason, Catch::Contains("keeps a tensor"));
  }
  SECTION("it throws") {
    const auto f = compile([&](const Tensor& x) {
      return sum(custom_gradient([&](const Tensor& t) {
        return std::pair(t * 1, [&](const Tensor& g) -> Tensor {
          if (g.rank() == 1) throw std::out_of_range("in the rule");
          return g;
        });
      })(x * w));
    });
    for (int i = 0; i < 4; ++i) {
      const Tensor loss = f(ones({4}));
      CHECK(same_bits(stop_gradient(loss), tensor(4.0F)));
      CHECK_THROWS_AS(loss.backward(), std::out_of_range);
    }
    CHECK_THAT(tier_of(f).reason, Catch::Contains("in the rule"));
  }
}

TEST_CASE("a checkpointed function that looks at data is not one Plan", "[autograd][jit]") {
  const Variable w = parameter(ones({4}));
  const auto block = [&](const Tensor& t) {
    const Tensor y = t * w;
    return max(y).item<float>() > 0 ? y * 2 : y;
  };
  const auto f = compile([&](const Tensor& x) { return sum(checkpoint(block)(x)); });
  for (int i = 0; i < 4; ++i) {
    w.clear_grad();
    f(ones({4})).backward();
    CHECK(same_bits(w.grad(), full({4}, 2.0F)));
  }
  CHECK(f.explain().signatures.at(0).tier == without_plan());
  CHECK_THAT(f.explain().signatures.at(0).reason, Catch::Contains("looks at a tensor's elements"));
}

TEST_CASE("checkpoint: a function that does something else the second time", "[autograd]") {
  const Variable w = parameter(ones({2}));
  Tensor captured;
  const Tensor y = checkpoint(
      [&](const Tensor& t) { return captured.is_defined() ? t * captured : t; })(w.get());
  captured = w * 2;
  CHECK_THROWS_WITH(sum(y).backward(),
                    Catch::Contains("a tensor float32[2] that it did not use at first"));
  sum(captured).backward();  // whose tape is whole
  CHECK(same_bits(w.grad(), full({2}, 2.0F)));
}

TEST_CASE("a compiled checkpoint computes again rather than keep, too", "[autograd][jit][memory]") {
  // Layers whose middle is 16 times as wide as what goes in and out.
  const Tensor x = randn({64, 32});
  std::vector<Tensor> up, down;
  for (int i = 0; i < 6; ++i) {
    up.push_back(randn({32, 512}) * 0.1);
    down.push_back(randn({512, 32}) * 0.1);
  }
  const auto step = [down](const Tensor& in, const std::vector<Tensor>& ups, bool is_checkpointed) {
    const auto slopes = grad([&](const std::vector<Tensor>& first) {
      Tensor y = in;
      for (std::size_t i = 0; i < first.size(); ++i) {
        const auto layer = [a = first[i], b = down[i]](const Tensor& z) {
          return matmul(tanh(matmul(z, a)), b);
        };
        y = y + (is_checkpointed ? checkpoint(layer)(y) : layer(y));
      }
      return sum(square(y));
    });
    return slopes(ups);
  };
  const auto compiled = compile(step, {.check = Check::never});
  for (const bool is_checkpointed : {false, true}) {
    const auto eager = step(x, up, is_checkpointed);
    for (int i = 0; i < 2; ++i) compiled(x, up, is_checkpointed);
    const auto by_plan = compiled(x, up, is_checkpointed);
    for (std::size_t i = 0; i < up.size(); ++i) CHECK(same_bits(eager[i], by_plan[i]));
  }
  const Explanation explained = compiled.explain();
  const auto temporary = [&](std::size_t i) { return explained.signatures.at(i).plan.arena_bytes; };
  INFO(explained);
  CHECK(temporary(1) < temporary(0) / 2);
}
