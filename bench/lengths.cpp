// Programs as people write them, whose compiled functions must not be slower than eager code: a
// model over batches of many lengths, loops of small steps, sequences that grow.
#include "bench/families.h"
#include "bench/functions.h"
#include "bench/time_both.h"
#include "nitinol.h"

#include <cstdint>
#include <vector>

namespace nitinol::bench {

namespace {

/// A step of training on each of 26 lengths in turn. The clock starts with the second pass.
void padded_batches(Timer& timer) {
  if (!timer.wants("lengths")) return;
  struct Model {
    nn::Lstm lstm = nn::lstm(16, 64);
    nn::Linear out = nn::linear(64, 4);
  };
  const Model eager, other;
  const nn::Adam of_eager(nn::parameters(eager)), of_other(nn::parameters(other));
  const Tensor classes = arange(16) % 4;
  const auto step = [classes](const Model& model, const nn::Adam& optimizer, const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(model.out(model.lstm(x).last.hidden[0]), classes);
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  };
  std::vector<Tensor> batches;
  for (int64_t i = 0; i < 26; ++i) batches.push_back(normal(3, {5 + i * 11 % 26, 16, 16}));
  const auto compiled = compile([&](const Tensor& x) { return step(other, of_other, x); });
  timer.time("lengths.lstm", {},
             {{.name = "eager",
               .call =
                   [&] {
                     for (const Tensor& x : batches) (void)step(eager, of_eager, x);
                   }},
              {.name = "compiled",
               .call =
                   [&] {
                     for (const Tensor& x : batches) (void)compiled(x);
                   },
               .calls_to_settle = 1}},
             "26 lengths in turn, from the second pass on");
}

/// One more word for each of four sequences, the likeliest four of all; a sequence grows by one at
/// each step, up to 20. As above.
void beams(Timer& timer) {
  if (!timer.wants("lengths.beam")) return;
  constexpr int64_t width = 4, words = 50, features = 32;
  const Tensor table = normal(0, {words, features}), out = normal(1, {features, words});
  const auto step = [=](const Tensor& sequences, const Tensor& scores) {
    const int64_t length = sequences.shape()[1];
    const Tensor weights = softmax(arange(length, f32) * 0.1, 0);
    const Tensor state = sum(take(table, sequences) * unsqueeze(weights, 1), 1);
    Tensor all = reshape(unsqueeze(scores, 1) + log_softmax(matmul(state, out), 1), {-1});
    std::vector<Tensor> next, best;
    for (int64_t k = 0; k < width; ++k) {
      const Tensor i = argmax(all, 0);
      const Tensor sequence = take(sequences, (i / words).to(i64));
      next.push_back(concat({sequence, unsqueeze(i % words, 0)}));
      best.push_back(take(all, i));
      all = where(arange(width * words) == i, -1e30F, all);
    }
    return std::pair(stack(next), stack(best));
  };
  const auto search = [&](const auto& f) {
    Tensor sequences = arange(width).to(i64), scores = zeros({width});
    sequences = unsqueeze(sequences, 1);
    for (int i = 0; i < 20; ++i) std::tie(sequences, scores) = f(sequences, scores);
  };
  const auto compiled = compile(step);
  timer.time("lengths.beam", {},
             {{.name = "eager", .call = [&] { search(step); }},
              {.name = "compiled", .call = [&] { search(compiled); }, .calls_to_settle = 1}},
             "20 lengths in turn, from the second search on");
}

/// Gaussian mixtures, k-means and a random walk: one iteration.
void loops(Timer& timer) {
  constexpr int64_t points = 2000, clusters = 3, dimensions = 2;
  const Tensor x = normal(0, {points, dimensions});
  const auto mixture = [](const Tensor& data, const Tensor& mean, const Tensor& log_scale) {
    const Tensor z = (unsqueeze(data, 1) - mean) * exp(-log_scale);
    const Tensor part = softmax(-sum(log_scale, 1) - sum(z * z, 2) * 0.5, 1);
    const Tensor count = unsqueeze(sum(part, 0), 1) + 1e-6;
    const Tensor center = matmul(transpose(part, 0, 1), data) / count;
    const Tensor square_of = matmul(transpose(part, 0, 1), data * data) / count;
    return std::pair(center, log(maximum(square_of - center * center, 1e-6)) * 0.5);
  };
  time_both(timer, "ported.gmm", {}, mixture, x, normal(1, {clusters, dimensions}),
            zeros({clusters, dimensions}));
  const auto means = [](const Tensor& data, const Tensor& center) {
    const Tensor distance = sum(square(unsqueeze(data, 1) - center), 2);
    const Tensor nearest = one_hot(argmin(distance, 1), center.shape()[0]);
    return Tensor(matmul(transpose(nearest, 0, 1), data) / (unsqueeze(sum(nearest, 0), 1) + 1e-6));
  };
  time_both(timer, "ported.kmeans", {}, means, x, normal(2, {8, dimensions}));
  const auto walk = [](const Tensor& at) {
    const Tensor there = at + randn(at.shape()) * 0.5;
    const Tensor gain = (at * at - there * there) * 0.5;
    return where(log(rand(at.shape())) < gain, there, at);
  };
  if (!timer.wants("ported.metropolis")) return;
  const auto compiled = compile(walk);
  const Tensor start = zeros({256});
  timer.time("ported.metropolis", {},
             {{.name = "eager", .call = [&] { (void)walk(start); }},
              {.name = "compiled", .call = [&] { (void)compiled(start); }, .calls_to_settle = 16}});
}

}  // namespace

void length_rows(Timer& timer) {
  padded_batches(timer);
  beams(timer);
  loops(timer);
}

}  // namespace nitinol::bench
