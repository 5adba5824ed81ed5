// Rows of models: a step of training, or what one in eval mode says.
#pragma once

#include "bench/time_both.h"
#include "bench/timer.h"
#include "nitinol.h"

#include <cstdint>
#include <functional>
#include <string>

namespace nitinol::bench {

using Loss = std::function<Tensor(const Tensor& out)>;

/// A step of Adam, eagerly on one copy of the model and compiled on another; the model and its loss
/// under autocast if that is given.
template <class Model, class Make>
void train_row(Timer& timer, const std::string& row, double operations, const Make& make,
               const Tensor& x, const Loss& loss, DType autocast = f32) {
  if (!timer.wants(row)) return;
  const auto step = [&](const Model& model, const nn::Adam& optimizer, const Tensor& input) {
    optimizer.zero_grad();
    Tensor value;
    {
      const nn::Autocast scope(autocast);
      value = loss(model(input));
    }
    value.backward();
    optimizer.step();
    return stop_gradient(value);
  };
  const Model eager = make(), other = make();
  const nn::Adam of_eager(nn::parameters(eager)), of_other(nn::parameters(other));
  const auto compiled = compile([&](const Tensor& input) { return step(other, of_other, input); });
  timer.time(row, {.flops = operations},
             {{.name = "eager", .call = [&] { (void)step(eager, of_eager, x); }},
              {.name = "compiled", .call = [&] { (void)compiled(x); }, .calls_to_settle = 128}});
}

/// What a model in eval mode says, without a tape.
template <class Model, class F>
void infer_row(Timer& timer, const std::string& row, double operations, Model model,
               const Tensor& x, const F& f) {
  if (!timer.wants(row)) return;
  nn::eval(model);
  const NoGradients scope;
  time_both(
      timer, row, {.flops = operations}, [&](const Tensor& input) { return f(model, input); }, x);
}

[[nodiscard]] inline Loss cross_entropy_of(int64_t batch) {
  const Tensor classes = arange(batch) * 7 % 10;
  return [classes](const Tensor& out) { return nn::cross_entropy(out, classes); };
}

}  // namespace nitinol::bench
