// What a Plan does with memory, and what a call that fails leaves behind.
#include "jit/plan.h"

#include "core/backend.h"
#include "core/executables.h"
#include "eager/all_ops.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace nitinol;
using namespace nitinol::test;

namespace {

const void* address_of(const Variable& variable) {
  return variable.get().internals().address();
}

/// The plan of a graph whose inputs are tensor arguments.
jit::Plan plan_of(std::string_view text, int threads = 1) {
  tracer::Trace trace;
  trace.graph = parse(text, all_ops());
  for (std::size_t i = 0; i < trace.graph.inputs.size(); ++i) {
    trace.inputs.push_back(
        {.kind = tracer::TraceInput::Kind::tensor, .leaf = static_cast<int>(i), .captured = {}});
  }
  trace.result_count = trace.graph.outputs.size();
  return jit::Plan(trace, {.threads = threads});
}

/// The operations of each step: "matmul | add mul".
std::string steps_of(const Explanation& explanation) {
  std::string text;
  for (const program::StepReport& step : explanation.signatures.at(0).plan.steps) {
    if (!text.empty()) text += " | ";
    for (const std::string& op : step.ops) text += (&op == step.ops.data() ? "" : " ") + op;
  }
  return text;
}

MemoryStatistics memory() {
  return backend(Device{}).memory();
}

constexpr std::size_t matrix_bytes = std::size_t{16} * 16 * sizeof(float);

}  // namespace

// ---- kernels

TEST_CASE("a Plan's kernel of one op runs eager's loop, whoever asks first", "[jit][plan]") {
  clear_executables();
  const jit::Plan plan = plan_of("a: f32[64] = input; b = exp a; return b");
  CHECK(plan.report().steps.at(0).build.origin == CodeOrigin::none);
}

// ---- temporaries

TEST_CASE("values within a kernel need no memory", "[jit][plan]") {
  CHECK(plan_of("a: f32[1000] = input; b = exp a; c = mul b a; d = sin c; return d")
            .report()
            .arena_bytes == 0);
}

TEST_CASE("a temporary's place is free after its last reader", "[jit][plan]") {
  // b and c, then d in b's place; e is the result.
  CHECK(plan_of("a: f32[16, 16] = input; b = matmul a a; c = matmul b a; d = matmul c a; e = "
                "matmul d a; return e")
            .report()
            .arena_bytes == 2 * matrix_bytes);
}

TEST_CASE("a temporary that is read later keeps its place", "[jit][plan]") {
  const jit::Plan plan = plan_of(
      "a: f32[16, 16] = input; b = matmul a a; c = matmul b a; d = matmul c a; e = matmul d b; "
      "return e");
  CHECK(plan.report().arena_bytes == 3 * matrix_bytes);
  const Tensor x = reshape(ramp(256), {16, 16}) * 0.1;
  std::vector<Tensor> results(plan.result_count());
  const Tensor* const tensors[] = {&x};
  REQUIRE(plan.run({.tensors = tensors, .variables = {}, .scalars = {}}, results) ==
          jit::Plan::Outcome::done);
  const Tensor b = matmul(x, x);
  CHECK(same_bits(results.at(0), matmul(matmul(matmul(b, x), x), b)));
}

TEST_CASE("several threads find values of one size in a place", "[jit][plan]") {
  // c and d of two matrices' bytes, then e and f of one: both in c's place, or in their own.
  const auto bytes = [](int64_t rows, int threads) {
    const std::string text = fmt::format(
        "a: f32[{0}, {0}] = input; b: f32[{0}, {1}] = input; w: f32[{1}, {0}] = input; c = matmul "
        "a "
        "b; d = matmul a c; e = matmul d w; f = matmul e a; g = matmul f a; return g",
        rows, 2 * rows);
    return plan_of(text, threads).report().arena_bytes;
  };
  CHECK(bytes(128, 1) == 4 * 64 * matrix_bytes);
  CHECK(bytes(128, 2) == 6 * 64 * matrix_bytes);
  CHECK(bytes(16, 2) == 4 * matrix_bytes);           // too small to be shared
  CHECK(bytes(1024, 2) == 4 * 4096 * matrix_bytes);  // six are more than the caches hold
}

