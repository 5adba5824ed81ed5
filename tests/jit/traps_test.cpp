// Known bugs of other systems that compile functions; each case is one that somebody had.
// compile_test.cpp has those that are sentences of the contract.
#include "core/backend.h"
#include "core/executables.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <malloc.h>
#include <memory>

using namespace nitinol;
using namespace nitinol::test;

namespace {

auto scaled_by(double factor) {
  return compile([factor](const Tensor& x) { return x * factor; });
}

/// Bytes on the heap and in tensors, less what is cached.
std::size_t memory_in_use() {
  backend(Device{}).release_cached_memory();
  return mallinfo2().uordblks + backend(Device{}).memory().in_use;
}

}  // namespace

TEST_CASE("a wrapper at the address of a dead one does not give the dead one's results",
          "[jit][traps]") {
  using Wrapper = decltype(scaled_by(1));
  alignas(Wrapper) std::byte place[sizeof(Wrapper)];
  const Tensor x = ramp({50});
  for (int i = 0; i < 20; ++i) {
    const double factor = 1.5 + i;
    const auto* wrapper = new (place) Wrapper(scaled_by(factor));
    CHECK(same_bits(settle(*wrapper, x), x * factor));
    wrapper->~Wrapper();
  }
}

TEST_CASE("sums at a new shape are of the new shape", "[jit][traps]") {
  const auto f = [](const Tensor& x) {
    return std::tuple(sum(x), mean(x, {0}), max(x * 2.0), softmax(x, 0));
  };
  const auto g = compile(f);
  for (const int64_t n : {100, 7, 5000, 1, 64, 4097, 2, 100}) {
    const Tensor x = ramp({n});
    INFO(n);
    const auto [total, average, largest, shares] = settle(g, x);
    const auto [total_eager, average_eager, largest_eager, shares_eager] = f(x);
    CHECK(same_bits(total, total_eager));
    CHECK(same_bits(average, average_eager));
    CHECK(same_bits(largest, largest_eager));
    CHECK(same_bits(shares, shares_eager));
  }
}

TEST_CASE("arguments that overlap in memory are independent values", "[jit][traps]") {
  const auto f = [](const Tensor& a, const Tensor& b) { return std::pair(a + b * 2.0, b - a); };
  const auto g = compile(f);
  const Tensor x = ramp({101});
  const Tensor front = slice(x, 0, {0, 100});
  const Tensor back = slice(x, 0, {1, 101});
  const auto check = [&](const Tensor& a, const Tensor& b) {
    for (int i = 0; i < 3; ++i) {
      const auto [sum_of, difference] = g(a, b);
      CHECK(same_bits(sum_of, f(a, b).first));
      CHECK(same_bits(difference, f(a, b).second));
    }
  };
  check(front, back);
  check(front, front);
  check(front, flip(front));
  check(ramp({100}), front);
}

TEST_CASE("one Variable given twice is one Variable", "[jit][traps]") {
  const auto step = compile([](Variable& a, Variable& b) {
    a += 1.0;
    b *= 2.0;
  });
  Variable one(zeros({4}));
  Variable same = one;
  Variable other(zeros({4}));
  float expected = 0;
  for (int i = 0; i < 5; ++i) {
    step(one, same);
    expected = (expected + 1) * 2;
    CHECK(same_bits(one.get(), full({4}, expected, f32)));
  }
  one.set(zeros({4}));
  for (int i = 1; i <= 5; ++i) {
    step(one, other);
    CHECK(same_bits(one.get(), full({4}, i, f32)));
    CHECK(same_bits(other.get(), zeros({4})));
  }
}

TEST_CASE("Variables that share a buffer do not change together", "[jit][traps]") {
  const Tensor start = ramp({200});
  const Tensor kept = copy(start);
  const Variable a(start);
  const Variable b(start);
  const auto step = compile([&] { a += 1.0; });
  for (int i = 0; i < 5; ++i) step();
  CHECK(same_bits(b.get(), kept));
  CHECK(same_bits(start, kept));
}

