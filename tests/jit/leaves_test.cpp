// What makes two calls calls of one signature: seen from outside, where a field that is missing in
// the key shows as a wrong result.
#include "jit/leaves.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// A 0-d number that takes the other operand's dtype.
Tensor weak(double value) {
  return add(Scalar(value), Scalar(0.0));
}

/// Calls with the first arguments until a Plan runs, then with the others: signatures seen.
template <class F, class A, class B>
std::size_t signatures(const F& f, const A& a, const B& b) {
  const auto g = compile(f, {.name = "f", .check = Check::never});
  for (int call = 0; call < 4; ++call) {
    CHECK(same_bits(std::apply(g, a), std::apply(f, a)));
    CHECK(std::apply(g, a).dtype() == std::apply(f, a).dtype());
  }
  for (int call = 0; call < 4; ++call) {
    CHECK(same_bits(std::apply(g, b), std::apply(f, b)));
    CHECK(std::apply(g, b).spec() == std::apply(f, b).spec());
  }
  return g.explain().signatures.size();
}

}  // namespace

TEST_CASE("a weak number and a tensor of its dtype are two signatures", "[jit][leaves]") {
  const auto f = [](const Tensor& x, const Tensor& y) { return x * y; };
  const Tensor x = arange(0, 5, 1, f16);
  const Tensor strong = tensor(1.5);
  REQUIRE(weak(1.5).spec().is_weak);
  REQUIRE((x * weak(1.5)).dtype() == f16);
  const Tensor wide = cast(strong, f64);
  CHECK(signatures(f, std::tuple(x, wide), std::tuple(x, weak(1.5))) == 2);
  CHECK(signatures(f, std::tuple(x, weak(1.5)), std::tuple(x, wide)) == 2);
}

TEST_CASE("every property of an argument that a Plan depends on is in the signature",
          "[jit][leaves]") {
  const auto f = [](const Tensor& x, const Tensor& y) { return sum(x * 2 + y, {0}); };
  const Tensor x = reshape(arange(0, 16, 1, f32), {4, 4});
  const auto against = [&](const Tensor& a, const Tensor& b) {
    return signatures(f, std::tuple(x, x + 1), std::tuple(a, b));
  };
  CHECK(against(x * 3, x) == 1);
  CHECK(against(cast(x, f64), x) == 2);
  CHECK(against(x, cast(x, i32)) == 2);
  CHECK(against(reshape(x, {2, 8}), reshape(x, {2, 8})) == 2);
  CHECK(against(x, reshape(slice(x, 0, {0, 1}), {4})) == 2);
  CHECK(against(transpose(x), x) == 2);
  CHECK(against(flip(x), x) == 2);
  CHECK(against(x, x) == 2);  // one tensor twice
  const Tensor all = reshape(arange(0, 32, 1, f32), {4, 8});
  CHECK(against(slice(all, 1, {0, 4}), slice(all, 1, {4, 8})) == 2);
  CHECK(against(slice(all, 1, {.step = 2}), x) == 2);
}

TEST_CASE("kinds of Scalars, fixed numbers and thread counts are in the signature",
          "[jit][leaves]") {
  const Tensor x = arange(0, 5, 1, i32);
  const auto times = [](const Tensor& t, const Scalar& s) { return t * s; };
  CHECK(signatures(times, std::tuple(x, Scalar(2)), std::tuple(x, Scalar(3))) == 1);
  CHECK(signatures(times, std::tuple(x, Scalar(2)), std::tuple(x, Scalar(2.0))) == 2);
  CHECK(signatures(times, std::tuple(x, Scalar(1)), std::tuple(x, Scalar(true))) == 2);
  const auto fixed = [](const Tensor& t, double factor) { return t * factor; };
  CHECK(signatures(fixed, std::tuple(x, 0.0), std::tuple(x, -0.0)) == 2);
  const auto g = compile([](const Tensor& t) { return matmul(t, t); });
  const Tensor square = ones({3, 3});
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    settle(g, square);
  }
  CHECK(g.explain().signatures.size() == 2);
}

TEST_CASE("whether Variables are equal and have gradients is in the signature", "[jit][leaves]") {
  const auto f = [](const Variable& a, const Variable& b) {
    a.set(a + 1.0);
    return a + b;
  };
  const auto g = compile(f, {.name = "f", .check = Check::never});
  const auto make = [] { return Variable(zeros({3})); };
  const Variable a = make(), b = make(), c = make(), d = make();
  for (int call = 0; call < 4; ++call) CHECK(same_bits(g(a, b), f(c, d)));
  for (int call = 0; call < 4; ++call) CHECK(same_bits(g(a, a), f(c, c)));
  CHECK(same_bits(a, c));
  CHECK(g.explain().signatures.size() == 2);

  const auto step = [](const Variable& w, const Tensor& x) {
    sum(w * x).backward();
    return w.grad();
  };
  const auto compiled = compile(step, {.name = "step", .check = Check::never});
  const Variable w = parameter(ones({3}));
  const Variable v = w.clone();
  const Tensor x = tensor({1.0F, 2.0F, 3.0F});
  for (int call = 0; call < 9; ++call) {
    if (call % 3 == 2) w.clear_grad();
    if (call % 3 == 2) v.clear_grad();
    CHECK(same_bits(compiled(w, x), step(v, x)));
    CHECK(same_bits(w.grad(), v.grad()));
  }
}

TEST_CASE("a number in the result that changes is noticed", "[jit][leaves]") {
  int count = 1;
  const auto g = compile([&](const Tensor& x) { return std::pair(x * 2, count); });
  const Tensor x = ones({3});
  for (int call = 1; call <= 3; ++call) CHECK(g(x).second == 1);
  count = 2;
  CHECK(g(x).second == 2);  // call 4 is recorded again
  CHECK(g(x).second == 2);
  CHECK_THAT(g.explain().signatures.at(0).reason, Catch::Contains("number in the result"));
}

TEST_CASE("another dtype is recorded twice again, another size once", "[jit][leaves]") {
  const auto g =
      compile([](const Tensor& x) { return exp(x) + 1; }, {.name = "g", .check = Check::never});
  settle(g, ones({3}));
  settle(g, ones({3}, f64));
  settle(g, ones({5}));
  const auto signatures = g.explain().signatures;
  REQUIRE(signatures.size() == 3);
  CHECK(signatures[0].recorded_calls == 2);
  CHECK(signatures[1].recorded_calls == 2);
  CHECK(signatures[2].recorded_calls == 1);
}
