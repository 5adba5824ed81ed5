// A compiled training step takes no more memory than the eager one.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

using namespace nitinol;

namespace {

/// The most memory that a call takes beside what was in use before.
template <class F>
std::size_t peak_of(const F& f) {
  const std::size_t before = memory_statistics().in_use;
  reset_peak_memory();
  f();
  return memory_statistics().peak - before;
}

/// The most bytes of temporaries that are in use at a time.
std::size_t most_in_use(const jit::PlanReport& plan) {
  std::vector<std::size_t> in_use(plan.steps.size());
  for (const program::ValueReport& value : plan.values) {
    if (value.kind != program::ValueReport::Kind::temporary) continue;
    // What lies where another did, as the last to read that one stored it there, begins after it.
    for (std::size_t s = value.first_step + value.is_in_place; s <= value.last_step; ++s)
      in_use[s] += value.bytes;
  }
  return std::ranges::max(in_use);
}

template <class Model>
void check_peak(const std::string& name, const Model& model, const Tensor& x) {
  INFO(name);
  const nn::Adam optimizer(nn::parameters(model));
  const auto step = [&](const Tensor& input) {
    optimizer.zero_grad();
    const Tensor loss = mean(square(model(input)));
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  };
  step(x);
  const std::size_t eager = peak_of([&] { step(x); });
  const auto compiled = compile(step, {.check = Check::never});
  test::settle(compiled, x);
  const std::size_t peak = peak_of([&] { compiled(x); });
  INFO(compiled.explain());
  CHECK(peak <= eager);
  const jit::PlanReport plan = compiled.explain().signatures.at(0).plan;
  CHECK(plan.arena_bytes <= most_in_use(plan) * 9 / 8);  // few gaps between them
  const std::size_t reported = plan.peak_bytes();
  CHECK(peak <= reported + reported / 8 + 65536);  // libraries take scratch memory of their own
  CHECK(compiled.explain().plan_calls >= 1);
}

struct Recurrent {
  nn::Lstm lstm = nn::lstm(8, 32);
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return lstm(x).last.hidden[0]; }
};

struct Block {
  nn::LayerNorm before = nn::layer_norm(64);
  nn::MultiHeadAttention attention = nn::multi_head_attention(64, 4, {.is_causal = true});
  nn::Linear up = nn::linear(64, 256), down = nn::linear(256, 64);
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    const Tensor y = x + attention(before(x));
    return y + down(gelu_tanh(up(y)));
  }
};

/// Its embedding's gradient, which comes last, looks up indices.
struct Text {
  nn::Embedding words = nn::embedding(500, 64);
  Block block;
  [[nodiscard]] Tensor operator()(const Tensor& ids) const {
    return matmul(block(words(ids)), transpose(words.weight));
  }
};

}  // namespace

TEST_CASE("a compiled step's peak memory is at most eager's", "[nn][memory][no-shadow]") {
  const Threads one(1);
  manual_seed(1);
  check_peak("MLP",
             nn::Sequential(nn::linear(100, 128), relu, nn::linear(128, 128), nitinol::tanh,
                            nn::linear(128, 10)),
             randn({1000, 100}));
  check_peak("LSTM", Recurrent(), randn({20, 200, 8}));
  check_peak("transformer block", Block(), randn({4, 64, 64}));
  check_peak("text", Text(), randint(0, 500, {4, 64}, i64, Generator(1)));
  check_peak(
      "CNN",
      nn::Sequential(nn::conv2d(1, 8, 3), relu, nn::MaxPool2d{2}, nn::conv2d(8, 16, 3), relu),
      randn({16, 1, 28, 28}));
}

TEST_CASE("gradients lie where those before lay, behind an embedding, too", "[nn][memory]") {
  const Text model;
  const std::vector<Variable> parameters = nn::parameters(model);
  const nn::Adam optimizer(parameters);
  const auto step = compile([&](const Tensor& ids) {
    optimizer.zero_grad();
    const Tensor loss = mean(square(model(ids)));
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  });
  const Tensor ids = randint(0, 500, {2, 16}, i64, Generator(1));
  test::settle(step, ids);
  const Explanation explained = step.explain();
  std::size_t held = 0;  // values, two averages, gradients (of which those of some biases do not)
  for (const Variable& one : parameters) held += static_cast<std::size_t>(one.size()) * 4 * 4;
  CHECK(explained.signatures.at(0).plan.in_place_bytes >= held - held / 100);

  // What fails has changed nothing: indices are checked before anything is stored over.
  std::vector<Tensor> before;
  const auto copies = [&] {
    std::vector<Tensor> all;
    for (const Variable& one : parameters) {
      all.push_back(copy(one));
      all.push_back(copy(one.grad()));
    }
    return all;
  };
  before = copies();
  const uint64_t plan_calls = step.explain().plan_calls;
  CHECK_THROWS_AS(step(where(ids == ids[1][3], 500, ids)), Error);
  const std::vector<Tensor> after = copies();
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(same_bits(before[i], after[i]));
  step(ids);
  CHECK(step.explain().plan_calls > plan_calls);
}
