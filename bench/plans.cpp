// What making a Plan costs once its kernels are known, and whether that grows with the graph alone.
//
// A family of graphs is planned at about 500 operations and at full size; its note gives the time a
// node of both. Each sample compiles the function anew: its trace and its Plan are new, its kernels
// are those of the sample before.
//
// Sizes of tensors are small: what they are decides little of a Plan, and recording is eager.

#include "bench/families.h"
#include "bench/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace nitinol::bench {

namespace {

/// A Plan that was made.
struct Planned {
  double seconds = 0;
  double passes_s = 0, fusion_s = 0;  ///< of them
  double nodes = 0;                   ///< of its graph, after the passes
};

/// Calls that a compiled function gets to make its Plan.
constexpr int most_calls = 8;
/// Samples of one graph last no longer together.
constexpr double longest_s = 4;

Planned planned(const SignatureReport& signature) {
  const auto statements = std::ranges::count(signature.graph, ';');
  return {.seconds = signature.plan.total_s,
          .passes_s = signature.plan.passes_s,
          .fusion_s = signature.plan.fusion_s,
          .nodes = static_cast<double>(statements)};
}

/// Compiles `function` anew and calls it until it has a Plan for `input`.
template <class F>
Planned plan_of(const F& function, const Tensor& input) {
  const auto compiled = compile(function);
  for (int call = 0; call < most_calls; ++call) {
    (void)compiled(input);
    if (call == 0) continue;
    const Explanation explanation = compiled.explain();
    const SignatureReport& signature = explanation.signatures.at(0);
    if (signature.tier == Tier::traced) return planned(signature);
    if (signature.tier == Tier::eager) throw std::runtime_error(signature.reason);
  }
  throw std::runtime_error("no Plan after 8 calls");
}

/// Several Plans of one graph, each made once its kernels were known.
using Samples = std::vector<Planned>;

Samples samples_of(const std::function<Planned()>& plan, int repeats) {
  (void)plan();
  const double start = now();
  Samples samples;
  while (std::ssize(samples) < repeats && (samples.empty() || now() - start < longest_s))
    samples.push_back(plan());
  return samples;
}

std::vector<double> times_of(const Samples& samples, double Planned::*part = &Planned::seconds) {
  std::vector<double> times;
  times.reserve(samples.size());
  for (const Planned& sample : samples) times.push_back(sample.*part);
  return times;
}

double node_s(const Samples& samples) {
  return median_of(times_of(samples)) / samples.front().nodes;
}

void emit(const Timer& timer, const std::string& row, const Samples& samples,
          const std::string& notes) {
  const std::vector<double> times = times_of(samples);
  timer.emit(
      {.workload = row,
       .mode = "compiled",
       .threads = timer.threads(),
       .median_s = median_of(times),
       .min_s = *std::min_element(times.begin(), times.end()),
       .repeats = static_cast<int>(times.size()),
       .notes = fmt::format("passes {:.3g} ms, grouping {:.3g} ms; {} nodes, {:.0f} ns each{}",
                            median_of(times_of(samples, &Planned::passes_s)) * 1e3,
                            median_of(times_of(samples, &Planned::fusion_s)) * 1e3,
                            samples.front().nodes, node_s(samples) * 1e9, notes)});
}

/// Graphs of one kind: what plans one of them, given its size.
struct Family {
  std::string row;
  std::function<Planned(int64_t size)> plan;
  int64_t small = 0;  ///< the size that makes about 500 operations
  std::vector<int64_t> sizes;
};

void family_rows(const Timer& timer, const Family& family) {
  const auto is_wanted = [&](int64_t size) {
    return timer.wants(fmt::format("{}{}", family.row, size));
  };
  if (std::ranges::none_of(family.sizes, is_wanted)) return;
  const int repeats = timer.is_quick() ? 1 : 7;
  const Samples small = samples_of([&] { return family.plan(family.small); }, repeats);
  for (const int64_t size : family.sizes) {
    if (!is_wanted(size)) continue;
    const Samples samples = samples_of([&] { return family.plan(size); }, repeats);
    emit(timer, fmt::format("{}{}", family.row, size), samples,
         fmt::format(", {:.2f} times those of a graph of {} ({:.0f} ns)",
                     node_s(samples) / node_s(small), small.front().nodes, node_s(small) * 1e9));
  }
}

// ---- models

/// A step of Adam on `model`, compiled.
template <class Model>
auto training_step(const Model& model) {
  return [model, optimizer = nn::Adam(nn::parameters(model))](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = mean(square(model(x)));
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  };
}

/// The last hidden state of a recurrent layer.
struct Recurrent {
  nn::Lstm lstm;
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return lstm(x).last.hidden[0]; }
};

