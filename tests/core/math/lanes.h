// Runs a formula by every native loop of this machine and by the interpreter, for the math tests.
#pragma once

#include "core/evaluate.h"
#include "core/loop.h"
#include "core/math.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace nitinol::test {

/// Equal bits, with any NaN equal to any NaN.
template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a && b != b) return true;
  }
  return std::bit_cast<native::Bits<T>>(a) == std::bit_cast<native::Bits<T>>(b);
}

/// The formula's values by the loop for `isa`.
template <class R, class A, class F, class... Rest>
std::vector<R> run_loop(Isa isa, F, const std::vector<A>& x, const Rest&... rest) {
  std::vector<R> out(x.size());
  const void* const in[] = {x.data(), rest.data()...};
  loops_of<F, R, A, typename Rest::value_type...>.at(isa)(in, out.data(),
                                                          static_cast<int64_t>(x.size()));
  return out;
}

/// The formula as a program of arguments of types A, and its result's number.
template <class... A, class F>
std::pair<ScalarProgram, uint32_t> record(F formula) {
  ScalarProgram program;
  const auto call = [&]<std::size_t... k>(std::index_sequence<k...>) {
    const Expr arguments[] = {argument(program, scalar_type_of<A>, k)...};
    return formula(arguments[k]...).id;
  };
  const uint32_t result = call(std::index_sequence_for<A...>{});
  return {std::move(program), result};
}

/// Arguments at which loops or the interpreter differ from the widest loop.
template <class R, class A, class F, class... Rest>
std::size_t count_differences(F formula, const std::vector<A>& x, const Rest&... rest) {
  const std::vector<R> want = run_loop<R>(host_isa(), formula, x, rest...);
  std::size_t differences = 0;
  for (const Isa isa : {Isa::baseline, Isa::avx2}) {
    if (isa > host_isa()) continue;
    const std::vector<R> got = run_loop<R>(isa, formula, x, rest...);
    for (std::size_t i = 0; i < x.size(); ++i) differences += same(got[i], want[i]) ? 0 : 1;
  }
  const auto [program, result] = record<A, typename Rest::value_type...>(formula);
  const uint32_t wanted[] = {result};
  for (std::size_t i = 0; i < x.size(); i += 7) {
    const uint64_t args[] = {std::bit_cast<native::Bits<A>>(x[i]),
                             std::bit_cast<native::Bits<typename Rest::value_type>>(rest[i])...};
    const uint64_t bits = evaluate(program, args, wanted)[0];
    const R got = std::bit_cast<R>(static_cast<native::Bits<R>>(bits));
    differences += same(got, want[i]) ? 0 : 1;
  }
  return differences;
}

/// Edge cases, arbitrary bit patterns, and numbers of moderate size.
template <class T>
std::vector<T> samples(std::size_t count, uint64_t seed) {
  using Limits = std::numeric_limits<T>;
  std::mt19937_64 random(seed);
  std::vector<T> x;
  if constexpr (std::is_floating_point_v<T>) {
    for (const double edge : {0.0,
                              0.5,
                              1.0,
                              1.5,
                              2.0,
                              3.0,
                              10.0,
                              88.72283,
                              88.722839,
                              89.0,
                              103.9,
                              104.0,
                              128.0,
                              709.7827,
                              745.1,
                              1024.0,
                              1.5707963267948966,
                              3.141592653589793,
                              65536.0,
                              1e5,
                              1e30}) {
      x.insert(x.end(), {static_cast<T>(edge), static_cast<T>(-edge)});
    }
    for (const T edge : {Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::min(),
                         Limits::denorm_min(), Limits::epsilon()}) {
      x.insert(x.end(), {edge, -edge});
    }
  }
  while (x.size() < count) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    if (std::is_integral_v<T> || random() % 2 == 0) {
      x.push_back(std::bit_cast<T>(static_cast<native::Bits<T>>(random())));
    } else {
      x.push_back(static_cast<T>((unit - 0.5) * (random() % 2 == 0 ? 4 : 200)));
    }
  }
  return x;
}

}  // namespace nitinol::test
