// Lanes are explicit vectors, because a compiler may not reorder a floating sum to find them. All
// of a type's lanes fill four cache lines (one or two for small integers), which stay in registers.
//
// Rows need no trick: neighbouring columns are independent, and four rows at a time save three of
// four trips of the accumulators through the cache.

#include "backends/host/accumulate.h"

#include "backends/host/joins.h"
#include "backends/host/per_isa.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace nitinol::host {
namespace {

template <class T>
inline constexpr int lane_count = sizeof(T) == 8 ? reduction_order::lanes_64
                                                 : reduction_order::lanes_32;

template <class T, int bytes>
struct VectorOf {
  using Type [[gnu::vector_size(bytes)]] = T;
  Type value;  // a member keeps the attribute, which a template argument loses
};
template <class T, int bytes>
using Vector = typename VectorOf<T, bytes>::Type;

/// joins.h on vectors; equal bits lane by lane.
template <Combine c, class T, int bytes>
inline void join_into(VectorOf<Element<T>, bytes>& into, const VectorOf<Element<T>, bytes>& from) {
  using V = Vector<Element<T>, bytes>;
  V& a = into.value;
  const V& b = from.value;
  if constexpr (std::is_same_v<T, bool>) {
    constexpr bool is_or = c == Combine::logical_or || c == Combine::maximum;
    if constexpr (is_or)
      a |= b;
    else
      a &= b;
  } else if constexpr (c == Combine::add || c == Combine::multiply) {
    // Unsigned, because integers wrap.
    using U =
        std::conditional_t<native::Float<T>, T,
                           std::make_unsigned_t<std::conditional_t<native::Float<T>, int, T>>>;
    using UV = Vector<U, bytes>;
    const UV x = (UV)a, y = (UV)b;
    a = (V)(c == Combine::add ? x + y : x * y);
  } else {
    constexpr bool largest = c == Combine::maximum;
    const auto takes_a = largest ? a > b : a < b;
    const V ordered = takes_a ? a : b;
    if constexpr (native::Float<T>) {
      using UV = Vector<native::Bits<T>, bytes>;
      const V equal = (V)(largest ? (UV)a & (UV)b : (UV)a | (UV)b);
      const V joined = a == b ? equal : ordered;
      a = a != a ? a : joined;
    } else {
      a = ordered;
    }
  }
}

template <Combine c, class T, int bytes>
inline void accumulate_lanes(const Element<T>* values, int64_t n, Element<T>* lanes) {
  using V = VectorOf<Element<T>, bytes>;
  constexpr int count = lane_count<T>;
  constexpr int vectors = std::max(count * static_cast<int>(sizeof(Element<T>)) / bytes, 1);
  constexpr int step = bytes / static_cast<int>(sizeof(Element<T>));
  static_assert(vectors * step == count);
  std::array<V, vectors> sums;
  std::memcpy(sums.data(), lanes, sizeof sums);
  const auto take = [&](const Element<T>* from) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      V next;
      std::memcpy(&next, from + v * step, sizeof next);
      join_into<c, T, bytes>(sums[static_cast<std::size_t>(v)], next);
    }
  };
  const int64_t whole = n / count * count;
  for (int64_t i = 0; i < whole; i += count) take(values + i);
  if (whole < n) {
    std::array<Element<T>, count> padded;
    padded.fill(neutral_of<c, T>());
    std::memcpy(padded.data(), values + whole, static_cast<std::size_t>(n - whole) * sizeof(T));
    take(padded.data());
  }
  std::memcpy(lanes, sums.data(), sizeof sums);
}

template <Combine c, class T>
inline void accumulate_rows(const char* values, int64_t row_step, int64_t rows, int64_t columns,
                            Element<T>* sums) {
  using E = Element<T>;
  const auto row_at = [&](int64_t i) { return reinterpret_cast<const E*>(values + i * row_step); };
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const E *r0 = row_at(i), *r1 = row_at(i + 1), *r2 = row_at(i + 2), *r3 = row_at(i + 3);
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) {
      const E two = join<c, T>(join<c, T>(sums[j], r0[j]), r1[j]);
      sums[j] = join<c, T>(join<c, T>(two, r2[j]), r3[j]);
    }
  }
  for (; i < rows; ++i) {
    const E* row = row_at(i);
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) sums[j] = join<c, T>(sums[j], row[j]);
  }
}

// ---- arg_*: positions as wide as the values while they fit, so that both fill vectors alike

template <class T>
using Position = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

/// True if a later value replaces `best`.
template <Combine c, class E>
inline bool replaces(E value, E best) {
  const bool is_better = c == Combine::arg_maximum ? value > best : value < best;
  if constexpr (native::Float<E>) {
    return (is_better & (best == best)) | ((value != value) & (best == best));
  } else {
    return is_better;
  }
}

