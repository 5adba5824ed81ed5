// The last cut of a call that looks at data: new values of Variables lie where the old ones did, if
// nobody else sees those.
#include "nitinol.h"
#include "tests/jit/segments.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

const void* memory_of(const Variable& variable) {
  return variable.get().internals().storage->data;
}

/// Only there is a last cut left to the commit.
bool overwrites() {
  return generates() && !backend(default_device()).is_asynchronous();
}

/// `called` for each of 12 calls from values 1 to n on, of w and u; results and values are eager's.
struct State {
  Variable w, u;
  std::shared_ptr<std::vector<Tensor>> held = std::make_shared<std::vector<Tensor>>();
};
using Step = std::function<Tensor(const State&, const Tensor&)>;
struct Outcome {
  std::vector<Tensor> values;
  bool is_in_place = true;  ///< w, in the last calls
};
Outcome outcome_of(const Step& step, bool is_compiled) {
  const State state = {Variable(ramp(100)), Variable(ramp(100) * 2.0)};
  const auto f = compile([&](const Tensor& x) { return step(state, x); });
  Outcome outcome;
  const StanceScope never_eager(is_compiled && generates() ? Stance::fail_on_fallback
                                                           : Stance::normal);
  for (int i = 0; i < 12; ++i) {
    const void* const before = memory_of(state.w);
    const Tensor x = ramp(100) * (0.1 * (i % 3));
    outcome.values.push_back(is_compiled ? f(x) : f.eager(x));
    outcome.values.push_back(copy(state.w.get()));
    outcome.values.push_back(copy(state.u.get()));
    if (i > 6) outcome.is_in_place &= memory_of(state.w) == before;
  }
  if (is_compiled) check_deferred(f);
  return outcome;
}
void check(const Step& step, bool is_in_place) {
  const Outcome eager = outcome_of(step, false), compiled = outcome_of(step, true);
  for (std::size_t i = 0; i < eager.values.size(); ++i)
    REQUIRE(same_bits(compiled.values[i], eager.values[i]));
  if (overwrites()) CHECK(compiled.is_in_place == is_in_place);
}

}  // namespace

TEST_CASE("a call that looks updates its Variables in place", "[jit][deferred]") {
  check(
      [](const State& p, const Tensor& x) {
        const Tensor y = p.w * x;
        if (bool(sum(y) < 1e9)) p.w.set(p.w - y * 0.1);
        return y;
      },
      true);
}

TEST_CASE("temporaries of a look do not keep the old value", "[jit][deferred]") {
  check(
      [](const State& p, const Tensor& x) {
        const Tensor y = p.w * x;
        if (max(abs(p.w * x - p.w)).item<float>() < 1e9F) p.w.set(p.w - y * 0.1);
        return y;
      },
      true);
}

TEST_CASE("what else the last segment makes of the old value is made before", "[jit][deferred]") {
  check(
      [](const State& p, const Tensor& x) {
        if (bool(sum(x) > 1e9)) return x;
        p.w.set(p.w * 0.5 + x);
        p.u.set(p.u * p.w);
        return matmul(reshape(p.u.get(), {10, 10}), reshape(x, {10, 10}));
      },
      true);
  check(
      [](const State& p, const Tensor& x) {
        const Tensor old = p.w.get();
        if (bool(sum(x) > 1e9)) return x;
        p.w.set(flip(old) + x);  // an element of another place: not where it lies
        return old * old;
      },
      false);
}

TEST_CASE("who holds the old value keeps it", "[jit][deferred]") {
  check(
      [](const State& p, const Tensor& x) {
        std::vector<Tensor>& held = *p.held;
        held.push_back(p.w.get());
        if (bool(sum(x) > 1e9)) return x;
        p.w.set(p.w * 0.5 + x);
        return held[held.size() > 2 ? held.size() - 3 : 0] * 2.0;
      },
      false);
  check(
      [](const State& p, const Tensor& x) {
        const Tensor old = p.w.get();
        if (bool(sum(x) > 1e9)) return x;
        p.w.set(old * 0.5 + x);
        return slice(old, 0, {5, 50});  // a view of it
      },
      false);
  check(
      [](const State& p, const Tensor& x) {
        if (bool(sum(x) > 1e9)) return x;
        const Tensor old = p.w.get();
        p.w.set(p.u.get());
        p.u.set(old + x);
        return x;
      },
      false);
}

TEST_CASE("what the last segment takes may be a value that the call has assigned before",
          "[jit][deferred]") {
  int calls = 0;
  check(
      [&](const State& p, const Tensor& x) {
        if (++calls % 3 == 1) p.w.set(p.w + 1.0);
        if (bool(sum(x) > 1e9)) return x;
        p.w.set(p.w * 0.5 + x);
        p.u.set(p.u * 0.5 + x);
        return x * 1.0;
      },
      false);
}

TEST_CASE("what is the last cut of one call is looked at in another", "[jit][deferred]") {
  int calls = 0;
  check(
      [&](const State& p, const Tensor& x) {
        if (bool(sum(x) > 1e9)) return x;
        const Tensor next = p.w * 0.5 + x;
        p.w.set(next);
        if (++calls % 2 == 0) static_cast<void>(next.to_vector<float>());
        return x;
      },
      false);
}

