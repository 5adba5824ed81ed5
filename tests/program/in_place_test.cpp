// Where a Plan may write a Variable's new value: into its own buffer only if that is laid out as
// the value is and nobody else sees it.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <functional>
#include <initializer_list>
#include <utility>

using namespace nitinol;
using namespace nitinol::test;

namespace {

const CompileOptions by_calls = {.name = "f", .check = Check::never};

Tensor sequence(const Shape& shape) {
  return reshape(arange(0, element_count(shape), 1, f32), shape);
}

}  // namespace

TEST_CASE("a Variable that is not read may hold a value of any layout", "[jit][plan]") {
  const Variable v(zeros({3, 4}));
  const auto f = compile(
      [&](const Tensor& x) {
        v.set(x * 2 + 1);
        return sum(x);
      },
      by_calls);
  settle(f, sequence({3, 4}));
  const Tensor x = sequence({3, 4}) - 5.0;
  // Each is the only handle to its memory.
  for (int layout = 0; layout < 4; ++layout) {
    if (layout == 0) v.set(permute(copy(sequence({4, 3})), {1, 0}));
    if (layout == 1) v.set(flip(copy(sequence({3, 4}))));
    if (layout == 2) v.set(slice(copy(sequence({3, 8})), 1, {.step = 2}));
    if (layout == 3) v.set(expand(copy(sequence({3, 1})), {3, 4}));
    static_cast<void>(f(x));
    INFO(layout);
    CHECK(same_bits(v.get(), x * 2 + 1));
  }
}

TEST_CASE("one value assigned to two Variables can change in one of them", "[jit][plan]") {
  const Variable a(zeros({5}));
  const Variable b(zeros({5}));
  const auto both = compile(
      [&](const Tensor& x) {
        a.set(a + x);
        b.set(a);
        return x * 2;
      },
      by_calls);
  const auto one = compile(
      [&](const Tensor& x) {
        a.set(a * x);
        return x * 2;
      },
      by_calls);
  Tensor expected = zeros({5});
  for (int call = 0; call < 5; ++call) {
    const Tensor x = sequence({5}) + call;
    static_cast<void>(both(x));
    expected = expected + x;
    const Tensor held = b;
    CHECK(same_bits(a.get(), expected));
    CHECK(same_bits(b.get(), expected));
    static_cast<void>(one(x));
    CHECK(same_bits(b.get(), expected));
    CHECK(same_bits(held, expected));
    expected = expected * x;
    CHECK(same_bits(a.get(), expected));
  }
}

TEST_CASE("an argument that is the Variable's own value stays what it is", "[jit][plan]") {
  const Variable w(sequence({6}));
  const auto f = compile(
      [&](const Tensor& x) {
        w.set(w * 2 + 1);
        return x - 1;
      },
      by_calls);
  Tensor expected = w;
  for (int call = 0; call < 5; ++call) {
    const Tensor argument = w;
    const Tensor result = f(argument);
    CHECK(same_bits(result, expected - 1));
    CHECK(same_bits(argument, expected));
    expected = expected * 2 + 1;
    CHECK(same_bits(w.get(), expected));
  }
}

TEST_CASE("a gradient that a call clears is not there afterwards", "[jit][plan][autograd]") {
  const Variable w = parameter(sequence({3}));
  const Variable captured = parameter(sequence({3}));
  const auto f = compile(
      [&](const Variable& p, const Tensor& x) {
        p.clear_grad();
        captured.clear_grad();
        return x * stop_gradient(p);
      },
      by_calls);
  for (int call = 0; call < 6; ++call) {
    w.set_grad(ones({3}));
    captured.set_grad(ones({3}));
    static_cast<void>(f(w, ones({3})));
    INFO("call " << call);
    CHECK_FALSE(w.grad().is_defined());
    CHECK_FALSE(captured.grad().is_defined());
  }
  INFO(f.explain());
  CHECK(f.explain().plan_calls >= 3);
}