template <Combine c, class T>
inline void arg_lanes(const Element<T>* values, int64_t n, int64_t position, Element<T>* lanes,
                      int64_t* positions) {
  using E = Element<T>;
  constexpr int count = lane_count<T>;
  const int64_t whole = n / count * count;
  if (whole > 0) {
    std::array<E, count> best;
    std::array<Position<T>, count> at;
    for (int l = 0; l < count; ++l) {
      best[static_cast<std::size_t>(l)] = values[l];
      at[static_cast<std::size_t>(l)] = 0;
    }
    for (int64_t i = count; i < whole; i += count) {
      const E* next = values + i;
      const auto here = static_cast<Position<T>>(i);
#pragma GCC ivdep
      for (int l = 0; l < count; ++l) {
        const auto lane = static_cast<std::size_t>(l);
        const bool takes = replaces<c>(next[l], best[lane]);
        best[lane] = takes ? next[l] : best[lane];
        at[lane] = takes ? here : at[lane];
      }
    }
    for (int l = 0; l < count; ++l) {
      const auto lane = static_cast<std::size_t>(l);
      const int64_t where = position + at[lane] + l;
      if (!beats<c>(best[lane], where, lanes[l], positions[l])) continue;
      lanes[l] = best[lane];
      positions[l] = where;
    }
  }
  for (int64_t i = whole; i < n; ++i) {
    const int64_t l = i - whole;
    if (!beats<c>(values[i], position + i, lanes[l], positions[l])) continue;
    lanes[l] = values[i];
    positions[l] = position + i;
  }
}

template <Combine c, class T>
inline void arg_rows(const char* values, int64_t row_step, int64_t rows, int64_t columns,
                     int64_t position, Element<T>* best, int64_t* positions) {
  using E = Element<T>;
  for (int64_t i = 0; i < rows; ++i) {
    const E* row = reinterpret_cast<const E*>(values + i * row_step);
    const int64_t here = position + i;
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) {
      const bool takes = replaces<c>(row[j], best[j]) | (positions[j] == no_position);
      best[j] = takes ? row[j] : best[j];
      positions[j] = takes ? here : positions[j];
    }
  }
}

template <Combine c, class T>
struct Lanes {
  template <int width>
  void operator()(VectorWidth<width>, const void* values, int64_t n, int64_t position, void* lanes,
                  int64_t* positions) const {
    auto* const to = static_cast<Element<T>*>(lanes);
    const auto* const from = static_cast<const Element<T>*>(values);
    if constexpr (is_arg(c))
      arg_lanes<c, T>(from, n, position, to, positions);
    else
      accumulate_lanes<c, T, width>(from, n, to);
  }
};

template <Combine c, class T>
struct Rows {
  template <int width>
  void operator()(VectorWidth<width>, const void* values, int64_t row_step, int64_t rows,
                  int64_t columns, int64_t position, void* sums, int64_t* positions) const {
    auto* const to = static_cast<Element<T>*>(sums);
    const auto* const from = static_cast<const char*>(values);
    if constexpr (is_arg(c)) {
      arg_rows<c, T>(from, row_step, rows, columns, position, to, positions);
    } else {
      accumulate_rows<c, T>(from, row_step, rows, columns, to);
    }
  }
};

template <Combine c, class T>
Accumulate make(Isa isa) {
  if constexpr (is_joinable<c, T>) {
    return {.lanes = PerIsa<Lanes<c, T>, const void*, int64_t, int64_t, void*, int64_t*>::at(isa),
            .rows = PerIsa<Rows<c, T>, const void*, int64_t, int64_t, int64_t, int64_t, void*,
                           int64_t*>::at(isa)};
  } else {
    return {};
  }
}

template <class T>
Accumulate make(Combine combine, Isa isa) {
  switch (combine) {
    case Combine::add:
      return make<Combine::add, T>(isa);
    case Combine::multiply:
      return make<Combine::multiply, T>(isa);
    case Combine::maximum:
      return make<Combine::maximum, T>(isa);
    case Combine::minimum:
      return make<Combine::minimum, T>(isa);
    case Combine::logical_or:
      return make<Combine::logical_or, T>(isa);
    case Combine::logical_and:
      return make<Combine::logical_and, T>(isa);
    case Combine::arg_maximum:
      return make<Combine::arg_maximum, T>(isa);
    case Combine::arg_minimum:
      return make<Combine::arg_minimum, T>(isa);
  }
  return {};
}

}  // namespace

Accumulate accumulate_of(Combine combine, ScalarType type, Isa isa) {
  switch (type) {
    case ScalarType::pred:
      return make<bool>(combine, isa);
    case ScalarType::u8:
      return make<uint8_t>(combine, isa);
    case ScalarType::i8:
      return make<int8_t>(combine, isa);
    case ScalarType::i16:
      return make<int16_t>(combine, isa);
    case ScalarType::i32:
      return make<int32_t>(combine, isa);
    case ScalarType::i64:
      return make<int64_t>(combine, isa);
    case ScalarType::f32:
      return make<float>(combine, isa);
    case ScalarType::f64:
      return make<double>(combine, isa);
    case ScalarType::u16:
    case ScalarType::u32:
    case ScalarType::u64:
      break;  // no dtype computes in them
  }
  return {};
}

}  // namespace nitinol::host
