#include "bench/families.h"
#include "bench/functions.h"
#include "bench/time_both.h"

#include <algorithm>
#include <vector>

namespace nitinol::bench {

namespace {

/// What a new length of a known structure costs after its trace was recorded: passes, look-ups,
/// memory plan.
void shape_new_row(const Timer& timer) {
  const auto compiled = compile(w1b);
  const Tensor known = normal(0, {5000});
  for (int i = 0; i < 3; ++i) (void)compiled(known);
  for (int64_t i = 0; i < 32; ++i) {
    const Tensor x = normal(0, {5001 + 7 * i});
    for (int call = 0; call < 3; ++call) (void)compiled(x);
  }
  std::vector<double> times;
  const Explanation explanation = compiled.explain();
  for (const SignatureReport& signature : explanation.signatures) {
    if (signature.tier == Tier::traced && signature.plan.kernels_generated == 0) {
      times.push_back(signature.compile_s);
    }
  }
  if (times.empty()) return;
  timer.emit({.workload = "W7.shape.new",
              .mode = "compiled",
              .threads = timer.threads(),
              .median_s = median_of(times),
              .min_s = *std::min_element(times.begin(), times.end()),
              .repeats = static_cast<int>(times.size()),
              .notes = "from an agreeing trace of a new length to its Plan"});
}

}  // namespace

void shape_rows(Timer& timer) {
  if (timer.wants("W7.shape.new")) shape_new_row(timer);
  if (!timer.wants("W7.shapes")) return;
  std::vector<Tensor> inputs;
  double bytes = 0;
  for (int64_t i = 0; i < 32; ++i) {
    inputs.push_back(normal(0, {1000 + 31 * i}));
    bytes += 8.0 * static_cast<double>(inputs.back().size());
  }
  const auto compiled = compile(w1b);
  const auto eager_pass = [&] {
    for (const Tensor& x : inputs) (void)w1b(x);
  };
  const auto compiled_pass = [&] {
    for (const Tensor& x : inputs) (void)compiled(x);
  };
  timer.time("W7.shapes", {.bytes = bytes},
             {{.name = "eager", .call = eager_pass},
              {.name = "compiled", .call = compiled_pass, .calls_to_settle = 128}},
             "one pass over 32 lengths; first_call_s is the first pass; W6.W7.shapes has it in a "
             "fresh process");
}

}  // namespace nitinol::bench