TEST_CASE("whether a captured gradient is there selects what a call does",
          "[jit][plan][autograd]") {
  const Variable w = parameter(sequence({3}));
  const auto plain = [&](const Tensor& x) {
    const Tensor gradient = w.grad();
    return gradient.is_defined() ? x + gradient : x * 2;
  };
  const auto f = compile(plain, by_calls);
  for (int call = 0; call < 24; ++call) {
    if (call / 4 % 2 == 0)
      w.clear_grad();
    else
      w.set_grad(sequence({3}) + call);
    INFO("call " << call);
    CHECK(same_bits(f(sequence({3})), plain(sequence({3}))));
  }
}

TEST_CASE("an accuracy beside the loss leaves a training step in place", "[jit][plan]") {
  const auto report_of = [](const std::function<Tensor(const Tensor&)>& measure) {
    const nn::Linear hidden = nn::linear(20, 16), out = nn::linear(16, 4);
    const nn::Adam optimizer({hidden.weight, hidden.bias.value(), out.weight, out.bias.value()},
                             {.rate = 1e-3});
    const auto step = compile(
        [&](const Tensor& x, const Tensor& classes) {
          optimizer.zero_grad();
          const Tensor scores = out(relu(hidden(x)));
          const Tensor loss = nn::cross_entropy(scores, classes);
          loss.backward();
          optimizer.step();
          return std::pair(stop_gradient(loss), measure(stop_gradient(scores)));
        },
        by_calls);
    const Tensor x = reshape(sin(sequence({32 * 20})), {32, 20}), classes = arange(32) % 4;
    for (int call = 0; call < 4; ++call) static_cast<void>(step(x, classes));
    const Explanation explanation = step.explain();
    REQUIRE(explanation.plan_calls == 2);
    return explanation.signatures.at(0).plan;
  };
  const jit::PlanReport of_max = report_of([](const Tensor& y) { return max(y, {1}); });
  CHECK(of_max.in_place_bytes > 4000);  // of 4,848: devices differ in what they join
  for (const auto& measure : std::initializer_list<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& y) { return argmax(y, 1); },
           [](const Tensor& y) { return argmin(y, 0); },
           [](const Tensor& y) {
             return sum(reshape(y, {8, 4, 2, 2}), {0, 2});
           }}) {
    const jit::PlanReport report = report_of(measure);
    CHECK(report.in_place_bytes == of_max.in_place_bytes);
    CHECK(report.result_bytes <= of_max.result_bytes + std::size_t{8} * 32);
    CHECK(report.arena_bytes <= of_max.arena_bytes + std::size_t{4} * 32 * 4);
  }
}

