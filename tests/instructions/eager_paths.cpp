// Apart from calls.cpp, whose own calls the compiler inlines as long as there are few.
#include "tests/instructions/eager_paths.h"

#include "nitinol.h"

#include <string>

using namespace nitinol;

namespace {

template <class F>
void compare(const std::string& name, int count, F f, const Tensor& x) {
  const auto counted = [&](const char* path, const auto& call) {
    count_calls((path + name).c_str(), count, call);
  };
  counted("eager_", [&] { return f(x); });
  const auto asked = compile(f);
  counted("asked_", [&] { return asked.eager(x); });
  int looks = 3;  // as many calls as may be recorded
  const auto in_segments = compile([&](const Tensor& a) {
    Tensor result = f(a);
    if (looks > 0) looks -= sum(result).template item<float>() < 1e9F ? 1 : 0;
    return result;
  });
  in_segments.set_stance(Stance::fail_on_fallback);  // or it would be compared with eager calls
  counted("segments_", [&] { return in_segments(x); });
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

void count_eager_paths() {
  compare(
      "softmax", 1000, [](const Tensor& x) { return softmax(x); }, ones({8, 10}));
  compare(
      "layer_norm", 100, [](const Tensor& x) { return layer_norm(x); }, ones({64, 256}));
  compare(
      "adds31", 100,
      [](const Tensor& x) {
        Tensor y = x;
        for (int i = 0; i < 31; ++i) y = y + x;
        return y;
      },
      ones({64}));
  const Training training;
  compare(
      "mlp", 50, [&](const Tensor& x) { return training.step(x); }, ones({32, 100}));
}