TEST_CASE("masks and where keep their bits, NaNs and signs of zero", "[jit][traps]") {
  const auto f = [](const Tensor& x) {
    const Tensor keep = (x > 0) & !isnan(x);
    return std::tuple(where(keep, x, -0.0), keep, cast(keep, f32) * x);
  };
  const auto g = compile(f);
  const Tensor x = tensor({1.0F, -1.0F, 0.0F, -0.0F, NAN, INFINITY, -INFINITY, 1e-40F});
  const auto [chosen, mask, product] = settle(g, x);
  const auto [chosen_eager, mask_eager, product_eager] = f(x);
  CHECK(same_bits(chosen, chosen_eager));
  CHECK(same_bits(mask, mask_eager));
  CHECK(same_bits(product, product_eager));
}

TEST_CASE("dropout draws the same masks compiled as eager, and new ones each call",
          "[jit][traps]") {
  const auto drop = [](const Tensor& x, const Generator& random) {
    return where(rand(x.shape(), f32, random) < 0.25, 0.0, x / 0.75);
  };
  const auto g = compile(drop);
  const Generator a(7);
  const Generator b(7);
  const Tensor x = ones({300});
  Tensor previous = zeros({300});
  for (int i = 0; i < 10; ++i) {
    const Tensor now = g(x, a);
    CHECK(same_bits(now, drop(x, b)));
    CHECK_FALSE(same_bits(now, previous));
    previous = now;
  }
  CHECK(g.explain().plan_calls >= 6);
}

TEST_CASE("a learning rate that changes each step compiles nothing", "[jit][traps]") {
  const Variable w(ramp({500}));
  const auto step = compile([&](const Tensor& g, Scalar rate) { w -= g * rate; },
                            {.name = "step", .check = Check::never});
  const Tensor g = ramp({500}) * 0.5;
  Tensor expected = w.get();
  for (int i = 0; i < 3; ++i) {
    step(g, 0.1);
    expected = expected - g * 0.1;
  }
  const uint64_t before = compilations();
  const uint64_t prepared = executable_statistics().prepared;
  for (int i = 0; i < 50; ++i) step(g, 0.1 / (i + 1));
  CHECK(compilations() == before);
  CHECK(executable_statistics().prepared == prepared);
  CHECK(step.explain().signatures.size() == 1);
  CHECK(step.explain().plan_calls == 51);
  for (int i = 0; i < 50; ++i) expected = expected - g * (0.1 / (i + 1));
  CHECK(same_bits(w.get(), expected));
}

TEST_CASE("10,000 shapes stay within bounds", "[jit][traps][host]") {
  const auto g = compile([](const Tensor& x) { return sum(x * 2.0 + 1.0); });
  const Tensor x = ramp({12000});
  const Threads one(1);
  const auto call = [&](int64_t n) { static_cast<void>(g(slice(x, 0, {0, n}))); };
  for (int64_t n = 1; n <= 1000; ++n) call(n);
  const std::size_t before = memory_in_use();
  for (int64_t n = 1001; n <= 10000; ++n) call(n);
  const std::size_t after = memory_in_use();
  INFO(before << " bytes, then " << after);
  CHECK(after < before + (std::size_t{1} << 18));
  CHECK(g.explain().signatures.size() == 256);
  CHECK(same_bits(g(slice(x, 0, {0, 17})), sum(slice(x, 0, {0, 17}) * 2.0 + 1.0)));
}