TEST_CASE("a kernel stores where a temporary lies that it is the last to read", "[jit][plan]") {
  const auto bytes = [](int rows, const std::string& rest) {
    const std::string text = fmt::format(
        "a: f32[{0}, {0}] = input; b = matmul a a; {1}; e = matmul d a; return e", rows, rest);
    return plan_of(text).report().arena_bytes;
  };
  const std::size_t one = std::size_t{128} * 128 * 4;
  CHECK(bytes(128, "d = exp b") == one);
  CHECK(bytes(128, "c = exp b; d = matmul c a") == 2 * one);  // c in b's place, d beside it
  CHECK(bytes(128, "c = exp b; d = matmul c b") == 3 * one);  // b is read later
  CHECK(bytes(128, "c = permute b axes=[1, 0]; d = add b c") == 2 * one);         // elsewhere, too
  CHECK(bytes(128, "c = max b axes=[1] keepdims=true; d = sub b c") == 2 * one);  // twice
  CHECK(bytes(16, "d = exp b") == 2 * matrix_bytes);  // it stays in the cache anyway

  for (const int threads : {1, 3}) {
    const Threads scope(threads);
    const auto f = [](const Tensor& x) {
      const Tensor y = matmul(x, x) * 0.01;
      const Tensor z = matmul(y, x);
      const Tensor s = sin(z), c = cos(z);  // one kernel, of which one result takes z's place
      return matmul(s, x) + matmul(c, y) + matmul(x, s * c);
    };
    const auto g = compile(f, {.check = Check::never});
    const Tensor x = reshape(ramp(130 * 130), {130, 130}) * 0.0001;
    const Tensor expected = f(x);
    for (int call = 0; call < 5; ++call) CHECK(same_bits(g(x), expected));
    std::size_t in_place = 0;
    for (const auto& value : g.explain().signatures.at(0).plan.values)
      in_place += value.is_in_place;
    CHECK(in_place >= 2);
  }
}

TEST_CASE("results are not in the arena", "[jit][plan]") {
  CHECK(plan_of("a: f32[16, 16] = input; b = matmul a a; c = matmul b a; return b c")
            .report()
            .arena_bytes == 0);
}

TEST_CASE("a warm call asks the system for no memory", "[jit][plan]") {
  const Variable w(reshape(ramp(256), {16, 16}) * 0.01);
  const auto step = compile(
      [&](const Tensor& x) {
        const Tensor y = matmul(matmul(x, w), w);
        w.set(w * 0.9 + y * 1e-6);
        return sum(y);
      },
      {.name = "step", .check = Check::never});
  const Tensor x = reshape(ramp(256), {16, 16});
  for (int i = 0; i < 10; ++i) step(x);
  const uint64_t before = memory().system_allocations;
  const std::size_t in_use = memory().in_use;
  for (int i = 0; i < 100; ++i) step(x);
  CHECK(memory().system_allocations == before);
  CHECK(memory().in_use == in_use);
}

TEST_CASE("each call's results are its own", "[jit][plan]") {
  const auto g = compile([](const Tensor& x) { return x * 2.0; });
  settle(g, ramp(100));
  const Tensor first = g(ramp(100));
  const Tensor second = g(ramp(100));
  CHECK(first.internals().address() != second.internals().address());
}

// ---- Variables in place

TEST_CASE("a Variable that nobody else sees is updated in place", "[jit][plan]") {
  const Variable w(ramp(1000));
  const auto step = compile([&](const Tensor& g) { w -= g * 0.5; });
  settle(step, ones({1000}));
  step(ones({1000}));
  const void* address = address_of(w);
  step(ones({1000}));
  step(ones({1000}));
  CHECK(address_of(w) == address);
}

