// Calls that assign the same Variables run one after the other, in every tier.
#include "core/call_order.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

constexpr int thread_count = 16;

/// `body(thread)` on so many threads at once.
void on_all_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) threads.emplace_back(body, t);
  for (std::thread& thread : threads) thread.join();
}

/// f(ones({4})) on a thread of its own; `message` gets what it throws.
template <class F>
std::thread failing_call(const F& f, std::string& message) {
  return std::thread([&] {
    message = error_of([&] {
      f(ones({4}));
      return 0;
    });
  });
}

float first(const Variable& variable) {
  return variable.get().to_vector<float>()[0];
}

}  // namespace

TEST_CASE("no update of a captured Variable is lost, whatever tier a call runs in",
          "[jit][order][threads]") {
  const std::vector<std::pair<const char*, CompileOptions>> ways = {
      {"scheduled", {}},
      {"always recorded", {.check = Check::always}},
      {"in the background", {.in_background = true}}};
  for (const auto& [name, options] : ways) {
    INFO(name);
    const Variable w(zeros({4}));
    const auto f = compile(
        [w](const Tensor& x) {
          w += x;
          return w.get() * 1;
        },
        options);
    on_all_threads([&](int) {
      for (int i = 0; i < 50; ++i) static_cast<void>(f(ones({4})));
    });
    CHECK(first(w) == thread_count * 50);
  }
}

TEST_CASE("eager calls, eager stances and single assignments lose no update either",
          "[jit][order][threads]") {
  const Variable w(zeros({4}));
  const auto f = compile([w](const Tensor& x) { w += x; });
  const auto g = compile([](const Variable& v, const Tensor& x) { v += x; });
  on_all_threads([&](int thread) {
    const StanceScope scope(thread % 2 == 0 ? Stance::eager : Stance::normal);
    for (int i = 0; i < 50; ++i) {
      switch ((thread / 2 + i) % 4) {
        case 0:
          f(ones({4}));
          break;
        case 1:
          f.eager(ones({4}));
          break;
        case 2:
          g(w, ones({4}));
          break;
        default:
          w += 1.0;
      }
    }
  });
  CHECK(first(w) == thread_count * 50);
}

TEST_CASE("two functions that assign two Variables in opposite order do not wait for each other",
          "[jit][order][threads][no-isa]") {
  const Variable a(zeros({4}));
  const Variable b(zeros({4}));
  const auto f = compile([a, b](const Tensor& x) {
    a += x;
    b += x;
  });
  const auto g = compile([a, b](const Tensor& x) {
    b += x;
    a += x;
  });
  std::atomic<int> conflicts = 0;
  on_all_threads([&](int thread) {
    for (int i = 0; i < 50; ++i) {
      try {
        thread % 2 == 0 ? f(ones({4})) : g(ones({4}));
      } catch (const Error& error) {  // of first calls only: not silent, and nothing changed
        ++conflicts;
      }
    }
  });
  CHECK(first(a) == first(b));
  CHECK(first(a) == static_cast<float>(thread_count * 50 - conflicts));
  // Plans know what they assign, and never conflict. How many calls come before there is one
  // depends on how long it takes to make.
  const auto without_plan = [](const Explanation& said) {
    return static_cast<int>(said.calls - said.plan_calls);
  };
  CHECK(conflicts <= without_plan(f.explain()) + without_plan(g.explain()));
}

TEST_CASE("gradients of several threads add up, and draws differ", "[jit][order][threads]") {
  const Variable p = parameter(ones({4}));
  const Generator generator(1);
  std::vector<Tensor> draws(thread_count);
  on_all_threads([&](int thread) {
    for (int i = 0; i < 20; ++i) sum(p * 1.0).backward();
    draws[static_cast<std::size_t>(thread)] = rand({4}, f32, generator);
  });
  CHECK(p.grad().to_vector<float>()[0] == thread_count * 20);
  for (std::size_t i = 0; i < draws.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) CHECK_FALSE(same_bits(draws[i], draws[k]));
  }
}

TEST_CASE("a value replaced under a call's feet makes the call fail, not its update vanish",
          "[jit][order][threads]") {
  const Variable w(zeros({4}));
  std::atomic<bool> is_inside = false;
  std::atomic<bool> may_end = false;
  const auto f = compile(
      [&](const Tensor& x) {
        const Tensor before = w;
        is_inside = true;
        while (!may_end) std::this_thread::yield();
        w.set(before + x);
      },
      {.name = "slow"});
  std::string message;
  std::thread call = failing_call(f, message);
  while (!is_inside) std::this_thread::yield();
  w.set(full({4}, 10.0));  // waits for the call, but not for ever
  may_end = true;
  call.join();
  CHECK_THAT(message, Catch::StartsWith("value: slow: a Variable float32[4] that this call read "
                                        "and assigns was assigned elsewhere"));
  CHECK(first(w) == 10);
}

