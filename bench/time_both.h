// time_both: one function on one set of inputs, timed eagerly and compiled.
#pragma once

#include "bench/timer.h"
#include "nitinol.h"

#include <string>
#include <utility>

namespace nitinol::bench {

/// Mean magnitude of all elements, which peers can compare.
[[nodiscard]] inline double digest(const Tensor& x) {
  return sum(abs(x.to(f64))).item<double>() / static_cast<double>(x.size());
}
[[nodiscard]] inline double digest(const std::pair<Tensor, Tensor>& x) {
  return (digest(x.first) + digest(x.second)) / 2;
}

/// Times f(inputs...) as rows `row` of modes "eager" and "compiled". The compiled function has its
/// default options; 128 calls before the clock starts leave the dense checks behind it.
template <class F, class... Inputs>
void time_both(Timer& timer, const std::string& row, const Work& work, const F& f,
               const Inputs&... inputs) {
  if (!timer.wants(row)) return;
  const auto compiled = compile(f);
  timer.time(row, work,
             {{.name = "eager",
               .call = [&] { (void)f(inputs...); },
               .check = [&] { return digest(f(inputs...)); }},
              {.name = "compiled",
               .call = [&] { (void)compiled(inputs...); },
               .calls_to_settle = 128,
               .check = [&] { return digest(compiled(inputs...)); }}});
}

}  // namespace nitinol::bench
