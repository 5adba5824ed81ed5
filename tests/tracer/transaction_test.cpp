// Variables change together at the end of a call, or not at all.
#include "tracer/transaction.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

using namespace nitinol;

TEST_CASE("assignments are seen inside at once and outside after commit()", "[tracer]") {
  const Variable a(zeros({2}));
  const Variable b(ones({2}));
  tracer::Transaction transaction;
  {
    const InterpreterScope scope(transaction);
    a.set(b + 1.0);
    CHECK(same_bits(a, full({2}, 2, f32)));
    b.set(a * 5.0);  // of the value that is pending
    a.set(a + b);    // the last one counts
    CHECK(same_bits(a, full({2}, 12, f32)));
  }
  CHECK(same_bits(a, zeros({2})));
  CHECK(same_bits(b, ones({2})));
  transaction.commit();
  CHECK(same_bits(a, full({2}, 12, f32)));
  CHECK(same_bits(b, full({2}, 10, f32)));
}

TEST_CASE("two Variables may swap their values", "[tracer]") {
  const Variable a(zeros({2}));
  const Variable b(ones({2}));
  tracer::Transaction transaction;
  {
    const InterpreterScope scope(transaction);
    const Tensor before = a;
    a.set(b);
    b.set(before);
  }
  transaction.commit();
  CHECK(same_bits(a, ones({2})));
  CHECK(same_bits(b, zeros({2})));
}

TEST_CASE("what is never committed never happened", "[tracer]") {
  const Variable weight = parameter(ones({2}));
  weight.set_grad(full({2}, 3, f32));
  {
    tracer::Transaction transaction;
    const InterpreterScope scope(transaction);
    weight.set(zeros({2}));
    weight.clear_grad();
    CHECK_FALSE(weight.grad().is_defined());
  }
  CHECK(same_bits(weight.get(), ones({2})));
  CHECK(same_bits(weight.grad(), full({2}, 3, f32)));
}

TEST_CASE("an inner transaction hands its assignments to the outer one", "[tracer]") {
  const Variable a(zeros({2}));
  tracer::Transaction outer;
  {
    const InterpreterScope outer_scope(outer);
    a.set(ones({2}));
    tracer::Transaction inner;
    {
      const InterpreterScope scope(inner);
      a.set(a + 1.0);
    }
    CHECK(same_bits(a, ones({2})));
    inner.commit();
    CHECK(same_bits(a, full({2}, 2, f32)));
    tracer::Transaction dropped;
    {
      const InterpreterScope scope(dropped);
      a.set(full({2}, 9, f32));
    }
  }
  CHECK(same_bits(a, zeros({2})));
  outer.commit();
  CHECK(same_bits(a, full({2}, 2, f32)));
}

TEST_CASE("eager calls of compiled functions are transactions", "[tracer][jit]") {
  const Variable a(zeros({2}));
  const auto f = compile([&](const Tensor& x) {
    a.set(a + x);
    a.set(a + x);               // reads the assignment before it
    return matmul(a.get(), x);  // throws if the sizes differ
  });
  const StanceScope eager(Stance::eager);
  CHECK(same_bits(f(ones({2})), full({}, 4, f32)));
  CHECK(same_bits(a, full({2}, 2, f32)));
  CHECK_THROWS_AS(f(ones({1, 3, 1, 2})[0][0][0][0] + ones({1})), Error);
  CHECK(same_bits(a, full({2}, 2, f32)));
}
