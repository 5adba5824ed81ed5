#include "bench/families.h"
#include "bench/functions.h"
#include "bench/time_both.h"

namespace nitinol::bench {
namespace {

/// A function by itself, and as one that is compiled runs it when it is asked to run it eagerly.
template <class F>
void time_fallback(Timer& timer, const std::string& row, const F& f, const Tensor& x) {
  if (!timer.wants(row)) return;
  const auto compiled = compile(f);
  timer.time(row, {},
             {{.name = "eager", .call = [&] { static_cast<void>(f(x)); }},
              {.name = "compiled", .call = [&] { static_cast<void>(compiled.eager(x)); }}},
             "compiled: called by eager()");
}

}  // namespace

void small_rows(Timer& timer) {
  const Tensor x = full({4}, 0.5), y = normal(1, {4});
  const auto add4 = [](const Tensor& a, const Tensor& b) -> Tensor { return a + b; };
  time_both(timer, "W3.add4", {}, add4, x, y);
  time_both(timer, "W3.chain10", {}, chain10, x, y);
  const auto tanh10 = [](const Tensor& a) {
    Tensor result = a;
    for (int i = 0; i < 10; ++i) result = tanh(result);
    return result;
  };
  time_both(timer, "W3.tanh10", {}, tanh10, normal(1, {4096}));
  time_fallback(
      timer, "W3.fallback.softmax", [](const Tensor& a) { return softmax(a); }, normal(1, {8, 10}));
  time_fallback(
      timer, "W3.fallback.layer_norm", [](const Tensor& a) { return layer_norm(a); },
      normal(1, {64, 256}));
  const auto adds = [](const Tensor& a) {
    Tensor sum = a;
    for (int i = 0; i < 31; ++i) sum = sum + a;
    return sum;
  };
  time_fallback(timer, "W3.fallback.adds31", adds, normal(1, {64}));
}

}  // namespace nitinol::bench
