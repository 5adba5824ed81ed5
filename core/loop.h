// Native loops over a formula, one per instruction set.
//
// The loop body is a formula of Nums, which the compiler vectorises. It runs on blocks whose length
// is a multiple of every vector length, so there is no scalar epilogue; the rest of an array goes
// through the same code in padded copies on the stack.
//
// Only the loop functions have a target attribute; `flatten` inlines everything into them, so that
// shared inline functions are never compiled for an instruction set the machine may lack.
#pragma once

#include "core/loops.h"
#include "core/num.h"
#include "core/pick_loop.h"
#include "core/probe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace nitinol {

namespace loops {

/// bool is stored as one byte, 0 or 1.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T, Path P>
constexpr Num<T, P> load(Stored<T> stored) {
  if constexpr (std::is_same_v<T, bool>)
    return {stored != 0, {}};
  else
    return {stored, {}};
}

/// Lanes between two looks at the flag of the fast path.
inline constexpr int64_t block = 256;

/// Lanes that are a multiple of every vector length for the element types T.
template <class... T>
inline constexpr int64_t granule = 64 / static_cast<int64_t>(std::min({sizeof(T)...}));

/// Room for n elements, which are not initialised: most calls have no use for it.
template <class T, std::size_t n>
struct Room {
  Room() {}  // NOLINT(modernize-use-equals-default): that one would set zeros
  std::array<T, n> elements;
};

/// memcpy for few bytes: a call would take longer than the loop it is for. The first and the last n
/// bytes, which may overlap, are all of them.
inline void copy_rest(void* to, const void* from, std::size_t bytes) {
  const auto copy_ends = [&]<std::size_t n>(std::integral_constant<std::size_t, n>) {
    std::array<std::byte, n> first, last;
    std::memcpy(first.data(), from, n);
    std::memcpy(last.data(), static_cast<const std::byte*>(from) + bytes - n, n);
    std::memcpy(to, first.data(), n);
    std::memcpy(static_cast<std::byte*>(to) + bytes - n, last.data(), n);
  };
  if (bytes > 64)
    std::memcpy(to, from, bytes);
  else if (bytes >= 32)
    copy_ends(std::integral_constant<std::size_t, 32>());
  else if (bytes >= 16)
    copy_ends(std::integral_constant<std::size_t, 16>());
  else if (bytes >= 8)
    copy_ends(std::integral_constant<std::size_t, 8>());
  else if (bytes >= 4)
    copy_ends(std::integral_constant<std::size_t, 4>());
  else if (bytes >= 2)
    copy_ends(std::integral_constant<std::size_t, 2>());
  else if (bytes == 1)
    std::memcpy(to, from, 1);
}

/// Computes `lanes` lanes, a multiple of the granule. Gives their flags, zero if `P` was enough.
template <Path P, class F, class R, class... A, std::size_t... k>
inline uint32_t run_lanes(const void* const* in, void* out, int64_t lanes,
                          std::index_sequence<k...>) {
  const std::tuple<const Stored<A>*...> from{static_cast<const Stored<A>*>(in[k])...};
  auto* const to = static_cast<Stored<R>*>(out);
  uint32_t flags = 0;
#pragma GCC unroll 1
#pragma GCC ivdep
  for (int64_t i = 0; i < lanes; ++i) {
    const auto result = convert<Stored<R>>(F{}(load<A, P>(std::get<k>(from)[i])...));
    if constexpr (P != Path::look && P != Path::look_closely) to[i] = result.value;
    if constexpr (P != Path::exact) flags |= result.flag.needed;
  }
  return flags;
}

/// The fast path, of one side if the formula has two and one is enough. Nonzero if it was wrong.
template <class F, class R, class... A, std::size_t... k>
inline uint32_t run_fast(const void* const* in, void* out, int64_t lanes,
                         std::index_sequence<k...> indices) {
  if constexpr (has_sides<F, A...>) {
    uint32_t found = run_lanes<Path::look, F, R, A...>(in, out, lanes, indices);
    if ((found & Look::is_open) != 0)
      found = run_lanes<Path::look_closely, F, R, A...>(in, out, lanes, indices);
    if (found == Look::holds) return run_lanes<Path::first, F, R, A...>(in, out, lanes, indices);
    if (found == Look::fails) return run_lanes<Path::second, F, R, A...>(in, out, lanes, indices);
  }
  return run_lanes<Path::fast, F, R, A...>(in, out, lanes, indices);
}

/// The fast path, and again the exact one if that was not enough. `lanes` is at most `block`.
template <class F, class R, class... A>
inline void run_block(const void* const* in, void* out, int64_t lanes) {
  // The fast path may write wrong values over an input that the exact path reads again.
  std::tuple<Room<Stored<A>, block>...> saved;
  std::array<const void*, sizeof...(A)> kept;
  const auto keep = [&]<std::size_t... k>(std::index_sequence<k...>) {
    const auto keep_one = [&](std::size_t index, auto& room) {
      kept[index] = in[index];
      if (in[index] != out) return;
      auto& buffer = room.elements;
      std::memcpy(buffer.data(), in[index], static_cast<std::size_t>(lanes) * sizeof(buffer[0]));
      kept[index] = buffer.data();
    };
    (keep_one(k, std::get<k>(saved)), ...);
  };
  constexpr auto indices = std::index_sequence_for<A...>{};
  keep(indices);
  if (run_fast<F, R, A...>(kept.data(), out, lanes, indices) == 0) return;
  run_lanes<Path::exact, F, R, A...>(kept.data(), out, lanes, indices);
}

template <class F, class R, class... A, std::size_t... k>
inline void run(const void* const* in, void* out, int64_t n, std::index_sequence<k...> indices) {
  constexpr int64_t step = granule<R, A...>;
  std::array<const void*, sizeof...(A)> from{in[k]...};
  auto* to = static_cast<Stored<R>*>(out);
  std::tuple<Room<Stored<A>, std::size_t{step}>...> padded;
  Room<Stored<R>, std::size_t{step}> results;
  int64_t left = n;
  const auto pad = [&](const void*& source, auto& room) {
    auto& buffer = room.elements;
    using Element = typename std::remove_reference_t<decltype(buffer)>::value_type;
    buffer.fill(static_cast<const Element*>(source)[left - 1]);
    copy_rest(buffer.data(), source, static_cast<std::size_t>(left) * sizeof(Element));
    source = buffer.data();
  };
  // Granules as they lie, then what is left, padded: in one loop, so that each formula is compiled
  // once.
  while (left > 0) {
    const bool is_rest = left < step;
    void* target = to;
    int64_t lanes = has_slow_path<F, A...> ? std::min(left, block) : left;
    if (is_rest) {
      (pad(from[k], std::get<k>(padded)), ...);
      target = results.elements.data();
      lanes = step;
    }
    lanes = lanes / step * step;
    if constexpr (has_slow_path<F, A...>) {
      run_block<F, R, A...>(from.data(), target, lanes);
    } else {
      run_lanes<Path::exact, F, R, A...>(from.data(), target, lanes, indices);
    }
    if (is_rest) {
      copy_rest(to, target, static_cast<std::size_t>(left) * sizeof(Stored<R>));
      return;
    }
    ((from[k] = static_cast<const Stored<A>*>(from[k]) + lanes), ...);
    to += lanes;
    left -= lanes;
  }
}

template <class F, class R, class... A>
[[gnu::flatten]] void run_baseline(const void* const* in, void* out, int64_t n) {
  run<F, R, A...>(in, out, n, std::index_sequence_for<A...>{});
}

#if defined(__x86_64__)
template <class F, class R, class... A>
[[gnu::flatten, gnu::target("avx2,fma,f16c,bmi2")]] void run_avx2(const void* const* in, void* out,
                                                                  int64_t n) {
  run<F, R, A...>(in, out, n, std::index_sequence_for<A...>{});
}
template <class F, class R, class... A>
[[gnu::flatten, gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,bmi2,"
                            "prefer-vector-width=512")]] void
run_avx512(const void* const* in, void* out, int64_t n) {
  run<F, R, A...>(in, out, n, std::index_sequence_for<A...>{});
}
#endif

}  // namespace loops

/// The loops of the formula F (a lambda without captures): R and A are native types (float, double,
/// integers, bool).
template <class F, class R, class... A>
inline constexpr Loops loops_of = {
    loops::run_baseline<F, R, A...>,
#if defined(__x86_64__)
    loops::run_avx2<F, R, A...>,
    loops::run_avx512<F, R, A...>,
#else
    loops::run_baseline<F, R, A...>,
    loops::run_baseline<F, R, A...>,
#endif
};

}  // namespace nitinol