TEST_CASE("a Variable that is assigned without being read keeps its buffer", "[jit][plan]") {
  const Variable w(ramp(1000));
  const auto step = compile([&](const Tensor& x) { w.set(x * 2.0); }, {.check = Check::never});
  settle(step, ones({1000}));
  const void* address = address_of(w);
  step(ramp(1000));
  CHECK(address_of(w) == address);
  CHECK(same_bits(w.get(), ramp(1000) * 2.0));
  SECTION("unless somebody sees it") {
    const Tensor held = w.get();
    step(ones({1000}));
    CHECK(same_bits(held, ramp(1000) * 2.0));
    CHECK(same_bits(w.get(), full({1000}, 2.0F)));
  }
}

TEST_CASE("after the last check Variables are updated in place, before it never", "[jit][plan]") {
  const Variable before(ramp(100)), after(ramp(100));
  const auto step = compile(
      [&](const Tensor& index) {
        before -= 1.0;
        const Tensor row = take(reshape(ramp(100), {10, 10}), index);
        after -= sum(row);
      },
      {.check = Check::never});
  const Tensor good = tensor({int64_t{3}});
  settle(step, good);
  const void* address = address_of(after);
  step(good);
  CHECK(address_of(after) == address);
  const Tensor seen_before = copy(before.get()), seen_after = copy(after.get());
  CHECK_THROWS_AS(step(tensor({int64_t{10}})), Error);
  CHECK(same_bits(before.get(), seen_before));
  CHECK(same_bits(after.get(), seen_after));
  step(good);
  CHECK(same_bits(before.get(), seen_before - 1.0));
}

TEST_CASE("a value that somebody sees is not overwritten", "[jit][plan]") {
  const Variable w(ramp(1000));
  const auto step =
      compile([&](const Tensor& g) { w -= g * 0.5; }, {.name = "step", .check = Check::never});
  const Tensor one = ones({1000});
  settle(step, one);
  SECTION("a handle") {
    const Tensor held = w.get();
    const Tensor copied = copy(held);
    step(one);
    CHECK(same_bits(held, copied));
  }
  SECTION("a view") {
    const Tensor held = slice(w.get(), 0, {10, 20});
    const Tensor copied = copy(held);
    step(one);
    CHECK(same_bits(held, copied));
  }
  SECTION("another Variable") {
    const Variable other(w.get());
    const Tensor copied = copy(w.get());
    step(one);
    CHECK(same_bits(other.get(), copied));
  }
  SECTION("the argument of the same call") {
    const Tensor before = copy(w.get());
    step(w.get());
    CHECK(same_bits(w.get(), before - before * 0.5));
  }
  CHECK(step.explain().plan_calls >= 2);
}

TEST_CASE("borrowed memory is never overwritten", "[jit][plan]") {
  std::vector<float> numbers(1000, 1.0F);
  const Variable w(borrow(numbers.data(), {1000}, [] {}));
  const auto step = compile([](Variable& v) { v += 1.0; });
  const Variable ours(ones({1000}));
  Variable argument = ours;
  settle(step, argument);  // the Plan updates in place
  Variable borrowed = w;
  step(borrowed);
  step(borrowed);
  CHECK(numbers == std::vector<float>(1000, 1.0F));
  CHECK(same_bits(w.get(), ones({1000}) * 3.0));
}

TEST_CASE("an update in place needs the same index map", "[jit][plan]") {
  const Tensor start = reshape(ramp(36), {6, 6});
  const auto check = [&](const auto& update) {
    const Variable w(copy(start));
    const auto step = compile([&] { w.set(update(w.get())); });
    Tensor expected = copy(start);
    for (int call = 1; call <= 6; ++call) {
      step();
      expected = copy(update(expected));
      CHECK(same_bits(w.get(), expected));
    }
    CHECK(step.explain().plan_calls > 0);
  };
  SECTION("transposed") {
    check([](const Tensor& x) { return transpose(x, 0, 1) * 2.0; });
  }
  SECTION("flipped") {
    check([](const Tensor& x) { return flip(x, {0}) + 1.0; });
  }
  SECTION("read at two points") {
    check([](const Tensor& x) { return x - transpose(x, 0, 1); });
  }
  SECTION("a row for all") {
    check([](const Tensor& x) { return x + x[0]; });
  }
  SECTION("a sum of all") {
    check([](const Tensor& x) { return x * 0.5 + sum(x) * 1e-3; });
  }
  SECTION("sums of rows") {
    check([](const Tensor& x) { return x - sum(x, {1}, KeepDims::yes) * 0.1; });
  }
  SECTION("shifted") {
    check([](const Tensor& x) { return concat({slice(x, 0, {1, 6}), slice(x, 0, {0, 1})}, 0); });
  }
  SECTION("a matrix product") {
    check([](const Tensor& x) { return matmul(x, x) * 0.1; });
  }
}

