// Functions that look at data: branches, loops and numbers that are read. Compiled, host code runs
// at each call, and what lies between two looks by Plans (tracer/deferred.h).
#include "bench/families.h"
#include "bench/functions.h"
#include "bench/time_both.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace nitinol::bench {
namespace {

/// Both sides in turn, as the inputs are.
void branch_row(Timer& timer) {
  constexpr std::size_t size = 100'000;
  const auto f = [](const Tensor& x, const Tensor& y, double& turn) -> Tensor {
    const Tensor& given = (turn = -turn) > 0 ? x : y;
    if (bool(mean(given) > 0.5)) return tanh(given) * 2.0 + 1.0;
    return given * given - given * 0.5;
  };
  double eager_turn = 1, compiled_turn = 1;
  const Tensor x = abs(normal(1, {size})) + 1.0, y = normal(2, {size}) * 0.1;
  const auto compiled =
      compile([&](const Tensor& a, const Tensor& b) { return f(a, b, compiled_turn); });
  timer.time("W7.branch", {.bytes = 2.0 * sizeof(float) * size},
             {{.name = "eager", .call = [&] { static_cast<void>(f(x, y, eager_turn)); }},
              {.name = "compiled",
               .call = [&] { static_cast<void>(compiled(x, y)); },
               .calls_to_settle = 128}},
             "if (mean(x) > 0.5), both sides in turn");
}

/// Square roots, until the largest residual is small: 12 operations an iteration, 5 to 7
/// iterations.
Tensor newton(const Tensor& x) {
  Tensor y = x * 0.5 + 0.5;
  while (max(abs(y * y - x)).item<float>() > 1e-3F * max(x).item<float>()) {
    y = 0.5 * (y + x / y) + 0.0 * tanh(y);
    y = y - (y * y - x) * 0.01 / (y + 1.0);
  }
  return y;
}

/// Two branches, three segments.
Tensor branches(const Tensor& x) {
  Tensor y = tanh(x) * 1.5 + x;
  y = bool(sum(y) > 0.0) ? y * y - 0.5 : exp(y) - y;
  y = y * 0.25 + x;
  y = bool(max(y) > 1.0) ? y / 2.0 + 1.0 : y * 2.0 - x;
  return tanh(y) + 0.5 * x;
}

/// A number that is read, and used as one.
Tensor item(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 10; ++i) y = tanh(y) + x * 0.5;
  const auto k = static_cast<double>(max(abs(y)).item<float>());
  for (int i = 0; i < 10; ++i) y = y / k + 0.1 * y;
  return y;
}

/// A look after every operation.
Tensor worst(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 20; ++i) {
    y = y * 0.99;
    if (y.at({0}).item<float>() > 1e9F) y = x;
  }
  return y;
}

/// A step of an MLP, skipped when the loss is not finite, beside one that cannot be.
void skip_rows(Timer& timer) {
  if (!timer.wants("W8.skip.b32")) return;
  struct Net {
    nn::Linear hidden, out;
    nn::Adam adam;
  };
  const auto make = [] {
    manual_seed(1);
    nn::Linear hidden = nn::linear(100, 128), out = nn::linear(128, 10);
    return Net{hidden, out,
               nn::Adam({hidden.weight, hidden.bias.value(), out.weight, out.bias.value()})};
  };
  const auto step = [](const Net& net, const Tensor& x, const Tensor& y, bool looks) {
    net.adam.zero_grad();
    const Tensor loss = mean(square(net.out(relu(net.hidden(x))) - y));
    loss.backward();
    if (!looks || bool(loss < 1e9)) net.adam.step();
    return stop_gradient(loss);
  };
  const Net eager = make(), compiled = make(), whole = make();
  const auto f =
      compile([&](const Tensor& x, const Tensor& y) { return step(compiled, x, y, true); });
  const auto g =
      compile([&](const Tensor& x, const Tensor& y) { return step(whole, x, y, false); });
  const Tensor x = normal(3, {32, 100}), y = normal(4, {32, 10});
  timer.time(
      "W8.skip.b32", {},
      {{.name = "eager", .call = [&] { static_cast<void>(step(eager, x, y, true)); }},
       {.name = "compiled", .call = [&] { static_cast<void>(f(x, y)); }, .calls_to_settle = 128},
       {.name = "without", .call = [&] { static_cast<void>(g(x, y)); }, .calls_to_settle = 128}},
      "a training step skipped if the loss is not finite; without: one Plan");
}

/// The three-body problem, by Dormand and Prince's pairs of order 4 and 5 with steps of adapted
/// size.
struct Bodies {
  Tensor masses;
  [[nodiscard]] Tensor derivative(const Tensor& state) const {
    const Tensor p = slice(state, 0, {0, 3}), v = slice(state, 0, {3, 6});
    const Tensor d = unsqueeze(p, 0) - unsqueeze(p, 1);
    const Tensor r2 = sum(d * d, {2}, keepdims) + 1e-3;
    const Tensor a = sum(d * unsqueeze(masses, 0) / (r2 * sqrt(r2)), {1});
    return concat({v, a}, 0);
  }
};

/// Gray and Scott's reaction and diffusion.
struct Reaction {
  [[nodiscard]] Tensor derivative(const Tensor& state) const {
    const Tensor u = state.at({0}), v = state.at({1});
    const auto laplacian = [](const Tensor& t) {
      return roll(t, {1}, {0}) + roll(t, {-1}, {0}) + roll(t, {1}, {1}) + roll(t, {-1}, {1}) -
             4.0 * t;
    };
    const Tensor uvv = u * v * v;
    return stack(
        {0.16 * laplacian(u) - uvv + 0.035 * (1.0 - u), 0.08 * laplacian(v) + uvv - 0.1 * v}, 0);
  }
};

