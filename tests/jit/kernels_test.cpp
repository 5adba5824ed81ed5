// How often code is generated: a kernel depends on structure, never on sizes, numbers or threads.
#include "core/executables.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// How many kernels are compiled while `body` runs, starting from an empty cache.
template <class Body>
uint64_t compiled_by(const Body& body) {
  clear_executables();
  const uint64_t before = compilations();
  body();
  return compilations() - before;
}

}  // namespace

TEST_CASE("32 lengths compile one kernel", "[jit][kernels]") {
  const auto f = [](const Tensor& x) { return tanh(x) * x + 0.5; };
  const auto g = compile(f);
  const uint64_t kernels = compiled_by([&] {
    for (int64_t n = 2; n <= 33; ++n) CHECK(same_bits(settle(g, ramp({n * n})), f(ramp({n * n}))));
  });
  // The first signature generates it, the others find it.
  CHECK(kernels == if_generated(1));
  CHECK(g.explain().signatures.size() == 32);
  std::size_t generated = 0;
  const Explanation explanation = g.explain();
  for (const SignatureReport& report : explanation.signatures) {
    generated += report.plan.kernels_generated;
  }
  CHECK(generated == if_generated(1));
}

TEST_CASE("32 lengths of a reduction with an epilogue compile one kernel", "[jit][kernels]") {
  const auto f = [](const Tensor& x) { return sqrt(sum(x * x, {1})) + 1.0; };
  const auto g = compile(f);
  CHECK(compiled_by([&] {
          for (int64_t n = 2; n <= 33; ++n) {
            const Tensor x = ramp({n, 3 * n});
            CHECK(same_bits(settle(g, x), f(x)));
          }
        }) == if_generated(1));
}

TEST_CASE("32 numbers compile one kernel", "[jit][kernels]") {
  const Tensor x = ramp({100});
  SECTION("as Scalars they need one Plan") {
    const auto f = [](const Tensor& a, Scalar s) { return a * s - s; };
    const auto g = compile(f);
    CHECK(compiled_by([&] {
            for (int i = 0; i < 32; ++i) CHECK(same_bits(settle(g, x, 0.37 * i), f(x, 0.37 * i)));
          }) == if_generated(1));
    CHECK(g.explain().signatures.size() == 1);
  }
  SECTION("as plain doubles they need 32 Plans") {
    const auto f = [](const Tensor& a, double s) { return a * s - (s + 1); };
    const auto g = compile(f);
    CHECK(compiled_by([&] {
            for (int i = 3; i < 35; ++i) CHECK(same_bits(settle(g, x, 0.37 * i), f(x, 0.37 * i)));
          }) == if_generated(1));
    CHECK(g.explain().signatures.size() == 32);
  }
}

TEST_CASE("numbers that become equal stay two slots of the kernel", "[jit][kernels]") {
  const auto f = [](const Tensor& x, double a, double b) { return (x + a) * b - a; };
  const auto g = compile(f);
  const Tensor x = ramp({64});
  CHECK(compiled_by([&] {
          CHECK(same_bits(settle(g, x, 2.5, 2.5), f(x, 2.5, 2.5)));
          CHECK(same_bits(settle(g, x, 2.5, 3.5), f(x, 2.5, 3.5)));
        }) == if_generated(1));
}

TEST_CASE("16 threads making the first calls compile once", "[jit][kernels][threads]") {
  const auto f = [](const Tensor& x) { return tanh(x) * 3.0 - exp(x) * x; };
  const auto g = compile(f);
  const Tensor x = ramp({777});
  const Tensor expected = f(x);
  std::atomic<int> wrong = 0;
  std::atomic<int> ready = 0;
  CHECK(compiled_by([&] {
          std::vector<std::thread> threads;
          for (int t = 0; t < 16; ++t) {
            threads.emplace_back([&] {
              ++ready;
              while (ready < 16) std::this_thread::yield();
              for (int i = 0; i < 10; ++i) wrong += same_bits(g(x), expected) ? 0 : 1;
            });
          }
          for (std::thread& thread : threads) thread.join();
        }) == if_generated(1));
  CHECK(wrong == 0);
}

TEST_CASE("16 wrappers of one function compile one kernel", "[jit][kernels][threads]") {
  const auto f = [](const Tensor& x) { return x * x * x - 2.0 * x; };
  const Tensor x = ramp({500});
  const Tensor expected = f(x);
  std::atomic<int> wrong = 0;
  CHECK(compiled_by([&] {
          std::vector<std::thread> threads;
          for (int t = 0; t < 16; ++t) {
            threads.emplace_back([&] {
              const auto g = compile(f);
              wrong += same_bits(settle(g, x), expected) ? 0 : 1;
            });
          }
          for (std::thread& thread : threads) thread.join();
        }) == if_generated(1));
  CHECK(wrong == 0);
}

TEST_CASE("dimensions that merge do not count", "[jit][kernels]") {
  const auto f = [](const Tensor& x, const Tensor& y) { return (x - y) * sigmoid(x); };
  const auto g = compile(f);
  CHECK(compiled_by([&] {
          for (const Shape& shape : {Shape{4, 5}, Shape{20}, Shape{2, 3, 4, 5}, Shape{1, 7, 1}})
            CHECK(same_bits(settle(g, ramp(shape), ramp(shape) + 1.0),
                            f(ramp(shape), ramp(shape) + 1.0)));
        }) == if_generated(1));
}

TEST_CASE("other dtypes, strides and operations are other kernels", "[jit][kernels]") {
  const Tensor x = ramp({8, 9});
  const auto f = [](const Tensor& a) { return a * a + 1.0; };
  const auto g = compile(f);
  CHECK(compiled_by([&] { settle(g, x); }) == if_generated(1));
  const auto more_for = [](const auto& function, const Tensor& argument) {
    const uint64_t before = compilations();
    const auto h = compile(function);
    CHECK(same_bits(settle(h, argument), function(argument)));
    return compilations() - before;
  };
  CHECK(more_for(f, x) == 0);
  CHECK(more_for(f, cast(x, f64)) == if_generated(1));
  CHECK(more_for(f, slice(x, 1, {0, 9, 2})) == if_generated(1));
  CHECK(more_for([](const Tensor& a) { return a * a - 1.0; }, x) == if_generated(1));
}

TEST_CASE("thread counts share a kernel", "[jit][kernels]") {
  const auto f = [](const Tensor& x) { return sum(x * 1.5, {0}) + 2.0; };
  const auto g = compile(f);
  const Tensor x = ramp({300, 50});
  CHECK(compiled_by([&] {
          for (const int threads : {1, 2, 3}) {
            const Threads scope(threads);
            CHECK(same_bits(settle(g, x), f(x)));
          }
        }) == if_generated(1));
}
