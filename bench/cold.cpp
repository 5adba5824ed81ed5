// The first call records and costs what eager costs; one that agrees with it makes the Plan; a
// later one runs it. `first` is call 1, `ready` the sum of all calls up to and with the first that
// ran the Plan, `longest` the longest of the calls after that, while code is made better in the
// background, `warm` one when it is. Inputs are made before, and not counted.

#include "bench/cold.h"

#include "bench/functions.h"
#include "bench/timer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string_view>

namespace nitinol::bench {

namespace {

/// A compiled function with its inputs, and how many of its calls ran a Plan so far.
struct Subject {
  std::function<void()> pass;
  std::function<int64_t()> planned_calls;
  std::function<double()> plan_s = [] { return 0.0; };  ///< what making the Plan took
  int64_t calls_in_pass = 1;
};

template <class Compiled, class... Inputs>
Subject subject_of(const Compiled& compiled, const Inputs&... inputs) {
  return {.pass = [=] { (void)compiled(inputs...); },
          .planned_calls = [=] { return static_cast<int64_t>(compiled.explain().plan_calls); },
          .plan_s = [=] { return compiled.explain().signatures.at(0).compile_s; }};
}

Subject shapes_subject() {
  std::vector<Tensor> inputs;
  inputs.reserve(32);
  for (int64_t i = 0; i < 32; ++i) inputs.push_back(normal(0, {1000 + 31 * i}));
  const auto compiled = compile(w1b);
  return {.pass =
              [=] {
                for (const Tensor& x : inputs) (void)compiled(x);
              },
          .planned_calls = [=] { return static_cast<int64_t>(compiled.explain().plan_calls); },
          .calls_in_pass = 32};
}

/// A step of Adam for a net of two layers.
Subject training_subject() {
  const nn::Linear hidden = nn::linear(100, 128), out = nn::linear(128, 10);
  const nn::Adam optimizer({hidden.weight, *hidden.bias, out.weight, *out.bias});
  const Tensor classes = arange(32) % 10;
  const auto step = compile([=](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(out(relu(hidden(x))), classes);
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  });
  return subject_of(step, normal(3, {32, 100}));
}

Subject subject_named(const std::string& name) {
  constexpr int64_t n = 100'000;
  const Tensor x = normal(0, {n});
  if (name == "W1a")
    return subject_of(compile(w1a), x, normal(1, {n}), normal(2, {n}), normal(3, {n}));
  if (name == "W1b") return subject_of(compile(w1b), x);
  if (name == "W1c") return subject_of(compile(w1c), x);
  if (name == "W1d") {
    const Market market(n);
    return subject_of(compile(w1d), market.s, market.k, market.t);
  }
  if (name == "W3.chain10") return subject_of(compile(chain10), full({4}, 0.5), normal(1, {4}));
  if (name == "mlp") return training_subject();
  if (name == "W7.shapes") return shapes_subject();
  if (name == "chain10000") return subject_of(compile(chain10000), normal(0, {1000}));
  throw std::runtime_error("no function " + name + " to call cold");
}

double seconds_of(const std::function<void()>& pass) {
  const double start = now();
  pass();
  synchronize();
  return now() - start;
}

void print_row(const Options& options, const char* kind, double seconds, double first,
               const std::string& notes) {
  const Row row{.workload = fmt::format("W6.{}{}{}", options.cold,
                                        options.store.empty() ? "" : ".disk", kind),
                .mode = "compiled",
                .threads = options.threads.front(),
                .median_s = seconds,
                .min_s = seconds,
                .repeats = 1,
                .first_call_s = first,
                .notes = notes};
  fmt::print("{}\n", to_json(row).dump());
}

/// What a wrong call takes until its message is there, which names the line of the call.
void print_error_rows(const Options& options) {
  const auto seconds = [] {
    return seconds_of([] {
      try {
        (void)(full({3}, 1) + full({4}, 1));
      } catch (const Error& error) {
        if (std::string_view(error.what()).find("cold.cpp") == std::string_view::npos)
          throw std::runtime_error(fmt::format("no line of the call: {}", error.what()));
      }
    });
  };
  (void)seconds_of([] { (void)full({3}, 1); });
  const double first = seconds();
  print_row(options, ".first", first, first, "the first Error of a process, with its message");
  print_row(options, ".again", seconds(), first, "the second");
}

}  // namespace

std::vector<std::string> cold_functions() {
  return {"W1a", "W1b", "W1c", "W1d", "W3.chain10", "mlp", "W7.shapes", "chain10000", "error"};
}

void print_cold_rows(const Options& options) {
  if (options.cold == "error") return print_error_rows(options);
  const Subject subject = subject_named(options.cold);
  const double first = seconds_of(subject.pass);
  double ready = first;
  int passes = 1;
  for (int64_t planned = 0; planned < subject.calls_in_pass; ++passes) {
    if (passes == 64) throw std::runtime_error(options.cold + " runs no Plan after 64 passes");
    const int64_t before = subject.planned_calls();
    ready += seconds_of(subject.pass);
    planned = subject.planned_calls() - before;
  }
  double longest = 0;
  constexpr double settled_s = 0.3;  // by then all code has been made
  for (const double start = now(); now() - start < settled_s;)
    longest = std::max(longest, seconds_of(subject.pass));
  std::vector<double> warm;
  warm.reserve(15);
  for (int i = 0; i < 15; ++i) warm.push_back(seconds_of(subject.pass));
  const auto print = [&](const char* kind, double seconds, const std::string& notes) {
    print_row(options, kind, seconds, first, notes);
  };
  if (!options.store.empty()) {
    print(".ready", ready,
          fmt::format("{} calls, {:.3f} ms of them the Plan; {} kernels from disk", passes,
                      1e3 * subject.plan_s(), executable_statistics().from_disk));
    return;
  }
  print(".first", first, "call 1 in a fresh process");
  print(".ready", ready,
        fmt::format("{} calls of a fresh process, the last runs the Plan", passes));
  if (options.cold == "chain10000") print(".plan", subject.plan_s(), "from agreeing traces");
  print(".longest", longest,
        fmt::format("the longest call of the next 300 ms; {:.2f} of call 1", longest / first));
  print(".warm", median_of(warm), "one call, timed alone");
}

}  // namespace nitinol::bench