TEST_CASE("a Variable may lie in another order after each call", "[jit][plan]") {
  const Tensor start = reshape(ramp(400), {20, 20});
  const Variable w(copy(start));
  const auto step = compile([&] { w.set(transpose(w.get(), 0, 1) * 0.5); });
  Tensor expected = copy(start);
  for (int call = 1; call <= 8; ++call) {
    step();
    expected = copy(transpose(expected, 0, 1) * 0.5);
    CHECK(same_bits(w.get(), expected));
  }
  CHECK(step.explain().eager_calls == 0);  // segments match each of the two orders
}

TEST_CASE("a Variable's old value that is returned is not overwritten", "[jit][plan]") {
  const Variable w(ramp(64));
  const auto step = compile([&](const Tensor& x) {
    const Tensor old = w.get();
    w.set(old + x);
    return std::pair(old, slice(old, 0, {0, 8}));
  });
  Tensor expected = ramp(64);
  for (int call = 1; call <= 6; ++call) {
    const auto [whole, part] = step(ones({64}));
    CHECK(same_bits(whole, expected));
    CHECK(same_bits(part, slice(expected, 0, {0, 8})));
    expected = expected + ones({64});
    CHECK(same_bits(w.get(), expected));
  }
}

TEST_CASE("a new value that is also a result is in memory of its own", "[jit][plan]") {
  const Variable w(ramp(64));
  const Variable twin(ramp(64));
  const auto step = compile([&](const Tensor& x) {
    const Tensor next = w * 0.5 + x;
    w.set(next);
    twin.set(next);
  });
  Tensor expected = ramp(64);
  for (int call = 1; call <= 8; ++call) {
    step(ones({64}));
    expected = expected * 0.5 + ones({64});
    CHECK(same_bits(w.get(), expected));
    CHECK(same_bits(twin.get(), expected));
    CHECK(address_of(w) == address_of(twin));  // one value, as eagerly
  }
}

TEST_CASE("a Variable is not overwritten while a view of it is the argument", "[jit][plan]") {
  const Variable w(ramp(65));
  const auto step = compile(
      [&](const Tensor& x) {
        w += 1.0;
        return sum(matmul(reshape(x, {8, 8}), reshape(x, {8, 8})));
      },
      {.name = "step", .check = Check::never});
  for (int call = 1; call <= 5; ++call) {
    const Tensor before = copy(slice(w.get(), 0, {1, 65}));
    const Tensor square = matmul(reshape(before, {8, 8}), reshape(before, {8, 8}));
    CHECK(same_bits(step(slice(w.get(), 0, {1, 65})), sum(square)));
  }
}

TEST_CASE("a Variable read after another's update still has its old value", "[jit][plan]") {
  const Variable a(ramp(64));
  const Variable b(ramp(64) * 2.0);
  const auto mixed = compile([&](const Tensor& x) {
    const Tensor old = a.get();
    a.set(old * 0.5 + x);
    b.set(reshape(matmul(reshape(old, {8, 8}), reshape(b, {8, 8})), {64}) * 0.01);
  });
  Tensor expected_a = a.get();
  Tensor expected_b = b.get();
  const Tensor x = ramp(64) * 0.125;
  for (int call = 1; call <= 6; ++call) {
    mixed(x);
    const Tensor next_a = expected_a * 0.5 + x;
    expected_b =
        reshape(matmul(reshape(expected_a, {8, 8}), reshape(expected_b, {8, 8})), {64}) * 0.01;
    expected_a = next_a;
    CHECK(same_bits(a.get(), expected_a));
    CHECK(same_bits(b.get(), expected_b));
  }
}

