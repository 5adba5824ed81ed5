// Which operands a Plan packs, and that nobody can tell from the bits.
#include "program/packing.h"

#include "core/isa.h"
#include "tests/jit/calls.h"
#include "tests/jit/passes/pass_text.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>

using namespace nitinol;
using namespace nitinol::test;

namespace {

using Function = std::function<Tensor(const Tensor&)>;

constexpr int often = 14;

std::size_t packings_in(const jit::PlanReport& plan) {
  return static_cast<std::size_t>(std::ranges::count_if(plan.steps, [](const auto& step) {
    return step.kind == "library" && step.ops == std::vector<std::string>{"pack"};
  }));
}

/// `count` on devices that pack, else 0.
std::size_t if_packed(std::size_t count) {
  return current_isa() == Isa::avx512 && default_device() == Device{} ? count : 0;
}

/// x by the transpose of w, again and again.
Tensor repeated(Tensor x, const Tensor& w, int times = often) {
  for (int i = 0; i < times; ++i) x = tanh(matmul(x, transpose(w)));
  return x;
}

Tensor weight(uint64_t seed, const Shape& shape) {
  Generator numbers(seed);
  return randn(shape, f32, numbers) * 0.2;
}

/// Checks some calls against eager ones; how many steps pack.
std::size_t packings_of_calls(const Function& f, const Tensor& x) {
  const auto compiled = compile(Function(f), {.check = Check::never});
  for (int i = 0; i < 4; ++i) CHECK(same_bits(compiled(x), f(x)));
  return packings_in(compiled.explain().signatures.at(0).plan);
}

}  // namespace

TEST_CASE("what many products of a call read is packed once", "[jit][packing]") {
  const Tensor w = weight(1, {70, 70}), x = weight(2, {16, 70});
  const auto f = [&](const Tensor& start) { return repeated(start, w); };
  for (const int threads : {1, 2, 3}) {
    const Threads scope(threads);
    CHECK(packings_of_calls(f, x) == if_packed(1));
    const WithoutPasses off({"pack_operands"});
    CHECK(packings_of_calls(f, x) == 0);
  }
  CHECK(packings_of_calls([&](const Tensor& start) { return repeated(start, w, 5); }, x) == 0);
}

TEST_CASE("explain() shows what is packed", "[jit][packing]") {
  const Tensor w = weight(1, {70, 70}), x = weight(2, {16, 70});
  const auto f = compile([&](const Tensor& start) { return repeated(start, w); });
  settle(f, x);
  if (if_packed(1) == 0) return;
  const Explanation explanation = f.explain();
  CHECK_THAT(to_string(explanation), Catch::Contains("1. library pack\n"
                                                     "                 reads 19.6 kB, writes "));
  CHECK(explanation.signatures.at(0).plan.arena_bytes >= 70 * 70 * sizeof(float));
}

TEST_CASE("parts of one tensor are packed each for itself", "[jit][packing]") {
  const Tensor w = weight(1, {2, 64, 64}), x = weight(2, {16, 64});
  const auto f = [&](const Tensor& start) {
    return repeated(repeated(start, w[0]), w[1]) + repeated(start, w[1]);
  };
  CHECK(packings_of_calls(f, x) == if_packed(2));
}

TEST_CASE("products of other shapes have a packing of their own", "[jit][packing]") {
  const Tensor w = weight(1, {64, 64}), x = weight(2, {16, 64});
  const auto f = [&](const Tensor& start) {
    const Tensor both = concat({repeated(start, w), start});
    return repeated(both, w) + concat({repeated(start, w, 3), start});
  };
  CHECK(packings_of_calls(f, x) == if_packed(2));
}

TEST_CASE("a packed argument is packed anew at each call", "[jit][packing]") {
  const auto f = compile([](const Tensor& x, const Tensor& w) { return repeated(x, w); },
                         {.check = Check::never});
  const Tensor x = weight(2, {16, 64});
  for (uint64_t seed = 3; seed < 8; ++seed) {
    const Tensor w = weight(seed, {64, 64});
    CHECK(same_bits(f(x, w), repeated(x, w)));
  }
  CHECK(packings_in(f.explain().signatures.at(0).plan) == if_packed(1));
}

TEST_CASE("a packed Variable may be assigned between calls and within them", "[jit][packing]") {
  const Variable of_eager(weight(1, {64, 64})), of_compiled(weight(1, {64, 64}));
  const auto step = [](const Variable& w, const Tensor& x) {
    const Tensor before = repeated(x, w);
    w -= matmul(transpose(before), x) * 0.01;
    const Tensor after = repeated(before, w);
    w *= 0.99;  // over the buffer that was packed
    return after;
  };
  const auto compiled = compile([&](const Variable& w, const Tensor& x) { return step(w, x); },
                                {.check = Check::never});
  for (uint64_t call = 0; call < 8; ++call) {
    const Tensor x = weight(20 + call, {16, 64});
    CHECK(same_bits(compiled(of_compiled, x), step(of_eager, x)));
    CHECK(same_bits(of_compiled, of_eager));
    if (call % 3 != 2) continue;
    of_eager.set(weight(40 + call, {64, 64}));
    of_compiled.set(weight(40 + call, {64, 64}));
  }
  const jit::PlanReport plan = compiled.explain().signatures.at(0).plan;
  CHECK(packings_in(plan) == if_packed(2));
  CHECK(plan.in_place_bytes == 64 * 64 * sizeof(float));
}

TEST_CASE("an LSTM's backward pass packs its weight", "[jit][packing]") {
  struct Model {
    nn::Lstm lstm;
    nn::Linear out;
  };
  const auto made = [] {
    manual_seed(4);
    return Model{nn::lstm(8, 32), nn::linear(32, 3)};
  };
  const Model of_eager = made(), of_compiled = made();
  const nn::Sgd for_eager(nn::parameters(of_eager)), for_compiled(nn::parameters(of_compiled));
  const auto step = [](const Model& model, const nn::Sgd& optimizer, const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = mean(square(model.out(model.lstm(x).last.hidden[0])));
    loss.backward();
    optimizer.step();
    return loss;
  };
  const auto compiled = compile([&](const Tensor& x) { return step(of_compiled, for_compiled, x); },
                                {.check = Check::never});
  for (uint64_t call = 0; call < 5; ++call) {
    const Tensor x = weight(call, {15, 16, 8});
    CHECK(same_bits(compiled(x), step(of_eager, for_eager, x)));
  }
  CHECK(packings_in(compiled.explain().signatures.at(0).plan) == if_packed(1));
}
