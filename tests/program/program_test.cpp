// Programs by themselves: no Variables, no arguments, no locks.
#include "program/program.h"

#include "eager/all_ops.h"
#include "nitinol.h"
#include "program/running.h"
#include "tests/on_threads.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace nitinol;

namespace {

std::shared_ptr<const program::Program> program_of(std::string_view text,
                                                   program::Options options = {}) {
  program::Report report;
  const Graph graph = parse(text, all_ops());
  return program::make_program(graph, backend(device_of(graph)), options, report);
}

/// The outputs, each the memory of its base.
std::vector<Tensor> run(const program::Program& program, const std::vector<Tensor>& inputs,
                        const std::vector<const Scalar*>& scalars = {},
                        const Tensor& donated = {}) {
  program::Running running(program);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_defined()) {
      running.address(program.graph.inputs[i]) =
          static_cast<std::byte*>(inputs[i].internals().address());
    }
  }
  running.allocate([&](const program::OutputMemory&) { return donated; });
  const program::Running::Given given = {.scalars = scalars};
  running.launch_safe(given);
  running.launch_rest(given);
  std::vector<Tensor> outputs;
  for (const program::Output& output : program.outputs)
    outputs.push_back(running.tensor_of(output.base));
  return outputs;
}

}  // namespace

TEST_CASE("a Program knows what its steps read and write", "[program]") {
  const auto program = program_of(
      "x: f32[8, 4] = input; w: f32[4, 3] = input; y = matmul x w; z = exp y; "
      "s = sum z axes=[1] keepdims=false; i = argmax z axes=[1] keepdims=false; return s i");
  REQUIRE(program);
  REQUIRE(program->steps.size() >= 2);
  const program::ProgramStep& product = program->steps[0];
  CHECK(product.reads == std::vector<Value>{0, 1});
  CHECK(product.writes == std::vector<Value>{2});
  CHECK(product.effect == Effect::none);
  CHECK(program->safe_steps == program->steps.size());
  std::vector<Value> written;
  for (const program::ProgramStep& step : program->steps)
    written.insert(written.end(), step.writes.begin(), step.writes.end());
  for (const program::Output& output : program->outputs)
    CHECK(std::ranges::count(written, output.base) == 1);

  const auto checked =
      program_of("x: f32[8, 4] = input; i: i64[3] = input; y = take x i; z = exp y; return z");
  REQUIRE(checked);
  CHECK(checked->can_fail);
  CHECK(std::ranges::any_of(checked->steps, [](const program::ProgramStep& step) {
    return step.effect == Effect::may_fail;
  }));
}

TEST_CASE("a Program has no answer for what kernels cannot express", "[program]") {
  CHECK(program_of("a: f32[2, 3] strides=[1, 2] = input; b = reshape a shape=[6]; c = exp b; "
                   "return c") == nullptr);
  CHECK(program_of("a: f32[2, 3, 4] = input; b = sum a axes=[0, 2] keepdims=false; return b") ==
        nullptr);
  CHECK(program_of("a: f32[2, 0] = input; b = sum a axes=[1] keepdims=false; return b") == nullptr);
}

TEST_CASE("an output goes where something was donated", "[program]") {
  const std::string_view text =
      "x: f32[64] = input; g: f32[64] = input; y = mul g g; z = sub x y; return z";
  const auto program = program_of(text, {.donations = {{.output = 0, .input = 0}}});
  REQUIRE(program);
  CHECK(program->safe_steps < program->steps.size());
  const Tensor x = randn({64}), g = randn({64}), expected = x - g * g, old = copy(x);
  const Tensor out = run(*program, {x, g}, {}, x).at(0);
  CHECK(out.handle() == x.handle());
  CHECK(same_bits(out, expected));
  // None: its own memory.
  const Tensor fresh = run(*program, {old, g}).at(0);
  CHECK(same_bits(fresh, expected));
  CHECK(!same_bits(old, expected));
  // What is read later is not overwritten.
  const auto later = program_of(
      "x: f32[64] = input; y = exp x; s = sum x axes=[0] keepdims=false; t = add y s; return t y",
      {.donations = {{.output = 1, .input = 0}}, .fuses = false});
  REQUIRE(later);
  CHECK(std::ranges::all_of(later->memory,
                            [](const program::OutputMemory& m) { return m.donation < 0; }));
}

TEST_CASE("numbers come with each run", "[program]") {
  const auto program = program_of(
      "x: f32[5] = input; s: weak f64[] = input; c = cast s dtype=f32 weak=true; y = mul x c; "
      "return y",
      {.scalars = {-1, 0}});
  REQUIRE(program);
  const Tensor x = randn({5});
  for (const double value : {0.5, -2.0, 3.25}) {
    const Scalar scalar = value;
    CHECK(same_bits(run(*program, {x, {}}, {&scalar}).at(0), x * value));
  }
}