TEST_CASE("updates that no longer wait for a long call do not lose one another",
          "[jit][order][threads][no-isa]") {
  const Variable w(zeros({4}));
  const Variable p = parameter(zeros({4}));
  std::atomic<int> done = -1;
  const auto f = compile(
      [&](const Tensor& x) {
        const Tensor before = w;
        const Tensor gradient = p.grad();
        done = 0;
        while (done < thread_count) std::this_thread::yield();
        w.set(before + x);
        p.clear_grad();
      },
      {.name = "slow"});
  std::string message;
  std::thread call = failing_call(f, message);
  while (done < 0) std::this_thread::yield();
  on_all_threads([&](int) {
    w += 1.0;
    w.update([](const Tensor& value) { return value + 1.0; });
    sum(p * 1.0).backward();
    ++done;
  });
  call.join();
  CHECK_THAT(message, Catch::StartsWith("value: slow: "));
  CHECK(first(w) == 2 * thread_count);
  CHECK(p.grad().to_vector<float>()[0] == thread_count);
}

TEST_CASE("a function with state of its own may call itself", "[jit][order]") {
  std::function<Tensor(const Tensor&, int)> again;
  const auto f = compile([&again, n = 0](const Tensor& x, int depth) mutable -> Tensor {
    ++n;
    return depth == 0 ? x : again(x + 1.0, depth - 1);
  });
  again = [&f](const Tensor& x, int depth) { return f(x, depth); };
  CHECK(same_bits(f(ones({2}), 3), full({2}, 4.0)));
  CHECK(same_bits(f.eager(ones({2}), 3), full({2}, 4.0)));
  const StanceScope scope(Stance::eager);
  CHECK(same_bits(f(ones({2}), 3), full({2}, 4.0)));
}

TEST_CASE("a mutable function is run by one thread at a time, inlined or not",
          "[jit][order][threads]") {
  std::atomic<int> inside = 0;
  std::atomic<int> overlaps = 0;
  const auto f = compile([&, n = 0](const Tensor& x) mutable {
    if (++inside != 1) ++overlaps;
    ++n;
    std::this_thread::yield();
    --inside;
    return x + 1.0;
  });
  const auto outer = compile([&](const Tensor& x) { return f(x) * 2.0; }, {.check = Check::always});
  on_all_threads([&](int thread) {
    for (int i = 0; i < 20; ++i) {
      static_cast<void>(thread % 3 == 0 ? outer(ones({2})) : f.eager(ones({2})));
    }
  });
  CHECK(overlaps == 0);
}

TEST_CASE("a call uses one snapshot of its signature to its end", "[jit][order][threads]") {
  const Variable w(ones({4, 4}));
  const Tensor plain = copy(ones({4, 4}));
  const Tensor turned = transpose(copy(full({4, 4}, 2.0)));
  const auto f = compile([w](const Tensor& x) { return x + w.get(); });
  const Tensor x = zeros({4, 4});
  std::atomic<int> wrong = 0;
  on_all_threads([&](int thread) {
    for (int i = 0; i < 200; ++i) {
      if (thread == 0) w.set(i % 2 == 0 ? plain : turned);  // its layout changes: Plans are dropped
      const float got = f(x).to_vector<float>()[5];
      if (got != 1 && got != 2) ++wrong;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("a gradient may come and go beside calls that look for it", "[jit][order][threads]") {
  const Variable w = parameter(full({4}, 2.0));
  const auto f = compile([w](const Tensor& x) {
    const Tensor gradient = w.grad();
    return gradient.is_defined() ? x + gradient : x;
  });
  const Tensor x = ones({4}), gradient = full({4}, 3.0);
  std::atomic<int> wrong = 0;
  on_all_threads([&](int thread) {
    for (int i = 0; i < 200; ++i) {
      if (thread == 0) i % 2 == 0 ? w.set_grad(gradient) : w.clear_grad();
      const float got = f(x).to_vector<float>()[0];
      if (got != 1 && got != 4) ++wrong;
    }
  });
  CHECK(wrong == 0);
  w.set_grad(gradient);
  CHECK(same_bits(f(x), x + gradient));
  w.clear_grad();
  CHECK(same_bits(f(x), x));
  const Explanation explanation = f.explain();
  CHECK(std::ranges::any_of(explanation.signatures, [](const SignatureReport& report) {
    return report.cause == "the presence of a gradient changed";
  }));
}
