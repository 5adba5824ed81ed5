// Gradients of slices: a recurrent model written by hand, whose steps read x[t] and whose gates are
// parts of one product, beside the layer of nn, which has a gradient of its own.
#include "bench/families.h"
#include "bench/functions.h"
#include "nitinol.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

namespace nitinol::bench {

namespace {

/// What nn::Lstm computes: the hidden values of all steps.
Tensor by_hand(const nn::Lstm& layer, const Tensor& x) {
  const nn::LstmCell& cell = layer.layers[0];
  const Tensor hidden_weight = cell.hidden_weight;
  const int64_t width = hidden_weight.shape()[0];
  const Tensor projected = matmul(x, cell.input_weight) + cell.bias;
  Tensor h = zeros({x.shape()[1], width}), c = h;
  std::vector<Tensor> results;
  for (int64_t t = 0; t < x.shape()[0]; ++t) {
    const std::vector<Tensor> gates = split(projected[t] + matmul(h, hidden_weight), width, 1);
    c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * nitinol::tanh(gates[2]);
    h = sigmoid(gates[3]) * nitinol::tanh(c);
    results.push_back(h);
  }
  return stack(results);
}

/// Gradients of all parameters.
template <class F>
auto step_of(const nn::Lstm& layer, const F& f) {
  return [=](const Tensor& x) {
    for (const Variable& p : nn::parameters(layer)) p.clear_grad();
    const Tensor loss = mean(square(f(layer, x)));
    loss.backward();
    return stop_gradient(loss);
  };
}

std::size_t peak_of(const std::function<void()>& call) {
  const std::size_t before = memory_statistics().in_use;
  reset_peak_memory();
  call();
  return memory_statistics().peak - before;
}

}  // namespace

void slice_rows(Timer& timer) {
  if (!timer.wants("grad.slices")) return;
  const nn::Lstm layer = nn::lstm(64, 128);
  const auto of_layer =
      step_of(layer, [](const nn::Lstm& lstm, const Tensor& x) { return lstm(x).sequence; });
  const auto of_hand = step_of(layer, by_hand);
  for (const int64_t steps : {40, 80}) {
    const Tensor x = normal(0, {steps, 32, 64});
    const double operations = 6.0 * static_cast<double>(steps) * 32 * 512 * (64 + 128);
    const auto compiled_layer = compile(of_layer);
    const auto compiled_hand = compile(of_hand);
    for (int i = 0; i < 3; ++i) {
      (void)compiled_layer(x);
      (void)compiled_hand(x);
    }
    const auto times_layer = [&](const auto& hand, const auto& nn) {
      return static_cast<double>(peak_of([&] { (void)hand(x); })) /
             static_cast<double>(peak_of([&] { (void)nn(x); }));
    };
    timer.time(
        fmt::format("grad.slices.n{}", steps), {.flops = operations},
        {{.name = "eager", .call = [&] { (void)of_hand(x); }},
         {.name = "compiled", .call = [&] { (void)compiled_hand(x); }, .calls_to_settle = 16}},
        fmt::format("peak memory of nn::Lstm's: eager {:.2f}, compiled {:.2f}",
                    times_layer(of_hand, of_layer), times_layer(compiled_hand, compiled_layer)));
    timer.time(
        fmt::format("grad.slices.nn.n{}", steps), {.flops = operations},
        {{.name = "eager", .call = [&] { (void)of_layer(x); }},
         {.name = "compiled", .call = [&] { (void)compiled_layer(x); }, .calls_to_settle = 16}});
  }
}

}  // namespace nitinol::bench
