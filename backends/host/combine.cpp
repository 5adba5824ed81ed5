#include "backends/host/combine.h"

#include "backends/host/joins.h"
#include "core/error.h"

#include <algorithm>

namespace nitinol::host {
namespace {

template <Combine c, class T>
void fill(void* values, int64_t* positions, int64_t n) {
  std::fill_n(static_cast<Element<T>*>(values), n, neutral_of<c, T>());
  if constexpr (is_arg(c)) std::fill_n(positions, n, no_position);
}

template <Combine c, class T>
void fill_empty(void* values, int64_t* positions, int64_t n) {
  if constexpr (c == Combine::add)
    std::fill_n(static_cast<Element<T>*>(values), n, Element<T>{0});
  else
    fill<c, T>(values, positions, n);
}

template <Combine c, class T>
inline void join_arrays(Element<T>* a, int64_t* p, const Element<T>* b, const int64_t* q,
                        int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    if constexpr (is_arg(c)) {
      const bool takes_b = beats<c>(b[j], q[j], a[j], p[j]);
      a[j] = takes_b ? b[j] : a[j];
      p[j] = takes_b ? q[j] : p[j];
    } else {
      a[j] = join<c, T>(a[j], b[j]);
    }
  }
}

template <Combine c, class T>
void join_all(void* into, int64_t* into_positions, const void* from, const int64_t* from_positions,
              int64_t n) {
  join_arrays<c, T>(static_cast<Element<T>*>(into), into_positions,
                    static_cast<const Element<T>*>(from), from_positions, n);
}

template <Combine c, class T>
void fold(void* values, int64_t* positions, int64_t n) {
  auto* const a = static_cast<Element<T>*>(values);
  for (int64_t half = n / 2; half > 0; half /= 2) {
    join_arrays<c, T>(a, positions, a + half, is_arg(c) ? positions + half : nullptr, half);
  }
}

template <Combine c, class T>
void join_neighbours(void* values, int64_t n) {
  auto* const a = static_cast<Element<T>*>(values);
  for (; n > 1; n /= 2) {
    for (int64_t j = 0; j < n / 2; ++j) a[j] = join<c, T>(a[2 * j], a[2 * j + 1]);
  }
}

template <Combine c, class T>
constexpr auto neighbours_of() -> void (*)(void*, int64_t) {
  if constexpr (is_arg(c))
    return nullptr;
  else
    return join_neighbours<c, T>;
}

template <Combine c, class T>
Combiner make() {
  if constexpr (is_joinable<c, T>) {
    return {.value_bytes = sizeof(Element<T>),
            .has_positions = is_arg(c),
            .fill = fill<c, T>,
            .join = join_all<c, T>,
            .fold = fold<c, T>,
            .join_neighbours = neighbours_of<c, T>(),
            .fill_empty = fill_empty<c, T>};
  } else {
    throw Error(ErrorKind::internal,
                {.where = "combiner_of", .what = "conditions and numbers are not combined alike"});
  }
}

template <class T>
Combiner make(Combine combine) {
  switch (combine) {
    case Combine::add:
      return make<Combine::add, T>();
    case Combine::multiply:
      return make<Combine::multiply, T>();
    case Combine::maximum:
      return make<Combine::maximum, T>();
    case Combine::minimum:
      return make<Combine::minimum, T>();
    case Combine::logical_or:
      return make<Combine::logical_or, T>();
    case Combine::logical_and:
      return make<Combine::logical_and, T>();
    case Combine::arg_maximum:
      return make<Combine::arg_maximum, T>();
    case Combine::arg_minimum:
      return make<Combine::arg_minimum, T>();
  }
  return {};
}

}  // namespace

Combiner combiner_of(Combine combine, ScalarType type) {
  switch (type) {
    case ScalarType::pred:
      return make<bool>(combine);
    case ScalarType::u8:
      return make<uint8_t>(combine);
    case ScalarType::i8:
      return make<int8_t>(combine);
    case ScalarType::u16:
      return make<uint16_t>(combine);
    case ScalarType::i16:
      return make<int16_t>(combine);
    case ScalarType::u32:
      return make<uint32_t>(combine);
    case ScalarType::i32:
      return make<int32_t>(combine);
    case ScalarType::u64:
      return make<uint64_t>(combine);
    case ScalarType::i64:
      return make<int64_t>(combine);
    case ScalarType::f32:
      return make<float>(combine);
    case ScalarType::f64:
      return make<double>(combine);
  }
  return {};
}

}  // namespace nitinol::host
