// Which steps are launched together: the rule, and an optimizer's updates.
#include "program/horizontal_fusion.h"

#include "eager/all_ops.h"
#include "nitinol.h"
#include "tests/backends/kernels.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

using namespace nitinol;
using namespace nitinol::test;
using Batches = std::vector<std::vector<std::size_t>>;

namespace {

Kernel kernel_of(std::string_view op) {
  const std::array<Operand, 2> operands = {Operand{.role = Role::input},
                                           Operand{.role = Role::output}};
  return elementwise(*find_op(op), operands);
}

const Kernel exp_kernel = kernel_of("exp");
const Kernel log_kernel = kernel_of("log");

struct TestStep {
  const Kernel* kernel;
  std::vector<Value> reads, writes;
  Effect effect = Effect::none;
  bool overwrites = false;
};

TestStep step(const Kernel* kernel, Value from, Value to) {
  return {.kernel = kernel, .reads = {from}, .writes = {to}};
}

Batches join(const std::vector<TestStep>& steps) {
  std::vector<program::ProgramStep> made(steps.size());
  std::vector<program::Joinable> joinable;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    made[s].reads = steps[s].reads;
    made[s].writes = steps[s].writes;
    made[s].effect = steps[s].effect;
    made[s].overwrites = steps[s].overwrites;
    joinable.push_back({&made[s], steps[s].kernel});
  }
  return program::join_steps(joinable, 16);
}

}  // namespace

TEST_CASE("independent steps of one kernel are joined", "[jit][horizontal]") {
  CHECK(join({step(&exp_kernel, 0, 1), step(&log_kernel, 2, 3), step(&exp_kernel, 4, 5)}) ==
        Batches{{0, 2}, {1}});
}

TEST_CASE("a step does not move above what it needs", "[jit][horizontal]") {
  CHECK(join({step(&exp_kernel, 0, 1), step(&exp_kernel, 1, 2)}) == Batches{{0}, {1}});
  CHECK(join({step(&exp_kernel, 0, 1), step(nullptr, 1, 2), step(&exp_kernel, 2, 3)}) ==
        Batches{{0}, {1}, {2}});
}

TEST_CASE("a step does not move above a reader of what it overwrites", "[jit][horizontal]") {
  CHECK(join({step(&exp_kernel, 0, 1), step(nullptr, 5, 2), step(&exp_kernel, 3, 5)}) ==
        Batches{{0}, {1}, {2}});
  CHECK(join({step(&exp_kernel, 5, 1), step(&exp_kernel, 3, 5)}) == Batches{{0}, {1}});
}

TEST_CASE("a Variable is not overwritten before all that can fail", "[jit][horizontal]") {
  TestStep check = step(nullptr, 2, 3);
  check.effect = Effect::may_fail;
  TestStep update = step(&exp_kernel, 4, 5);
  CHECK(join({step(&exp_kernel, 0, 1), check, update}) == Batches{{0, 2}, {1}});
  update.overwrites = true;
  CHECK(join({step(&exp_kernel, 0, 1), check, update}) == Batches{{0}, {1}, {2}});
}

TEST_CASE("steps that cannot be joined stay in order", "[jit][horizontal]") {
  CHECK(join({step(nullptr, 0, 1), step(nullptr, 2, 3)}) == Batches{{0}, {1}});
}

namespace {

struct Net {
  nn::Linear first = nn::linear(5, 7), second = nn::linear(7, 600), third = nn::linear(600, 3);
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    return third(tanh(second(tanh(first(x)))));
  }
};

Tensor train(const Net& net, const nn::Optimizer& optimizer, const Tensor& x) {
  optimizer.zero_grad();
  const Tensor loss = mean(square(net(x)));
  loss.backward();
  optimizer.step();
  return loss;
}

}  // namespace

TEST_CASE("an optimizer's updates are one launch, with eager's bits", "[jit][horizontal]") {
  for (const int threads : {1, 3}) {
    const Threads count(threads);
    manual_seed(3);
    const Net eager;
    manual_seed(3);
    const Net compiled;
    const nn::Adam of_eager(nn::parameters(eager)), of_compiled(nn::parameters(compiled));
    const auto step = compile([&](const Tensor& x) { return train(compiled, of_compiled, x); },
                              {.check = Check::never});
    for (int i = 0; i < 6; ++i) {
      const Tensor x = randn({4, 5});
      CHECK(same_bits(step(x), train(eager, of_eager, x)));
    }
    const auto expected = nn::named_variables(eager), got = nn::named_variables(compiled);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO(expected[i].name);
      CHECK(same_bits(got[i].variable, expected[i].variable));
      CHECK(same_bits(got[i].variable.grad(), expected[i].variable.grad()));
    }
    INFO(step.explain());
    std::size_t most = 0;
    const Explanation explanation = step.explain();
    for (const program::StepReport& report : explanation.signatures.at(0).plan.steps)
      most = std::max(most, report.launches);
    CHECK(most == 3);  // the weights; the sums that give the biases' gradients update those
  }
}
