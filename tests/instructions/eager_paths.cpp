// Apart from calls.cpp, whose own calls the compiler inlines as long as there are few.
#include "tests/instructions/eager_paths.h"

#include "nitinol.h"

#include <string>

using namespace nitinol;

namespace {

template <class F>
void compare(std::string_view what, std::string_view name, long count, F f, const Tensor& x) {
  if (!what.ends_with("_" + std::string(name))) return;
  if (what.starts_with("eager_")) repeat(count, [&] { return f(x); });
  const auto asked = compile(f);
  if (what.starts_with("asked_")) repeat(count, [&] { return asked.eager(x); });
  int looks = 3;  // as many calls as may be recorded
  const auto fallback = compile([&](const Tensor& a) {
    Tensor result = f(a);
    if (looks > 0) looks -= sum(result).item<float>() < 1e9F ? 1 : 0;
    return result;
  });
  if (what.starts_with("fallback_")) repeat(count, [&] { return fallback(x); });
}

/// A step of Adam for a net of two layers.
struct Training {
  nn::Linear hidden = nn::linear(100, 128), out = nn::linear(128, 10);
  nn::Adam optimizer = nn::Adam({hidden.weight, hidden.bias.value(), out.weight, out.bias.value()});
  Tensor classes = arange(32) % 10;

  Tensor step(const Tensor& x) const {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(out(relu(hidden(x))), classes);
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  }
};

}  // namespace

void compare_eager_paths(std::string_view what, long count) {
  compare(
      what, "softmax", count, [](const Tensor& x) { return softmax(x); }, ones({8, 10}));
  compare(
      what, "layer_norm", count, [](const Tensor& x) { return layer_norm(x); }, ones({64, 256}));
  compare(
      what, "adds31", count,
      [](const Tensor& x) {
        Tensor y = x;
        for (int i = 0; i < 31; ++i) y = y + x;
        return y;
      },
      ones({64}));
  const Training training;
  compare(
      what, "mlp", count, [&](const Tensor& x) { return training.step(x); }, ones({32, 100}));
}