TEST_CASE("results of earlier calls stay what they were", "[jit][traps]") {
  const auto f = [](const Tensor& x) {
    const Tensor y = matmul(x, x);
    return std::tuple(y, sum(y, {0}), transpose(y, 0, 1) * 2.0, slice(y, 0, {1, 3}));
  };
  const auto g = compile(f);
  std::vector<decltype(f(ramp({4, 4})))> results;
  for (int i = 0; i < 12; ++i) results.push_back(g(ramp({4, 4}) * (0.5 * i)));
  for (int i = 0; i < 12; ++i) {
    const auto expected = f(ramp({4, 4}) * (0.5 * i));
    INFO("call " << i + 1);
    CHECK(same_bits(std::get<0>(results[static_cast<std::size_t>(i)]), std::get<0>(expected)));
    CHECK(same_bits(std::get<1>(results[static_cast<std::size_t>(i)]), std::get<1>(expected)));
    CHECK(same_bits(std::get<2>(results[static_cast<std::size_t>(i)]), std::get<2>(expected)));
    CHECK(same_bits(std::get<3>(results[static_cast<std::size_t>(i)]), std::get<3>(expected)));
  }
}

TEST_CASE("a captured tensor that is replaced is noticed at the next check", "[jit][traps]") {
  Tensor captured = ones({3});
  const auto g = compile([&captured](const Tensor& x) { return x + captured; });
  const Tensor x = ramp({3});
  settle(g, x);
  captured = ones({3}) * 7.0;
  CHECK(same_bits(g(x), x + captured));  // call 4 is recorded again
  CHECK(same_bits(g(x), x + captured));
  CHECK_THAT(g.explain().signatures.at(0).reason, Catch::Contains("captured tensor"));
}

TEST_CASE("a captured Variable is read at each call", "[jit][traps]") {
  const Variable w(ones({3}));
  const auto g =
      compile([&w](const Tensor& x) { return x * w; }, {.name = "g", .check = Check::never});
  const Tensor x = ramp({3});
  for (int i = 0; i < 6; ++i) {
    w.set(ones({3}) * (1.0 + i));
    CHECK(same_bits(g(x), x * (1.0 + i)));
  }
  CHECK(g.explain().plan_calls == 4);
}

TEST_CASE("a size of 1 is reduced, not dropped", "[jit][traps]") {
  const auto f = [](const Tensor& x) {
    return std::vector{
        sum(x, {1}),  sum(x, {1}, KeepDims::yes), mean(x, {1}),  var(x, {1}),         any(x, {1}),
        argmax(x, 1), logsumexp(x, {1}),          softmax(x, 1), max(x - 1.0, {0, 1})};
  };
  for (const DType dtype : {f32, f16, i8, boolean}) {
    const auto g = compile(f);
    for (const Shape& shape : {Shape{4, 1}, Shape{1, 1}, Shape{4, 3}}) {
      const Tensor x = cast(ramp(shape), dtype);
      const std::vector<Tensor> expected = f(x);
      const std::vector<Tensor> got = settle(g, x);
      REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        INFO(name_of(dtype) << " " << to_string(shape) << " result " << i);
        CHECK(same_bits(got[i], expected[i]));
      }
    }
  }
}

TEST_CASE("a number computed from numbers is no Scalar argument", "[jit][traps]") {
  const auto g = compile([](const Tensor& x) { return x * 2.0; });
  const Tensor number = where(tensor(true), 3.0, 1.0);  // weak: made of host numbers only
  for (int call = 1; call <= 5; ++call) CHECK(g(number).item<double>() == 6.0);
  CHECK_THAT(g.explain().signatures.at(0).reason, Catch::Contains("pass the Scalars themselves"));
}

TEST_CASE("parts of a broadcast value do not alias", "[jit][traps]") {
  const auto f = [](const Tensor& row) {
    const Tensor all = expand(row, {3, 4});
    const Tensor changed = all.at({0}).set(row * 2.0);
    return std::tuple(changed, all[1], all[2] + 1.0);
  };
  const auto g = compile(f);
  const Tensor row = ramp({4});
  const auto [changed, second, third] = settle(g, row);
  CHECK(same_bits(changed, stack({row * 2.0, row, row})));
  CHECK(same_bits(second, row));
  CHECK(same_bits(third, row + 1.0));
}

