// Lengths in turn: a size that was not seen costs one recorded call and a Plan of known kernels.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// A recurrent model by hand, and its gradient: as many steps as x has rows.
Tensor loop(const Tensor& x, const Tensor& weight) {
  return grad([&weight](const Tensor& value) {
    Tensor h = zeros_like(value[0]);
    for (int64_t t = 0; t < value.shape()[0]; ++t) h = nitinol::tanh(value[t] + matmul(h, weight));
    return sum(square(h));
  })(x);
}

/// The likeliest two continuations of two sequences, which grow by a word.
std::pair<Tensor, Tensor> grown(const Tensor& sequences, const Tensor& scores) {
  constexpr int64_t words = 50;
  const Tensor state = sum(sequences.to(f32) * 0.1 + 1.0, 1);
  Tensor all =
      reshape(unsqueeze(scores, 1) - square(unsqueeze(state, 1) - arange(words, f32)), {-1});
  std::vector<Tensor> next, best;
  for (int k = 0; k < 2; ++k) {
    const Tensor i = argmax(all, 0);
    next.push_back(concat({take(sequences, (i / words).to(i64)), unsqueeze(i % words, 0)}));
    best.push_back(take(all, i));
    all = where(arange(2 * words) == i, -1e30F, all);
  }
  return {stack(next), stack(best)};
}

uint64_t generated_by(const Explanation& explanation, std::size_t from) {
  uint64_t kernels = 0;
  for (std::size_t i = from; i < explanation.signatures.size(); ++i)
    kernels += explanation.signatures[i].plan.kernels_generated;
  return kernels;
}

}  // namespace

TEST_CASE("a loop over another length needs one recorded call, and the second pass is all Plans",
          "[jit][lengths]") {
  const auto compiled = compile(loop);
  const Tensor weight = reshape(arange(256, f32), {16, 16}) * 1e-3;
  constexpr int64_t lengths = 16;
  const auto pass = [&] {
    for (int64_t n = 0; n < lengths; ++n) {
      const Tensor x = reshape(arange((5 + n) * 128, f32), {5 + n, 8, 16}) * 1e-3;
      REQUIRE(same_bits(compiled(x, weight), loop(x, weight)));
    }
  };
  pass();
  CHECK(compiled.explain().recorded_calls == lengths);
  pass();
  const Explanation explanation = compiled.explain();
  INFO(explanation);
  CHECK(explanation.recorded_calls == lengths);
  CHECK(explanation.plan_calls == lengths);
  REQUIRE(explanation.signatures.size() == lengths);
  for (const SignatureReport& signature : explanation.signatures)
    CHECK(signature.tier == Tier::traced);
  CHECK(generated_by(explanation, 2) == 0);
}

TEST_CASE("sequences that grow run on Plans of known kernels", "[jit][lengths]") {
  const auto compiled = compile(grown);
  constexpr int steps = 20;
  for (int search = 0; search < 2; ++search) {
    Tensor sequences = reshape(arange(2), {2, 1}), scores = zeros({2});
    for (int i = 0; i < steps; ++i) {
      const auto expected = grown(sequences, scores);
      std::tie(sequences, scores) = compiled(sequences, scores);
      REQUIRE(same_bits(sequences, expected.first));
      REQUIRE(same_bits(scores, expected.second));
    }
  }
  const Explanation explanation = compiled.explain();
  INFO(explanation);
  REQUIRE(explanation.signatures.size() == steps);
  for (const SignatureReport& signature : explanation.signatures) {
    INFO(signature.signature << " " << signature.compile_s * 1e6 << " us");
    CHECK(signature.tier == Tier::traced);
    CHECK(signature.plan_calls == 1);
  }
  CHECK(explanation.recorded_calls == steps);
  CHECK(generated_by(explanation, 3) == 0);
}

TEST_CASE("what changes from call to call is trusted at no length", "[jit][lengths]") {
  int count = 0;
  SECTION("a number made by host code") {
    const auto f = compile([&count](const Tensor& x) { return x * tensor(++count); });
    for (int call = 1; call <= 12; ++call) {
      const Tensor x = ones({3 + call % 4});
      CHECK(same_bits(f(x), x * tensor(call)));
    }
  }
  SECTION("an operation") {
    const auto f = compile([&count](const Tensor& x) {
      Tensor y = x;
      for (int64_t i = 0; i < x.size(); ++i) y = y + 1.0;
      return ++count % 2 == 0 ? exp(y) : y;
    });
    for (int call = 1; call <= 12; ++call) {
      const Tensor x = ones({3 + call % 5});
      Tensor y = x;
      for (int64_t i = 0; i < x.size(); ++i) y = y + 1.0;
      CHECK(same_bits(f(x), call % 2 == 0 ? exp(y) : y));
    }
  }
}