Block block() {
  return {.before_attention = nn::layer_norm(32),
          .attention = {.qkv = nn::linear(32, 96), .proj = nn::linear(32, 32), .heads = 4},
          .before_mlp = nn::layer_norm(32),
          .up = nn::linear(32, 128),
          .down = nn::linear(128, 32)};
}

Planned lstm_plan(int64_t steps) {
  static const auto step = training_step(Recurrent{nn::lstm(16, 32)});
  return plan_of(step, normal(1, {steps, 4, 16}));
}

/// A new batch size for a function that has Plans for others. `input` makes an input of a batch.
template <class F, class Input>
void batch_row(const Timer& timer, const std::string& row, const F& function, const Input& input) {
  if (!timer.wants(row)) return;
  const auto compiled = compile(function);
  const int sizes = timer.is_quick() ? 2 : 8;
  for (int64_t batch = 4; batch < 4 + sizes; ++batch) {
    const Tensor x = input(batch);
    for (int call = 0; call < 3; ++call) (void)compiled(x);
  }
  Samples samples;
  const Explanation explanation = compiled.explain();
  for (const SignatureReport& signature : explanation.signatures) {
    if (signature.tier == Tier::traced && signature.plan.kernels_generated == 0)
      samples.push_back(planned(signature));
  }
  if (samples.empty()) throw std::runtime_error(row + ": no Plan of known kernels");
  emit(timer, row, samples, ", of a batch size not seen before");
}

// ---- graphs of one shape

/// One operation after another.
Planned chain_plan(int64_t operations) {
  return plan_of([=](const Tensor& x) { return chain_of(x, operations); }, normal(1, {64}));
}

/// A chain each of whose links is also summed: a result for every three operations.
Planned comb_plan(int64_t operations) {
  const auto comb = [=](const Tensor& x) {
    std::vector<Tensor> teeth;
    Tensor spine = x;
    for (int64_t i = 0; i < operations / 3; ++i) {
      spine = tanh(spine);
      teeth.push_back(sum(exp(spine)));
    }
    return teeth;
  };
  return plan_of(comb, normal(1, {64}));
}

/// `operations` / 2 products: each of one side's values with each of the other's, in sums.
Planned bipartite_plan(int64_t operations) {
  const auto side = std::llround(std::sqrt(static_cast<double>(operations) / 2));
  const auto layer = [=](const Tensor& x) {
    std::vector<Tensor> from, to;
    for (int64_t i = 0; i < side; ++i) from.push_back(tanh(x * static_cast<double>(i)));
    for (int64_t j = 0; j < side; ++j) {
      Tensor total = x;
      for (const Tensor& value : from) total = total + value * (0.5 + static_cast<double>(j));
      to.push_back(std::move(total));
    }
    return to;
  };
  return plan_of(layer, normal(1, {64}));
}

/// Adam's step for many small parameters. (A step of training would be more operations than one
/// call may make.)
Planned adam_plan(int64_t count) {
  std::vector<Variable> weights;
  Tensor total = zeros({4});
  for (int64_t i = 0; i < count; ++i) {
    weights.push_back(parameter(full({4}, 0.5)));
    total = total + weights.back();
  }
  sum(total).backward();
  const nn::Adam optimizer(weights);
  const auto step = [&](const Tensor& x) {
    optimizer.step();
    return x * 2;
  };
  return plan_of(step, normal(1, {4}));
}

}  // namespace

void plan_rows(Timer& timer) {
  family_rows(timer, {"plan.lstm", lstm_plan, 6, {50, 200, 1000}});
  const auto sequence = [](int64_t batch) { return normal(1, {50, batch, 16}); };
  batch_row(timer, "plan.batch.lstm50", training_step(Recurrent{nn::lstm(16, 32)}), sequence);
  const auto tokens = [](int64_t batch) { return normal(1, {batch, 8, 32}); };
  batch_row(timer, "plan.batch.block", training_step(block()), tokens);
  family_rows(timer, {"plan.chain", chain_plan, 500, {20'000}});
  family_rows(timer, {"plan.comb", comb_plan, 500, {20'000}});
  family_rows(timer, {"plan.bipartite", bipartite_plan, 500, {20'000}});
  family_rows(timer, {"plan.adam", adam_plan, 30, {4000}});
}

}  // namespace nitinol::bench