// ---- failures

TEST_CASE("a failed check leaves all Variables as they were and throws eager's error",
          "[jit][plan]") {
  const Variable first(ones({50}));
  const Variable last(ones({50}));
  const auto check = [&](const auto& f, const Tensor& good, const Tensor& bad) {
    const auto g = compile(f, {.name = "g", .check = Check::never});
    settle(g, good);
    const Tensor old_first = copy(first.get());
    const Tensor old_last = copy(last.get());
    const std::string eager = error_of([&] {
      g.eager(bad);
      return 0;
    });
    CHECK(eager != "no error");
    CHECK(same_bits(first.get(), old_first));
    CHECK(error_of([&] {
            g(bad);
            return 0;
          }) == eager);
    CHECK(same_bits(first.get(), old_first));
    CHECK(same_bits(last.get(), old_last));
    CHECK(g.explain().failed_checks == 1);
    g(good);
    CHECK_FALSE(same_bits(first.get(), old_first));
  };
  SECTION("division") {
    check(
        [&](const Tensor& x) {
          first += 1.0;
          const Tensor q = floor_divide(full({50}, 100, i64), x);
          last += cast(q, f32);
        },
        full({50}, 7, i64), arange(-25, 25));
  }
  SECTION("index") {
    check(
        [&](const Tensor& x) {
          first += 1.0;
          last += take(first.get(), x);
        },
        arange(0, 50), arange(1, 51));
  }
}

TEST_CASE("a failed check is an error at the user's line, also from several threads",
          "[jit][plan]") {
  const auto f = [](const Tensor& a, const Tensor& b) { return remainder(a, b); };
  const auto g = compile(f, {.name = "g", .check = Check::never});
  const Tensor a = arange(0, 100000);
  const Threads threads(2);
  settle(g, a, full({100000}, 3, i64));
  const Tensor bad = where(a == 99999, 0, full({100000}, 3, i64));
  CHECK(error_of([&] { return g(a, bad); }) == error_of([&] { return f(a, bad); }));
  CHECK(g.explain().failed_checks == 1);
}

TEST_CASE("a Variable whose layout changed is recorded anew", "[jit][plan]") {
  const Variable w(reshape(ramp(6), {2, 3}));
  const auto g = compile([&](const Tensor& x) { return x * w; });
  const Tensor x = ones({2, 3});
  settle(g, x);
  w.set(transpose(reshape(ramp(6), {3, 2}), 0, 1));
  for (int i = 0; i < 4; ++i) CHECK(same_bits(g(x), w.get() * x));
  CHECK(g.explain().signatures[0].tier == Tier::traced);
}

// ---- steps

TEST_CASE("the steps of a layer are a product and one kernel", "[jit][plan]") {
  const Tensor weight = reshape(ramp(12), {4, 3});
  const auto g = compile([weight](const Tensor& x) { return relu(matmul(x, weight) + 1.0); });
  const Tensor x = reshape(ramp(8), {2, 4});
  CHECK(same_bits(settle(g, x), relu(matmul(x, weight) + 1.0)));
  CHECK_THAT(steps_of(g.explain()), Catch::StartsWith("matmul | "));
  CHECK(g.explain().signatures[0].plan.steps.size() == 2);
}

TEST_CASE("tensors without elements pass through", "[jit][plan]") {
  const auto f = [](const Tensor& x) { return std::pair(exp(x) * 2.0, sum(x, {0})); };
  const auto g = compile(f);
  const Tensor x = zeros({0, 3});
  const auto [empty, sums] = settle(g, x);
  CHECK(empty.shape() == Shape{0, 3});
  CHECK(same_bits(sums, zeros({3})));
  CHECK(g.explain().plan_calls == 1);
}