TEST_CASE("a Variable that holds a broadcast value is updated row by row", "[jit][traps]") {
  const Variable w(expand(ramp({4}), {3, 4}));
  const Tensor step_of = reshape(arange(0, 12, 1, f32), {3, 4});
  const auto step = compile([&] { w += step_of; });
  for (int i = 1; i <= 6; ++i) {
    step();
    const Tensor first = expand(ramp({4}), {3, 4});
    Tensor expected = first;
    for (int k = 0; k < i; ++k) expected = expected + step_of;
    CHECK(same_bits(w.get(), expected));
  }
}

TEST_CASE("a moved argument that somebody else holds is not overwritten", "[jit][traps]") {
  const auto g = compile([](Tensor&& x) { return x * 2.0 + 1.0; });
  const Tensor held = ramp({100});
  const Tensor kept = copy(held);
  for (int i = 0; i < 5; ++i) {
    Tensor given = held;
    const Tensor result = g(std::move(given));
    CHECK(same_bits(result, kept * 2.0 + 1.0));
    CHECK(same_bits(held, kept));
  }
}

TEST_CASE("a result that went into a Variable is not overwritten by the next step",
          "[jit][traps]") {
  const Variable w(ramp({100}));
  const auto step = compile([&](const Tensor& x) {
    const Tensor next = w * 0.5 + x;
    w.set(next);
    return next;
  });
  std::vector<Tensor> history;
  for (int i = 0; i < 8; ++i) history.push_back(step(ones({100})));
  Tensor expected = ramp({100});
  for (const Tensor& value : history) {
    expected = expected * 0.5 + ones({100});
    CHECK(same_bits(value, expected));
  }
}

TEST_CASE("a first trace that throws half-way leaves no state", "[jit][traps]") {
  const Variable w(zeros({3}));
  const Generator random(3);
  const Tensor state = random.state().get();
  int failures = 2;
  const auto g = compile([&](const Tensor& x) {
    w += 1.0;
    const Tensor noise = rand({3}, f32, random);
    if (failures-- > 0) throw std::runtime_error("user");
    return x + noise;
  });
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(g(ones({3})), std::runtime_error);
  CHECK(same_bits(w.get(), zeros({3})));
  CHECK(same_bits(random.state().get(), state));
  const Generator same(3);
  for (int i = 1; i <= 5; ++i) {
    CHECK(same_bits(g(ones({3})), ones({3}) + rand({3}, f32, same)));
    CHECK(same_bits(w.get(), full({3}, i, f32)));
  }
}

TEST_CASE("an exception in a later recording leaves the Plan usable", "[jit][traps]") {
  bool fails = false;
  const auto g = compile([&fails](const Tensor& x) {
    if (fails) throw std::runtime_error("user");
    return x * 3.0;
  });
  const Tensor x = ramp({5});
  settle(g, x);
  fails = true;
  CHECK_THROWS_AS(g(x), std::runtime_error);  // call 4
  fails = false;
  CHECK(same_bits(g(x), x * 3.0));
  CHECK(g.explain().signatures.at(0).tier == Tier::traced);
}

TEST_CASE("memory borrowed within a call may be freed when the call has ended",
          "[jit][traps][host]") {
  int borrowed = 0, released = 0;
  const auto f = compile([&](const Tensor& x) {
    std::array<float, 6> numbers = {1, 2, 3, 4, 5, 6};
    ++borrowed;
    const Tensor transposed = borrow_bytes(
        numbers.data(), {.dtype = f32, .shape = {3, 2}, .is_weak = false, .device = {}}, {1, 3},
        [&released] { ++released; });
    const Tensor result = x * transposed + borrow(numbers.data(), {2}, [] {});
    numbers.fill(-1);
    return result * 1;
  });
  for (int i = 0; i < 6; ++i) {
    CHECK(f(ones({3, 2})).to_vector<float>() == std::vector<float>{2, 6, 3, 7, 4, 8});
    CHECK(released == borrowed);
  }
  CHECK(f.explain().plan_calls > 0);
}
