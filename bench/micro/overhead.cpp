// What a call costs when the tensors are so small that only the overhead is left.

#include "nitinol.h"

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace nitinol::bench {

namespace {

void make_from_host(benchmark::State& state) {
  const std::vector<float> values = {1, 2, 3, 4};
  while (state.KeepRunning())
    benchmark::DoNotOptimize(from_span(std::span<const float>(values), {4}));
}
BENCHMARK(make_from_host);

void make_zeros(benchmark::State& state) {
  while (state.KeepRunning()) benchmark::DoNotOptimize(zeros({4}));
}
BENCHMARK(make_zeros);

void copy_handle(benchmark::State& state) {
  const Tensor x = zeros({4});
  while (state.KeepRunning()) {
    Tensor copy = x;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(copy_handle);

void view_transposed(benchmark::State& state) {
  const Tensor x = zeros({4, 3});
  while (state.KeepRunning()) benchmark::DoNotOptimize(transpose(x));
}
BENCHMARK(view_transposed);

void add_eager(benchmark::State& state) {
  const Tensor x = full({4}, 0.5), y = randn({4});
  while (state.KeepRunning()) benchmark::DoNotOptimize(x + y);
}
BENCHMARK(add_eager);

void add_number_eager(benchmark::State& state) {
  const Tensor x = full({4}, 0.5);
  while (state.KeepRunning()) benchmark::DoNotOptimize(x + 1.5);
}
BENCHMARK(add_number_eager);

void read_item(benchmark::State& state) {
  const Tensor x = full({}, 0.5);
  while (state.KeepRunning()) benchmark::DoNotOptimize(x.item<float>());
}
BENCHMARK(read_item);

/// A warm call: signature, look-up, one kernel of `range` chained additions and multiplications.
void call_compiled(benchmark::State& state) {
  const Tensor x = full({4}, 0.5), y = randn({4});
  const int64_t pairs = state.range(0) / 2;
  const auto chain = compile([pairs](const Tensor& a, const Tensor& b) -> Tensor {
    Tensor z = a;
    for (int64_t i = 0; i < pairs; ++i) z = (z + b) * b;
    return z;
  });
  for (int i = 0; i < 16; ++i) (void)chain(x, y);
  while (state.KeepRunning()) benchmark::DoNotOptimize(chain(x, y));
}
BENCHMARK(call_compiled)->Arg(2)->Arg(10)->Arg(50);

void call_compiled_with_state(benchmark::State& state) {
  const Variable total(zeros({4}));
  const Tensor y = randn({4});
  const auto accumulate = compile([total](const Tensor& x) -> Tensor {
    total += x;
    return total.get();
  });
  for (int i = 0; i < 16; ++i) (void)accumulate(y);
  while (state.KeepRunning()) benchmark::DoNotOptimize(accumulate(y));
}
BENCHMARK(call_compiled_with_state);

/// Ops of a call that looks at data, each of which an earlier call did: `op` a thousand times,
/// whose results nobody needs, so that nothing is computed.
template <class Op>
void match(benchmark::State& state, const Tensor& x, const Op& op) {
  constexpr int count = 1000;
  const auto f = compile([&op](const Tensor& a) {
    static_cast<void>(stop_gradient(a).at({0}).item<float>());
    Tensor y = a;
    for (int i = 0; i < count; ++i) y = op(y, a);
    return a;
  });
  f.set_stance(Stance::fail_on_fallback);
  for (int i = 0; i < 16; ++i) (void)f(x);
  int64_t ops = 0;
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(f(x));
    ops += count;
  }
  state.counters["op"] = benchmark::Counter(
      static_cast<double>(ops), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
void match_op(benchmark::State& state) {
  match(state, ones({4}), [](const Tensor& y, const Tensor& a) { return y + a; });
}
BENCHMARK(match_op);
void match_number(benchmark::State& state) {
  match(state, ones({4}), [](const Tensor& y, const Tensor&) { return y * 0.5; });
}
BENCHMARK(match_number);
void match_tape(benchmark::State& state) {
  const Variable w = parameter(ones({4}));
  match(state, w.get(), [](const Tensor& y, const Tensor& a) { return y + a; });
}
BENCHMARK(match_tape);

void allocate(benchmark::State& state) {
  const Spec bytes = {.dtype = u8, .shape = {state.range(0)}, .device = {}};
  while (state.KeepRunning()) benchmark::DoNotOptimize(allocate_tensor(bytes));
}
BENCHMARK(allocate)->Arg(16)->Arg(4096)->Arg(1 << 20)->Arg(64 << 20);

}  // namespace

}  // namespace nitinol::bench

BENCHMARK_MAIN();