TEST_CASE("Variables that become what others were change where they lie", "[jit][plan]") {
  // One kernel reads both at a point before it stores there, however long the formulas are.
  const auto turn = [](const Variable& x, const Variable& y, const Tensor& angle) {
    const Tensor old = x;
    x.set(cos(angle) * old - sin(angle) * y);
    y.set(sin(angle) * old + cos(angle) * y);
  };
  const auto exchange = [](const Variable& x, const Variable& y, const Tensor& by) {
    const Tensor old = x;
    x.set(gelu(y) + by);
    y.set(gelu(old) - by);
  };
  for (const int64_t size : {7, 3000, 100'000}) {
    const auto check = [&](const auto& change) {
      INFO(size);
      const Variable x(sequence({size}) / size), y(ones({size}));
      const Variable plain_x(x.get()), plain_y(y.get());
      const auto f = compile([&](const Tensor& by) { change(x, y, by); }, by_calls);
      for (int call = 0; call < 6; ++call) {
        const Tensor by = full({size}, 0.125 * call);
        f(by);
        change(plain_x, plain_y, by);
        CHECK(same_bits(x.get(), plain_x.get()));
        CHECK(same_bits(y.get(), plain_y.get()));
      }
      const jit::PlanReport plan = f.explain().signatures.at(0).plan;
      CHECK(plan.steps.size() == 1);
      CHECK(plan.in_place_bytes == 2 * static_cast<std::size_t>(size) * sizeof(float));
      CHECK(plan.arena_bytes == 0);
    };
    check(turn);
    check(exchange);
  }
}

// Of the host: a GPU adds up elsewhere.
TEST_CASE("rows that arrive in a Variable are stored where it lies", "[jit][plan][host]") {
  const Tensor start = sequence({1000, 40});
  const Tensor places = tensor({3, -1, 3, 500}, i64), rows = sequence({4, 40});
  const auto check = [&](int line, const auto& change, std::size_t steps) {
    INFO(line);
    const Variable table(start), plain(start);
    const auto f = compile(
        [&](const Tensor& at, const Tensor& values) { change(table, at, values); }, by_calls);
    for (int call = 0; call < 6; ++call) {
      f(places, rows);
      change(plain, places, rows);
      CHECK(same_bits(table.get(), plain.get()));
    }
    const auto plan = f.explain().signatures.at(0).plan;
    CHECK(plan.steps.size() == steps);
    CHECK(plan.in_place_bytes == 160000);
    CHECK(plan.result_bytes == 0);
    CHECK(plan.arena_bytes <= 4 * 4 * 40 * sizeof(float));
    CHECK(plan.steps.back().bytes_written == 640);
    // What fails has changed nothing.
    const Tensor before = copy(table.get());
    CHECK_THROWS_WITH(f(tensor({0, 1, 1000, 2}, i64), rows),
                      Catch::Contains("index 1000 for an axis"));
    CHECK(same_bits(table.get(), before));
    // What others hold is theirs.
    const Tensor held = table;
    change(plain, places, rows);
    f(places, rows);
    CHECK(same_bits(held, before));
    CHECK(same_bits(table.get(), plain.get()));
  };
  using Indices = const Tensor&;
  for (const Arrival arrival :
       {Arrival::set, Arrival::add, Arrival::multiply, Arrival::maximum, Arrival::minimum}) {
    check(
        __LINE__,
        [=](const Variable& v, Indices at, Indices values) {
          v.set(scatter(v, at, values, arrival));
        },
        2);
  }
  check(
      __LINE__,
      [](const Variable& v, Indices at, Indices values) { v.set(v.get().at({at}).add(values)); },
      2);
  // Rows that are read before are made before.
  check(
      __LINE__,
      [](const Variable& v, Indices at, Indices values) {
        v.set(v.get().at({at}).set(take(v.get(), at) * 0.5 + values));
      },
      3);
}

TEST_CASE("rows that arrive from the Variable itself are not stored where it lies", "[jit][plan]") {
  const Variable v(sequence({6, 2})), plain(sequence({6, 2}));
  const auto change = [](const Variable& table, const Tensor& places) {
    const Tensor x = table;
    table.set(scatter(x, places, slice(x, 0, {1, 4}), Arrival::add));
  };
  const auto f = compile([&](const Tensor& places) { change(v, places); }, by_calls);
  const Tensor places = tensor({2, 1, 3});
  for (int call = 0; call < 5; ++call) {
    f(places);
    change(plain, places);
    CHECK(same_bits(v.get(), plain.get()));
  }
}

TEST_CASE("a part of a Variable that changes is all that is stored", "[jit][plan][host]") {
  const Variable v(sequence({1000, 40})), plain(sequence({1000, 40}));
  const auto change = [](const Variable& table, const Tensor& rows) {
    table.set(table.get().at({Range{1, 5}}).add(rows));
  };
  const auto f = compile([&](const Tensor& rows) { change(v, rows); }, by_calls);
  const Tensor rows = sequence({4, 40});
  for (int call = 0; call < 5; ++call) {
    f(rows);
    change(plain, rows);
    CHECK(same_bits(v.get(), plain.get()));
  }
  // Where somebody looks at the old value, the rest is copied.
  for (int call = 0; call < 2; ++call) {
    const Tensor held = v, before = copy(held);
    f(rows);
    change(plain, rows);
    CHECK(same_bits(v.get(), plain.get()));
    CHECK(same_bits(held, before));
  }
  const void* const memory = v.get().read_bytes();
  f(rows);
  CHECK(v.get().read_bytes() == memory);
  std::size_t written = 0;
  const Explanation told = f.explain();
  for (const auto& step : told.signatures.at(0).plan.steps) written += step.bytes_written;
  CHECK(written <= 2 * 640);
}
