// Functions whose calls on a GPU are replayed, and what is counted of that.
#pragma once

#include "nitinol.h"
#include "tests/cuda/using_fake.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <sstream>
#include <string>

namespace nitinol::test {

/// Kernels of our own, a sum that is cut into parts, which use the workspace, and products.
inline Tensor several_steps(const Tensor& x) {
  const Tensor y = matmul(x, transpose(x));
  return softmax(matmul(y, x) + sum(exp(x))) * 2;
}

inline Tensor input(int seed) {
  return reshape((arange(4000, f32) * 0.001 - seed).to(gpu), {40, 100});
}

template <class Function>
program::ReplayReport replays_of(const Function& function) {
  return function.explain().signatures.at(0).plan.replays;
}

/// Calls until a Plan has run often enough for a graph.
template <class Function, class... Arguments>
void warm_up(const Function& function, const Arguments&... arguments) {
  for (int call = 0; call < 6; ++call) static_cast<void>(function(arguments...));
  INFO(to_string(function.explain()));
  REQUIRE(replays_of(function).made == 1);
}

/// How often the fake driver's function was called; 0 of another driver.
inline uint64_t calls_of(const std::string& name) {
  const auto calls = exported<decltype(&fake_calls)>("libcuda.so.1", "fake_calls");
  std::istringstream lines(calls == nullptr ? "" : calls());
  std::string each;
  for (uint64_t count = 0; lines >> each >> count;) {
    if (each == name) return count;
  }
  return 0;
}

/// Of the fake driver; none of another one.
inline FakeCounts counts_of_fake() {
  const auto counts = exported<decltype(&fake_counts)>("libcuda.so.1", "fake_counts");
  return counts == nullptr ? FakeCounts{} : counts();
}

inline uint64_t live_graphs() {
  return counts_of_fake().graphs;
}

/// Of which a step can fail, and others overwrite.
struct Model {
  Variable table{reshape(arange(12, f32, gpu), {4, 3})};
  Variable count{zeros({64}, f32, gpu)};
  auto step() {
    return compile(
        [this](const Tensor& places) {
          const Tensor taken = take(table, places, 0);
          count += 1;
          table -= 0.5;
          return sum(matmul(taken, transpose(taken)));
        },
        {.name = "step", .check = Check::never});
  }
};

}  // namespace nitinol::test
