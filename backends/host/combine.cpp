#include "backends/host/combine.h"

#include "core/joins.h"

#include <algorithm>

namespace nitinol::host {
namespace {

template <Combine c, class T>
void fill(void* values, int64_t* positions, int64_t n) {
  std::fill_n(static_cast<Held<T>*>(values), n, Held<T>{neutral_of<c, T>()});
  if constexpr (is_arg(c)) std::fill_n(positions, n, no_position);
}

template <Combine c, class T>
void fill_empty(void* values, int64_t* positions, int64_t n) {
  if constexpr (c == Combine::add)
    std::fill_n(static_cast<Held<T>*>(values), n, Held<T>{0});
  else
    fill<c, T>(values, positions, n);
}

template <Combine c, class E>
inline void join_arrays(E* a, int64_t* p, const E* b, const int64_t* q, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    if constexpr (is_arg(c)) {
      const auto best = join<c>(Placed<Num<E>, Num<int64_t>>{a[j], p[j]},
                                Placed<Num<E>, Num<int64_t>>{b[j], q[j]});
      a[j] = best.value.value;
      p[j] = best.position.value;
    } else {
      a[j] = join<c>(Num<E>(a[j]), Num<E>(b[j])).value;
    }
  }
}

template <Combine c, class E>
void join_all(void* into, int64_t* into_positions, const void* from, const int64_t* from_positions,
              int64_t n) {
  join_arrays<c>(static_cast<E*>(into), into_positions, static_cast<const E*>(from), from_positions,
                 n);
}

template <Combine c, class E>
void fold(void* values, int64_t* positions, int64_t n) {
  auto* const a = static_cast<E*>(values);
  for (int64_t half = n / 2; half > 0; half /= 2) {
    join_arrays<c, E>(a, positions, a + half, is_arg(c) ? positions + half : nullptr, half);
  }
}

template <Combine c, class E>
void join_neighbours(void* values, int64_t n) {
  auto* const a = static_cast<E*>(values);
  for (; n > 1; n /= 2) {
    for (int64_t j = 0; j < n / 2; ++j)
      a[j] = join<c>(Num<E>(a[2 * j]), Num<E>(a[2 * j + 1])).value;
  }
}

template <Combine c, class E>
constexpr auto neighbours_of() -> void (*)(void*, int64_t) {
  if constexpr (is_arg(c))
    return nullptr;
  else
    return join_neighbours<c, E>;
}

}  // namespace

Combiner combiner_of(const Reduction& reduction) {
  return with_reduction(reduction, []<class T>(auto combine, std::type_identity<T>) -> Combiner {
    constexpr Combine c = combine.value;
    return {.value_bytes = sizeof(Held<T>),
            .has_positions = is_arg(c),
            .fill = fill<c, T>,
            .join = join_all<c, Held<T>>,
            .fold = fold<c, Held<T>>,
            .join_neighbours = neighbours_of<c, Held<T>>(),
            .fill_empty = fill_empty<c, T>};
  });
}

}  // namespace nitinol::host