TEST_CASE("kernels are made side by side, each once", "[program]") {
  // Ten chains of their own length on ten shapes of their own, and the first of them again.
  std::string text, results;
  for (int chain = 0; chain <= 10; ++chain) {
    const auto number = std::to_string(chain), size = std::to_string(5 + chain);
    text += "x" + number + ": f32[" + size + "] = input; ";
    std::string last = "x" + number;
    for (int i = 0; i <= chain % 10; ++i) {
      const std::string next = "y" + number + "n" + std::to_string(i);
      text += next + (i % 2 == 0 ? " = tanh " : " = exp ") + last + "; ";
      last = next;
    }
    results += " " + last;
  }
  for (const int threads : {1, 3}) {
    const Threads scope(threads);
    clear_executables();
    program::Report report;
    const auto program = program::make_program(parse(text + "return" + results, all_ops()),
                                               backend(default_device()),
                                               {.threads = threads, .joins = false}, report);
    REQUIRE(program);
    REQUIRE(program->steps.size() == 11);
    CHECK(std::ranges::count(report.steps, true, &program::StepReport::was_cached) == 1);
    std::vector<Tensor> inputs;
    for (int chain = 0; chain <= 10; ++chain) inputs.push_back(randn({5 + chain}));
    const std::vector<Tensor> outputs = run(*program, inputs);
    for (std::size_t chain = 0; chain <= 10; ++chain) {
      Tensor expected = inputs[chain];
      for (std::size_t i = 0; i <= chain % 10; ++i)
        expected = i % 2 == 0 ? tanh(expected) : exp(expected);
      CHECK(same_bits(outputs[chain], expected));
    }
  }
}

TEST_CASE("a Program runs on many threads at once", "[program][threads]") {
  const auto program = program_of(
      "x: f32[40, 30] = input; w: f32[30, 20] = input; y = matmul x w; m = max y axes=[1] "
      "keepdims=true; e = sub y m; z = exp e; s = sum z axes=[1] keepdims=true; r = reciprocal s; "
      "p = mul z r; "
      "t = permute p axes=[1, 0]; q = matmul t x; return p q");
  REQUIRE(program);
  constexpr int count = 4, rounds = 50;
  std::vector<std::vector<Tensor>> inputs, expected;
  for (int t = 0; t < count; ++t) {
    inputs.push_back({randn({40, 30}), randn({30, 20})});
    expected.push_back(run(*program, inputs.back()));
  }
  std::vector<int> different(count, 0);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < count; ++t) {
      threads.emplace_back([&, t] {
        for (int round = 0; round < rounds; ++round) {
          const std::vector<Tensor> results = run(*program, inputs[t]);
          for (std::size_t i = 0; i < results.size(); ++i)
            different[t] += same_bits(results[i], expected[t][i]) ? 0 : 1;
        }
      });
    }
  }
  CHECK(different == std::vector<int>(count, 0));
  const Tensor y = matmul(inputs[0][0], inputs[0][1]);
  CHECK(same_bits(expected[0][0], softmax(y)));
}

TEST_CASE("a step reads what is there, and what overwrites knows what it overwrites", "[program]") {
  // What many products read is packed by a step of its own, where that pays.
  std::string text = "x: f32[16, 70] = input; w: f32[70, 70] = input; t = permute w axes=[1, 0]; ";
  std::string last = "x";
  for (char name = 'a'; name < 'a' + 14; ++name) {
    text +=
        std::string("m") + name + " = matmul " + last + " t; n" + name + " = tanh m" + name + "; ";
    last = std::string("n") + name;
  }
  const auto chain = program_of(text + "return " + last);
  // The update of x could be launched with the first exp, but for the product that reads x.
  const auto update = program_of(
      "x: f32[8, 8] = input; g: f32[8, 8] = input; h: f32[8, 8] = input; a = exp g; "
      "p = matmul x a; z = exp h; return p z",
      {.donations = {{.output = 1, .input = 0}}});
  for (const auto& program : {chain, update}) {
    REQUIRE(program);
    std::vector<bool> is_there(program->places.size(), false);
    for (Value v = 0; v < program->places.size(); ++v) {
      const program::Place::Kind kind = program->places[v].kind;
      is_there[v] = kind == program::Place::Kind::input || kind == program::Place::Kind::constant;
    }
    for (const program::ProgramStep& step : program->steps) {
      for (const Value v : step.reads) CHECK(is_there[v]);
      for (const Value v : step.writes) is_there[v] = true;
    }
  }
  CHECK(update->memory[1].donation == 0);
  const program::ProgramStep& overwriting = update->steps.back();
  CHECK(overwriting.overwrites);
  CHECK(std::ranges::count(overwriting.writes, update->graph.inputs[0]) == 1);
  CHECK(overwriting.together == 1);
  const Tensor x = randn({8, 8}), g = randn({8, 8}), h = randn({8, 8});
  const Tensor product = matmul(x, exp(g)), expected = exp(h);
  const std::vector<Tensor> results = run(*update, {x, g, h}, {}, x);
  CHECK(same_bits(results[0], product));
  CHECK(same_bits(x, expected));
}