template <class System>
Tensor rk45(const System& system, const Tensor& start, double end) {
  Tensor y = start;
  double t = 0, h = 0.01 * end;
  while (t < end) {
    if (t + h > end) h = end - t;
    const Tensor k1 = system.derivative(y);
    const Tensor k2 = system.derivative(y + h * (0.2 * k1));
    const Tensor k3 = system.derivative(y + h * (3.0 / 40 * k1 + 9.0 / 40 * k2));
    const Tensor k4 = system.derivative(y + h * (44.0 / 45 * k1 - 56.0 / 15 * k2 + 32.0 / 9 * k3));
    const Tensor k5 = system.derivative(y + h * (19372.0 / 6561 * k1 - 25360.0 / 2187 * k2 +
                                                 64448.0 / 6561 * k3 - 212.0 / 729 * k4));
    const Tensor k6 =
        system.derivative(y + h * (9017.0 / 3168 * k1 - 355.0 / 33 * k2 + 46732.0 / 5247 * k3 +
                                   49.0 / 176 * k4 - 5103.0 / 18656 * k5));
    const Tensor next = y + h * (35.0 / 384 * k1 + 500.0 / 1113 * k3 + 125.0 / 192 * k4 -
                                 2187.0 / 6784 * k5 + 11.0 / 84 * k6);
    const Tensor k7 = system.derivative(next);
    const Tensor error = h * (71.0 / 57600 * k1 - 71.0 / 16695 * k3 + 71.0 / 1920 * k4 -
                              17253.0 / 339200 * k5 + 22.0 / 525 * k6 - 1.0 / 40 * k7);
    const double size = max(abs(error)).item<float>();
    if (size < 1e-4) {
      t += h;
      y = next;
    }
    h *= std::clamp(0.9 * std::pow(1e-4 / (size + 1e-12), 0.2), 0.2, 5.0);
  }
  return y;
}

/// The GPT of examples/chargpt.
struct Gpt {
  nn::Embedding characters, positions;
  std::vector<Block> blocks;
  nn::LayerNorm norm;
  nn::Linear head;

  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    Tensor y = characters(x) + slice(positions.weight, 0, {0, x.shape()[1]});
    for (const Block& block : blocks) y = block(y);
    return head(norm(y));
  }
};

Gpt gpt() {
  Gpt model = {
      nn::embedding(96, 128), nn::embedding(64, 128), {}, nn::layer_norm(128), nn::linear(128, 96)};
  for (int i = 0; i < 3; ++i) {
    model.blocks.push_back({.before_attention = nn::layer_norm(128),
                            .attention = nn::multi_head_attention(128, 4, {.is_causal = true}),
                            .before_mlp = nn::layer_norm(128),
                            .up = nn::linear(128, 512),
                            .down = nn::linear(512, 128)});
  }
  return model;
}

/// It writes 96 characters, and on to an end; each is drawn, read, and seen by the next 64.
void sample_row(Timer& timer) {
  if (!timer.wants("W8.sample")) return;
  manual_seed(1);
  const NoGradients scope;
  const Gpt model = gpt();
  const auto f = [&](const Tensor& prompt) {
    manual_seed(2);
    Tensor seen = prompt;
    int64_t drawn = 0;
    for (int i = 0; i < 96 || (drawn != 7 && i < 192); ++i) {
      if (seen.size() > 64) seen = slice(seen, 0, {.start = -64});
      const Tensor next = categorical(softmax(model(unsqueeze(seen, 0)).at({0, -1})));
      drawn = next.item<int64_t>();
      seen = concat({seen, reshape(next, {1})}, 0);
    }
    return seen;
  };
  const auto compiled = compile(f);
  const Tensor prompt = arange(4);
  timer.time("W8.sample", {},
             {{.name = "eager", .call = [&] { static_cast<void>(f(prompt)); }},
              {.name = "compiled",
               .call = [&] { static_cast<void>(compiled(prompt)); },
               .calls_to_settle = 12}},
             "a text of some hundred characters, one after the other");
}

void solver_rows(Timer& timer) {
  const Bodies bodies = {.masses = reshape(abs(normal(5, {3})) + 0.5, {3, 1})};
  time_both(
      timer, "W8.rk45.bodies", {}, [&](const Tensor& y) { return rk45(bodies, y, 0.2); },
      normal(6, {6, 3}));
  const Tensor field = abs(normal(7, {2, 256, 256})) * 0.2 + 0.2;
  time_both(
      timer, "W8.rk45.reaction", {}, [](const Tensor& y) { return rk45(Reaction(), y, 2.0); },
      field);
}

}  // namespace

void branch_rows(Timer& timer) {
  if (timer.wants("W7.branch")) branch_row(timer);
  sample_row(timer);
  for (const int64_t n : {16, 16'384, 262'144})
    time_both(timer, fmt::format("W8.newton.n{}", n), {}, newton, abs(normal(1, {n})) + 1.0);
  time_both(timer, "W8.branch.n16384", {}, branches, normal(2, {16'384}));
  for (const int64_t n : {16, 4096}) {
    time_both(timer, n == 4096 ? "W8.item" : fmt::format("W8.item.n{}", n), {}, item,
              normal(3, {n}));
  }
  time_both(timer, "W8.worst", {}, worst, normal(4, {16}));
  skip_rows(timer);
  solver_rows(timer);
}

}  // namespace nitinol::bench
