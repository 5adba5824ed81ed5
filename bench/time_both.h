// time_both: one function on one set of inputs, timed eagerly and compiled.
#pragma once

#include "bench/timer.h"
#include "nitinol.h"

#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nitinol::bench {

/// Mean magnitude of all elements, which peers can compare.
[[nodiscard]] inline double digest(const Tensor& x) {
  return sum(abs(x.to(f64))).item<double>() / static_cast<double>(x.size());
}
[[nodiscard]] inline double digest(const std::pair<Tensor, Tensor>& x) {
  return (digest(x.first) + digest(x.second)) / 2;
}
[[nodiscard]] inline double digest(const std::vector<Tensor>& all) {
  double total = 0;
  for (const Tensor& x : all) total += digest(x);
  return total / static_cast<double>(all.size());
}

/// Copies of one set of inputs, which take turns, and the last result of each: those that a device
/// has seen long ago are no more in its cache.
template <class Result, class... Inputs>
class Turns {
 public:
  Turns(std::size_t sets, const Inputs&... inputs) : results_(sets) {
    inputs_.emplace_back(inputs...);
    while (inputs_.size() < sets) inputs_.emplace_back(copy(inputs)...);
  }
  template <class F>
  void call(const F& f) {
    if (inputs_.size() == 1) {
      static_cast<void>(std::apply(f, inputs_[0]));
      return;
    }
    next_ = (next_ + 1) % inputs_.size();
    results_[next_].reset();
    results_[next_].emplace(std::apply(f, inputs_[next_]));
  }

 private:
  std::vector<std::tuple<Inputs...>> inputs_;
  std::vector<std::optional<Result>> results_;
  std::size_t next_ = 0;
};

/// Times f(inputs...) as rows `row` of modes "eager" and "compiled". The compiled function has its
/// default options; 128 calls before the clock starts leave the dense checks behind it.
template <class F, class... Inputs>
void time_both(Timer& timer, const std::string& row, const Work& work, const F& f,
               const Inputs&... inputs) {
  if (!timer.wants(row)) return;
  using Result = decltype(f(inputs...));
  const double bytes =
      (0.0 + ... +
       static_cast<double>(static_cast<std::size_t>(inputs.size()) * size_of(inputs.dtype())));
  Turns<Result, Inputs...> turns(timer.sets(bytes), inputs...);
  const auto compiled = compile(f);
  timer.time(row, work,
             {{.name = "eager",
               .call = [&] { turns.call(f); },
               .check = [&] { return digest(f(inputs...)); }},
              {.name = "compiled",
               .call = [&] { turns.call(compiled); },
               .calls_to_settle = 128,
               .check = [&] { return digest(compiled(inputs...)); }}});
}

}  // namespace nitinol::bench