TEST_CASE("one value becomes that of two Variables", "[jit][deferred]") {
  check(
      [](const State& p, const Tensor& x) {
        if (bool(sum(x) > 1e9)) return x;
        const Tensor next = p.w * 0.5 + p.u * x;
        p.u.set(next);
        p.w.set(next);
        return x * 1.0;
      },
      false);
}

TEST_CASE("an argument that is a Variable's value is not overwritten", "[jit][deferred]") {
  const Variable w(ramp(64));
  const auto f = compile([&](const Tensor& x) {
    if (bool(sum(x) > 1e9)) return x;
    w.set(w * 0.5 + x);
    return x * 1.0;
  });
  for (int i = 0; i < 10; ++i) {
    const Tensor x = w.get(), expected = copy(x);
    const Tensor result = f(x);
    CHECK(same_bits(x, expected));
    CHECK(same_bits(result, expected));
    CHECK(same_bits(w.get(), expected * 0.5 + expected));
  }
}

TEST_CASE("a last cut that finds no memory changes nothing", "[jit][deferred]") {
  if (!overwrites()) return;
  Backend& device = backend(default_device());
  const StanceScope never_eager(Stance::fail_on_fallback);
  const Variable w(ramp(1'000'000));
  bool is_short = false;
  Tensor held;
  const auto f = compile([&](const Tensor& x) {
    if (bool(sum(x) < 0.0)) return x;
    held = w * 2.0;
    w.set(w * 0.5 + x);
    if (is_short) device.set_memory_budget(memory_statistics(default_device()).in_use + 5'000'000);
    return exp(x);  // beside `held` there is no room for it
  });
  const Tensor x = ramp(1'000'000);
  for (int i = 0; i < 8; ++i) f(x);
  const Tensor before = copy(w.get());
  reset_peak_memory(default_device());  // and gives back what is cached
  is_short = true;
  CHECK_THROWS_WITH(f(x), Catch::Contains("memory"));
  device.set_memory_budget(0);
  is_short = false;
  CHECK(same_bits(w.get(), before));
  CHECK(same_bits(held, before * 2.0));  // there was room for it
  f(x);
  CHECK(same_bits(w.get(), before * 0.5 + x));
}

TEST_CASE("optimizers of steps that look update in place", "[jit][deferred]") {
  const auto model = [] {
    manual_seed(1);
    return nn::linear(30, 20);
  };
  const nn::Linear mine = model(), theirs = model();
  const nn::Adam my_adam(nn::parameters(mine), {.rate = 1e-2});
  const nn::Adam their_adam(nn::parameters(theirs), {.rate = 1e-2});
  const auto step = [](const nn::Linear& linear, const nn::Adam& adam, const Tensor& x) {
    adam.zero_grad();
    const Tensor loss = mean(square(linear(x)));
    loss.backward();
    if (bool(isfinite(loss))) adam.step();
    return stop_gradient(loss);
  };
  const auto f = compile([&](const Tensor& x) { return step(mine, my_adam, x); });
  const Tensor x = sin(reshape(ramp(8 * 30), {8, 30}));
  for (int i = 0; i < 8; ++i) REQUIRE(same_bits(f(x), step(theirs, their_adam, x)));
  const StanceScope never_eager(generates() ? Stance::fail_on_fallback : Stance::normal);
  const void* const before = memory_of(mine.weight);
  const MemoryStatistics memory = memory_statistics(default_device());
  for (int i = 0; i < 8; ++i) REQUIRE(same_bits(f(x), step(theirs, their_adam, x)));
  CHECK(same_bits(mine.weight.get(), theirs.weight.get()));
  if (!overwrites()) return;
  CHECK(memory_of(mine.weight) == before);
  CHECK(memory_statistics(default_device()).in_use == memory.in_use);
}

TEST_CASE("threads that read see the state before the last cut or after it",
          "[jit][deferred][threads]") {
  const Variable a(zeros({5000})), b(zeros({5000}));
  const auto step = compile([&](const Tensor& x) {
    const Tensor next = a + x;
    if (bool(sum(next) < 0.0)) return x;
    a.set(next * 1.0);
    b.set(b - x);
    return x;
  });
  const auto both = compile([&] {
    const Tensor first = a.get();
    return bool(sum(first) < 0.0) ? sum(first) : max(abs(first + b));
  });
  std::atomic<bool> is_done = false;
  std::atomic<int> wrong = 0;
  std::thread reader([&] {
    while (!is_done) wrong += both().item<float>() == 0.0F ? 0 : 1;
  });
  const StanceScope never_eager(generates() ? Stance::fail_on_fallback : Stance::normal);
  const Tensor x = ones({5000});
  for (int i = 0; i < 10'000; ++i) step(x);
  is_done = true;
  reader.join();
  CHECK(wrong == 0);
  CHECK(a.get().at({7}).item<float>() == 10'000.0F);
}
