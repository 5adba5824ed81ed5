// Optimizers in training loops: compiled with the same bits, rates, groups, schedules, misuse.
#include "nn/optimizers.h"

#include "core/executables.h"
#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

using namespace nitinol;

namespace {

struct Mlp {
  nn::Linear hidden, out;
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return out(relu(hidden(x))); }
};

Mlp mlp() {
  manual_seed(3);
  return {.hidden = nn::linear(6, 10), .out = nn::linear(10, 3)};
}

using Make = std::function<std::unique_ptr<nn::Optimizer>(std::vector<Variable>)>;

/// 100 steps eagerly and compiled.
void check_training(const Make& make) {
  const Mlp a = mlp();
  const Mlp b = mlp();
  const auto of_a = make(nn::parameters(a));
  const auto of_b = make(nn::parameters(b));
  const auto train = [](const Mlp& model, const nn::Optimizer& optimizer, const Tensor& x,
                        const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(model(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  const auto step = compile([&](const Tensor& x, const Tensor& y) { return train(a, *of_a, x, y); },
                            {.check = Check::never});  // which no race turns eager
  manual_seed(4);
  const Tensor y = arange(20) % 3;
  float first = 0, last = 0;
  for (int i = 0; i < 100; ++i) {
    const Tensor x = randn({20, 6}) + unsqueeze(cast(y, f32), 1);
    of_a->set_rate(0.02 / (1 + 0.1 * i));
    of_b->set_rate(0.02 / (1 + 0.1 * i));
    const Tensor loss = step(x, y);
    REQUIRE(same_bits(loss, train(b, *of_b, x, y)));
    for (std::size_t k = 0; k < nn::parameters(a).size(); ++k) {
      REQUIRE(same_bits(nn::parameters(a)[k].get(), nn::parameters(b)[k].get()));
    }
    (i == 0 ? first : last) = loss.item<float>();
  }
  CHECK(last < first);
  INFO(step.explain());
  CHECK(step.explain().plan_calls > 80);
}

}  // namespace

TEST_CASE("training with each optimizer has the same bits compiled", "[nn][jit]") {
  check_training([](auto p) { return std::make_unique<nn::Sgd>(p, nn::SgdOptions{}); });
  check_training([](auto p) {
    return std::make_unique<nn::Sgd>(
        p, nn::SgdOptions{.momentum = 0.9, .weight_decay = 1e-3, .is_nesterov = true});
  });
  check_training([](auto p) { return std::make_unique<nn::Adam>(p); });
  check_training([](auto p) { return std::make_unique<nn::AdamW>(p); });
  check_training([](auto p) { return std::make_unique<nn::RmsProp>(p); });
}

TEST_CASE("changing the rate compiles nothing", "[nn][jit]") {
  const Mlp model = mlp();
  const nn::Adam optimizer(nn::parameters(model));
  const auto step = compile([&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = mean(square(model(x)));
    loss.backward();
    optimizer.step();
    return loss;
  });
  const Tensor x = randn({4, 6});
  for (int i = 0; i < 5; ++i) step(x);
  const uint64_t kernels = executable_statistics().prepared;
  for (int i = 0; i < 32; ++i) {
    optimizer.set_rate(1e-3 * i);
    step(x);
  }
  CHECK(executable_statistics().prepared == kernels);
  CHECK(step.explain().signatures.back().tier == Tier::traced);
}

TEST_CASE("groups have their own settings, and parameters without a gradient stay", "[nn]") {
  const Variable a = parameter(ones({2}));
  const Variable b = parameter(ones({2}));
  const Variable c = parameter(ones({2}));
  nn::Sgd optimizer({a}, {.rate = 1.0});
  optimizer.add({b, c}, {.rate = 0.5});
  sum(a + b).backward();
  optimizer.step();
  CHECK(same_bits(a.get(), zeros({2})));
  CHECK(same_bits(b.get(), full({2}, 0.5F)));
  CHECK(same_bits(c.get(), ones({2})));
}

namespace {

/// The settings of group 1 do not reach group 0, nor the other way round: each parameter ends where
/// an optimizer of its own would have brought it.
template <class O, class Options>
void check_groups(const Options& first, const Options& second) {
  const auto start = [] {
    return std::vector{parameter(full({3}, 2.0F)), parameter(full({2}, -1.0F))};
  };
  const std::vector<Variable> together = start();
  const std::vector<Variable> apart = start();
  O both({together[0]}, first);
  both.add({together[1]}, second);
  const O of_first({apart[0]}, first);
  const O of_second({apart[1]}, second);
  const auto loss = [](const std::vector<Variable>& p, int i) {
    return sum(square(p[0])) * (1.0 + i) + sum(p[1] * p[1] * p[1]) * 0.5;
  };
  for (int i = 0; i < 4; ++i) {
    both.zero_grad();
    of_first.zero_grad();
    of_second.zero_grad();
    loss(together, i).backward();
    loss(apart, i).backward();
    both.step();
    of_first.step();
    of_second.step();
    INFO("step " << i);
    CHECK(same_bits(together[0].get(), apart[0].get()));
    CHECK(same_bits(together[1].get(), apart[1].get()));
  }
  CHECK(both.rate(0).template item<double>() == first.rate);
  CHECK(both.rate(1).template item<double>() == second.rate);
}

}  // namespace

TEST_CASE("AdamW has a weight decay unless one is given, whatever else is", "[nn]") {
  const auto after = [](const nn::AdamWOptions& options) {
    const Variable w = parameter(full({3}, 2.0F));
    const nn::AdamW optimizer({w}, options);
    sum(w.get() * w.get()).backward();
    optimizer.step();
    return w.get();
  };
  CHECK(same_bits(after({.rate = 0.1}), after({.rate = 0.1, .weight_decay = 1e-2})));
  CHECK(!same_bits(after({.rate = 0.1}), after({.rate = 0.1, .weight_decay = 0})));
}

TEST_CASE("every setting belongs to its group", "[nn]") {
  check_groups<nn::Sgd>(
      nn::SgdOptions{.rate = 0.1},
      nn::SgdOptions{.rate = 0.02, .momentum = 0.5, .weight_decay = 0.3, .is_nesterov = true});
  check_groups<nn::Sgd>(nn::SgdOptions{.rate = 0.1, .momentum = 0.9},
                        nn::SgdOptions{.rate = 0.1, .weight_decay = 0.1});
  check_groups<nn::Adam>(
      nn::AdamOptions{.rate = 0.1},
      nn::AdamOptions{.rate = 0.02, .beta1 = 0.5, .beta2 = 0.7, .eps = 0.1, .weight_decay = 0.3});
  check_groups<nn::AdamW>(nn::AdamWOptions{.rate = 0.1, .weight_decay = 0.2},
                          nn::AdamWOptions{.rate = 0.02, .beta1 = 0.5, .beta2 = 0.7, .eps = 0.1});
  check_groups<nn::RmsProp>(
      nn::RmsPropOptions{.rate = 0.1},
      nn::RmsPropOptions{
          .rate = 0.02, .decay = 0.5, .eps = 0.1, .momentum = 0.4, .weight_decay = 0.3});
}

namespace {

/// What a user writes: p -= rate tanh(average of gradients).
class Bounded : public nn::Optimizer {
 public:
  Bounded(std::vector<Variable> parameters, double rate) {
    add_group(std::move(parameters),
              {.where = "Bounded",
               .rate = rate,
               .weight_decay = 0.5,
               .decay = Decay::apart,
               .state = [](const Variable& p) { return std::vector{zeros(p.shape(), p.dtype())}; },
               .shared = [](const Step& step) { return std::vector{step.rate / step.count}; },
               .formula =
                   [](const Item& item, const std::vector<Tensor>& shared) {
                     item.state[0].set(item.state[0] * 0.5 + item.gradient);
                     return item.value - nitinol::tanh(item.state[0]) * shared[0];
                   }});
  }
};

}  // namespace

TEST_CASE("an optimizer of one's own is a rule", "[nn]") {
  const Variable p = parameter(full({2}, 4.0, f64));
  const Bounded optimizer({p}, 0.1);
  double x = 4, average = 0;
  for (int i = 1; i <= 3; ++i) {
    p.set_grad(full({2}, 0.3, f64));
    optimizer.step();
    average = average * 0.5 + 0.3;
    x = x * (1 - 0.1 * 0.5) - 0.1 / i * std::tanh(average);
    CHECK(p.to_vector<double>()[0] == Approx(x).epsilon(1e-12));
  }
}

TEST_CASE("parameters of one optimizer may have dtypes that differ", "[nn]") {
  const auto moved = [](const Make& make, const std::vector<DType>& dtypes) {
    std::vector<Variable> parameters;
    for (const DType dtype : dtypes) parameters.push_back(parameter(full({3}, 0.7, dtype)));
    const auto optimizer = make(parameters);
    for (int step = 0; step < 3; ++step) {
      for (const Variable& each : parameters) each.set_grad(full({3}, 0.3, each.spec().dtype));
      optimizer->step();
    }
    std::vector<Tensor> values;
    for (const Variable& each : parameters) values.push_back(each.get());
    return values;
  };
  using Parameters = std::vector<Variable>;
  const Make makes[] = {
      [](Parameters p) { return std::make_unique<nn::Sgd>(p, nn::SgdOptions{.rate = 0.1}); },
      [](Parameters p) { return std::make_unique<nn::Adam>(p, nn::AdamOptions{.rate = 0.1}); },
      [](Parameters p) {
        return std::make_unique<nn::AdamW>(p, nn::AdamWOptions{.rate = 0.1, .weight_decay = 0.1});
      },
      [](Parameters p) {
        return std::make_unique<nn::RmsProp>(p, nn::RmsPropOptions{.rate = 0.1});
      },
  };
  for (const Make& make : makes) {
    const std::vector<Tensor> together = moved(make, {f32, f64, f64, f32});
    const Tensor single = moved(make, {f32})[0], wide = moved(make, {f64})[0];
    for (const std::size_t k : {0, 3}) CHECK(same_bits(together[k], single));
    for (const std::size_t k : {1, 2}) CHECK(same_bits(together[k], wide));
  }
}

TEST_CASE("misuse of optimizers is an Error that says what to do", "[nn][errors]") {
  CHECK_THROWS_WITH(nn::Sgd({Variable(ones({2}))}), Catch::Contains("nn::parameters"));
  const Variable a = parameter(ones({2}));
  CHECK_THROWS_WITH(nn::Sgd({a}).step(), Catch::Contains("no parameter has a gradient"));
}

TEST_CASE("an optimizer's state has names", "[nn]") {
  const Variable a = parameter(ones({2}));
  const nn::Adam optimizer({a});
  std::vector<std::string> names;
  for (const auto& named : nn::named_variables(optimizer)) names.push_back(named.name);
  CHECK(names == std::vector<std::string>{"groups.0.rate", "groups.0.steps", "groups.0.state.0.0",
                                          "groups.0.state.0.1", "groups.0.parameters.0"});
}

TEST_CASE("gradients of parts of a batch add up to those of all of it", "[nn]") {
  const auto same = [&] { return nn::to(mlp(), f64); };
  const Mlp parts = same(), whole = same();
  const nn::AdamW of_parts(nn::parameters(parts)), of_whole(nn::parameters(whole));
  manual_seed(5);
  for (int i = 0; i < 4; ++i) {
    const Tensor x = cast(randn({12, 6}), f64), y = arange(12) % 3;
    of_parts.zero_grad();
    for (int k = 0; k < 3; ++k) {
      const Range part = {4 * k, 4 * k + 4};
      const Tensor loss = nn::cross_entropy(parts(x.at({part})), y.at({part}));
      (loss / 3).backward();
    }
    of_parts.step();
    of_whole.zero_grad();
    nn::cross_entropy(whole(x), y).backward();
    of_whole.step();
    for (std::size_t k = 0; k < 4; ++k) {
      const Tensor difference = nn::parameters(parts)[k] - nn::parameters(whole)[k];
      CHECK(max(abs(difference)).item<double>() < 1e-9);
    }
  }
}

TEST_CASE("a new rate is that of every group", "[nn]") {
  const Variable a = parameter(zeros({2}));
  const Variable b = parameter(zeros({2}));
  nn::Sgd optimizer({a}, {.rate = 0.5});
  optimizer.add({b}, {.rate = 0.25});
  optimizer.set_rate(2);
  for (const Variable& parameter : {a, b}) parameter.set_grad(ones({2}));
  optimizer.step();
  CHECK(same_bits(a.get(), full({2}, -2, f32)));
  CHECK(same_bits(b.get(), full({2}, -2, f32)));
}

TEST_CASE("a group is added while another thread steps", "[nn][threads]") {
  const auto given = [] {
    const Variable p = parameter(zeros({4}));
    p.set_grad(ones({4}));
    return p;
  };
  const Variable first = given();
  nn::Adam optimizer({first}, {.rate = 0});
  constexpr std::size_t added = 200;
  std::atomic<bool> ends = false;
  {
    const std::jthread stepper([&] {
      while (!ends) optimizer.step();
    });
    const std::jthread reader([&] {
      while (!ends) (void)nn::named_variables(optimizer);
    });
    for (std::size_t i = 0; i < added; ++i) optimizer.add({given()}, {.rate = 1});
    ends = true;
  }
  CHECK(optimizer.rate(added).item<double>() == 1);
  CHECK(nn::named_variables(optimizer).size() == (added + 1) * 5);
}
