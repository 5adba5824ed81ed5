// Lanes are explicit vectors, because a compiler may not reorder a floating sum to find them. All
// of a type's lanes fill four cache lines (one or two for small integers), which stay in registers.
//
// Rows need no trick: neighbouring columns are independent, and eight rows at a time save seven of
// eight trips of the accumulators through the cache.

#include "backends/host/accumulate.h"

#include "backends/host/combine.h"
#include "backends/host/per_isa.h"
#include "backends/host/vectors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace nitinol::host {
namespace {

template <class T>
inline constexpr int lane_count = sizeof(T) == 8 ? reduction_order::lanes_64
                                                 : reduction_order::lanes_32;

template <class E, int count, int bytes>
using LaneVectors =
    std::array<VectorOf<E, bytes>, static_cast<std::size_t>(count) * sizeof(E) / bytes>;

/// Calls take(entry v of lanes, next vector) for n values, vector v of each round, the last round
/// padded with `neutral`. Most often n is `usual`, if that is not 0.
template <class E, int count, int bytes, int64_t usual = 0, class Lanes, class Take>
inline void for_each_vector(const E* values, int64_t n, Lanes& lanes, E neutral, Take take) {
  constexpr int step = bytes / static_cast<int>(sizeof(E));
  const auto take_round = [&](const E* from) {
    for_each_index<std::tuple_size_v<Lanes>>(
        [&](auto v) { take(lanes[v], VectorOf<E, bytes>::load(from + v * step)); });
  };
  if (usual != 0 && n == usual) {  // its end need not be guessed
#pragma GCC unroll 16
    for (int64_t round = 0; round < usual / count; ++round) {
      // No load moves from one kilobyte to another: compilers went through the whole run for each
      // pair of lanes, which took up to twice as long where the values come from memory.
      if (round % 4 == 0) asm volatile("" : "+r"(values) : : "memory");
      take_round(values + round * count);
    }
    return;
  }
  const int64_t whole = n / count * count;
  const E* from = values;
  constexpr int64_t two_rounds = 2 * int64_t{count};
  for (const E* const end = values + n / two_rounds * two_rounds; from != end;) {
    take_round(from);
    // The address moves on in the middle. Where the compiler put that, long rows were 7 % slower.
    asm volatile("" : "+r"(from) : : "memory");
    from += two_rounds;
    asm volatile("" : "+r"(from));
    take_round(from - count);
  }
  if (from != values + whole) take_round(from);
  if (whole == n) return;
  std::array<E, count> padded;
  padded.fill(neutral);
  std::memcpy(padded.data(), values + whole, static_cast<std::size_t>(n - whole) * sizeof(E));
  take_round(padded.data());
}

/// The extreme by the processor's own instruction, which ignores NaN and takes zeros for equal.
template <bool largest, class T, int bytes>
inline VectorOf<T, bytes> quick_extreme(const VectorOf<T, bytes>& a, const VectorOf<T, bytes>& b) {
  return {(largest ? a.value > b.value : a.value < b.value) ? a.value : b.value};
}

/// Takes n values by quick_extreme(). Sign bits of the result, any of them, say that there was a
/// NaN: whether infinity - |x| is negative, in integers, because comparisons that are only
/// remembered are costly.
template <bool largest, class T, int count, int bytes>
inline VectorOf<native::Bits<T>, bytes> take_extremes(const T* values, int64_t n,
                                                      LaneVectors<T, count, bytes>& lanes,
                                                      T neutral) {
  using Bits = native::Bits<T>;
  using U = Vector<Bits, bytes>;
  constexpr Bits sign = Bits{1} << (sizeof(T) * 8 - 1);
  constexpr Bits infinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  VectorOf<Bits, bytes> odd = {};
  for_each_vector<T, count, bytes>(
      values, n, lanes, neutral, [&odd](VectorOf<T, bytes>& lane, const VectorOf<T, bytes>& next) {
        lane = quick_extreme<largest>(next, lane);
        odd.value |= infinity - ((U)next.value & ~sign);
      });
  return odd;
}

/// The lanes' extremes: false, and of no use, if there is a NaN or a lane's result is zero.
template <bool largest, class T, int count, int bytes>
inline bool find_extremes(const T* values, int64_t n, LaneVectors<T, count, bytes>& lanes,
                          T neutral) {
  using Bits = native::Bits<T>;
  using U = Vector<Bits, bytes>;
  constexpr Bits sign = Bits{1} << (sizeof(T) * 8 - 1);
  constexpr Bits infinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  VectorOf<Bits, bytes> odd = take_extremes<largest, T, count, bytes>(values, n, lanes, neutral);
  for (const auto& lane : lanes) {
    const U magnitude = (U)lane.value & ~sign;
    odd.value |= (infinity - magnitude) | (magnitude - 1);  // negative for NaN and for zero
  }
  return (fold_vector<Combine::logical_or>(odd) & sign) == 0;
}

template <bool largest, class T, int bytes>
inline T fold_quickly(const VectorOf<T, bytes>& lanes) {
  if constexpr (bytes > 16) {
    const auto halves = std::bit_cast<std::array<VectorOf<T, bytes / 2>, 2>>(lanes);
    return fold_quickly<largest>(quick_extreme<largest>(halves[0], halves[1]));
  } else {
    T best = lanes.value[0];
    for (int i = 1; i < bytes / static_cast<int>(sizeof(T)); ++i)
      best = (largest ? lanes.value[i] > best : lanes.value[i] < best) ? lanes.value[i] : best;
    return best;
  }
}

/// The extreme of all values, from lanes that are neutral: false, and of no use, if there is a NaN
/// or it is zero.
template <bool largest, class T, int count, int bytes>
inline bool find_extreme(const T* values, int64_t n, LaneVectors<T, count, bytes> lanes, T neutral,
                         T& extreme) {
  using Bits = native::Bits<T>;
  constexpr Bits sign = Bits{1} << (sizeof(T) * 8 - 1);
  const auto odd = take_extremes<largest, T, count, bytes>(values, n, lanes, neutral);
  VectorOf<T, bytes> best = lanes[0];
  for (const auto& lane : lanes) best = quick_extreme<largest>(lane, best);
  extreme = fold_quickly<largest>(best);
  return (fold_vector<Combine::logical_or>(odd) & sign) == 0 && extreme != T{0};
}

template <class T, int bytes>
using LanesOf = LaneVectors<Held<T>, lane_count<T>, bytes>;

template <Combine c, class T>
inline constexpr bool is_float_extreme = native::Float<T> &&
                                         (c == Combine::maximum || c == Combine::minimum);

/// depends_on_order.
template <Combine c, class T>
inline constexpr bool has_runs = native::Float<T> && (c == Combine::add || c == Combine::multiply);

template <Combine c, class T, int bytes>
inline LanesOf<T, bytes> neutral_lanes() {
  LanesOf<T, bytes> lanes;
  lanes.fill(VectorOf<Held<T>, bytes>::all(neutral_of<c, T>()));
  return lanes;
}

/// The lanes after n values, from what they hold before.
template <Combine c, class T, int bytes>
inline LanesOf<T, bytes> take_values(const Held<T>* values, int64_t n,
                                     const LanesOf<T, bytes>& before) {
  LanesOf<T, bytes> lanes = before;
  if constexpr (is_float_extreme<c, T>) {
    if (find_extremes<c == Combine::maximum, T, lane_count<T>, bytes>(values, n, lanes,
                                                                      neutral_of<c, T>())) {
      return lanes;
    }
    lanes = before;
  }
  constexpr int64_t usual = has_runs<c, T> ? reduction_order::lanes_run : 0;
  for_each_vector<Held<T>, lane_count<T>, bytes, usual>(
      values, n, lanes, neutral_of<c, T>(),
      [](VectorOf<Held<T>, bytes>& lane, const VectorOf<Held<T>, bytes>& next) {
        lane = join<c>(lane, next);
      });
  return lanes;
}

template <Combine c, class T, int bytes>
inline Held<T> fold(LanesOf<T, bytes> lanes) {
  constexpr std::size_t count = std::tuple_size_v<LanesOf<T, bytes>>;
  for_each_index<std::bit_width(count) - 1>([&lanes](auto level) {
    constexpr std::size_t half = count >> (level + 1);
    for_each_index<half>([&](auto v) { lanes[v] = join<c>(lanes[v], lanes[v + half]); });
  });
  return fold_vector<c>(lanes[0]);
}

/// Calls take(first value, number of values) for each run of the piece from value `i` on.
template <class Take>
inline void for_each_run(const LanePiece& piece, int64_t i, Take take) {
  for (; i < piece.n; i += reduction_order::lanes_run) {
    take(i, std::min(reduction_order::lanes_run, piece.n - i));
  }
}

template <Combine c, class T, int bytes>
inline void accumulate_lanes(const LanePiece& piece, Held<T>* to) {
  using V = VectorOf<Held<T>, bytes>;
  using Lanes = LanesOf<T, bytes>;
  constexpr std::size_t count = std::tuple_size_v<Lanes>, step = bytes / sizeof(Held<T>);
  Lanes lanes = neutral_lanes<c, T, bytes>();
  if (!piece.is_first) for_each_index<count>([&](auto v) { lanes[v] = V::load(to + v * step); });
  const auto* const values = static_cast<const Held<T>*>(piece.values);
  if constexpr (is_float_extreme<c, T>) {
    if (piece.is_first && piece.is_last &&
        find_extreme<c == Combine::maximum, T, lane_count<T>, bytes>(values, piece.n, lanes,
                                                                     neutral_of<c, T>(), to[0]))
      return;
  }
  if constexpr (has_runs<c, T>) {
    int64_t begin = 0;
    if (piece.is_first) {  // what joins neutral lanes stays as it is
      begin = std::min(reduction_order::lanes_run, piece.n);
      lanes = take_values<c, T, bytes>(values, begin, lanes);
    }
    for_each_run(piece, begin, [&](int64_t i, int64_t n) {
      const Lanes run = take_values<c, T, bytes>(values + i, n, neutral_lanes<c, T, bytes>());
      for_each_index<count>([&](auto v) { lanes[v] = join<c>(lanes[v], run[v]); });
    });
  } else {
    lanes = take_values<c, T, bytes>(values, piece.n, lanes);
  }
  if (piece.is_last)
    to[0] = fold<c, T, bytes>(lanes);
  else
    for_each_index<count>([&](auto v) { lanes[v].store(to + v * step); });
}

/// Joins `count` rows to the accumulators.
template <Combine c, class T, int bytes, int count>
inline void accumulate_some_rows(const char* values, int64_t row_step, int64_t columns,
                                 Held<T>* sums) {
  using E = Held<T>;
  using V = VectorOf<E, bytes>;
  constexpr int step = bytes / static_cast<int>(sizeof(E));
  int64_t j = 0;
  for (; j + step <= columns; j += step) {
    V sum = V::load(sums + j);
#pragma GCC unroll 8
    for (int row = 0; row < count; ++row) {
      sum = join<c>(sum, V::load(reinterpret_cast<const E*>(values + row * row_step) + j));
    }
    sum.store(sums + j);
  }
  for (; j < columns; ++j) {
    for (int row = 0; row < count; ++row) {
      const E value = reinterpret_cast<const E*>(values + row * row_step)[j];
      sums[j] = join<c>(Num<E>(sums[j]), Num<E>(value)).value;
    }
  }
}

template <Combine c, class T, int bytes>
inline void accumulate_rows(const RowBlock& block, Held<T>* sums) {
  const char* values = static_cast<const char*>(block.values);
  const int64_t step = block.row_step;
  int64_t i = 0;
  for (; i + 8 <= block.rows; i += 8) {
    accumulate_some_rows<c, T, bytes, 8>(values + i * step, step, block.columns, sums);
  }
  for (; i < block.rows; ++i) {
    accumulate_some_rows<c, T, bytes, 1>(values + i * step, step, block.columns, sums);
  }
}

/// Part p of `parts`, each of n values, joins part p + parts/2, until the result is the first.
template <Combine c, class T, int bytes, int parts>
inline void fold_parts(Held<T>* values, int64_t n) {
  using E = Held<T>;
  using V = VectorOf<E, bytes>;
  static_assert(parts == 2 || parts == 4);
  const auto folded = [](const auto& part) {
    if constexpr (parts == 2)
      return join<c>(part(0), part(1));
    else
      return join<c>(join<c>(part(0), part(2)), join<c>(part(1), part(3)));
  };
  constexpr int step = bytes / static_cast<int>(sizeof(E));
  int64_t j = 0;
  for (; j + step <= n; j += step)
    folded([&](int64_t p) { return V::load(values + p * n + j); }).store(values + j);
  for (; j < n; ++j) values[j] = folded([&](int64_t p) { return Num<E>(values[p * n + j]); }).value;
}

template <Combine c, class T, int bytes>
inline void fold_rows(Held<T>* values, int64_t rows, int64_t columns) {
  for (; rows >= 4; rows /= 4) fold_parts<c, T, bytes, 4>(values, rows / 4 * columns);
  if (rows == 2) fold_parts<c, T, bytes, 2>(values, columns);
}

// ---- arg_*

/// The first element that equals `value`, or the first NaN if it is one; there is such an element.
template <class E>
inline int64_t first_equal(const E* values, int64_t n, E value) {
  using Bits = native::Bits<E>;
  constexpr Bits sign = Bits{1} << (sizeof(E) * 8 - 1);
  const auto is_it = [value](E x) { return x == value || (x != x && value != value); };
  // Zeros differ in their sign bit. A NaN is looked for one by one.
  const Bits mask =
      native::Float<E> && value == E{0} ? static_cast<Bits>(~sign) : static_cast<Bits>(~Bits{0});
  const Bits wanted = static_cast<Bits>(std::bit_cast<Bits>(value) & mask);
  constexpr int64_t stride = 64;
  int64_t i = 0;
  for (; i + stride <= n && value == value; i += stride) {
    Bits found = 0;
    for (int64_t j = 0; j < stride; ++j) {
      const Bits x = static_cast<Bits>((std::bit_cast<Bits>(values[i + j]) & mask) ^ wanted);
      found = static_cast<Bits>(found | (static_cast<Bits>(x - 1) & static_cast<Bits>(~x)));
    }
    if ((found & sign) != 0) break;  // x - 1 borrows where x is zero
  }
  while (i < n && !is_it(values[i])) ++i;
  return i;
}

/// The order of joining does not matter to arg_*, so the extreme is found first, then its place;
/// and lane 0 takes it for all.
template <Combine c, class T, int bytes>
inline void arg_lanes(const LanePiece& piece, Held<T>* lanes, int64_t* positions) {
  constexpr Combine extreme = takes_largest(c) ? Combine::maximum : Combine::minimum;
  if (piece.is_first) {
    lanes[0] = neutral_of<extreme, T>();
    positions[0] = no_position;
  }
  if (piece.n <= 0) return;
  const auto* const values = static_cast<const Held<T>*>(piece.values);
  const Held<T> best = fold<extreme, T, bytes>(
      take_values<extreme, T, bytes>(values, piece.n, neutral_lanes<extreme, T, bytes>()));
  const int64_t at = first_equal(values, piece.n, best);
  using Best = Placed<Num<Held<T>>, Num<int64_t>>;
  const int64_t position = piece.position + at;
  if (!beats<c>(Best{values[at], position}, Best{lanes[0], positions[0]}).value) return;
  lanes[0] = values[at];
  positions[0] = position;
}

template <Combine c, class T>
inline void arg_rows(const RowBlock& block, Held<T>* best, int64_t* positions) {
  using E = Held<T>;
  const int64_t columns = block.columns;  // here, no store can change it
  for (int64_t i = 0; i < block.rows; ++i) {
    const E* row =
        reinterpret_cast<const E*>(static_cast<const char*>(block.values) + i * block.row_step);
    const int64_t here = block.position + i;
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) {
      const bool takes =
          replaces<c>(Num<E>(row[j]), Num<E>(best[j])).value | (positions[j] == no_position);
      best[j] = takes ? row[j] : best[j];
      positions[j] = takes ? here : positions[j];
    }
  }
}

template <Combine c, class T>
struct Lanes {
  template <int width>
  void operator()(VectorWidth<width>, const LanePiece& piece, void* lanes,
                  int64_t* positions) const {
    auto* const to = static_cast<Held<T>*>(lanes);
    if constexpr (is_arg(c))
      arg_lanes<c, T, width>(piece, to, positions);
    else
      accumulate_lanes<c, T, width>(piece, to);
  }
};

template <Combine c, class T>
struct Rows {
  template <int width>
  void operator()(VectorWidth<width>, const RowBlock& block, void* sums, int64_t* positions) const {
    auto* const to = static_cast<Held<T>*>(sums);
    if constexpr (is_arg(c))
      arg_rows<c, T>(block, to, positions);
    else
      accumulate_rows<c, T, width>(block, to);
  }
};

template <Combine c, class T>
struct Fold {
  template <int width>
  void operator()(VectorWidth<width>, void* values, int64_t rows, int64_t columns) const {
    if constexpr (!is_arg(c)) fold_rows<c, T, width>(static_cast<Held<T>*>(values), rows, columns);
  }
};

}  // namespace

void fold_lanes_of_rows(const Accumulate& accumulate, std::size_t value_bytes, void* lanes,
                        int64_t count, int64_t rows) {
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count)));
  if (whole < count) {
    const auto distance = static_cast<std::ptrdiff_t>(value_bytes) * whole * rows;
    accumulate.rows({static_cast<char*>(lanes) + distance, 0, 1, (count - whole) * rows, 0}, lanes,
                    nullptr);
  }
  accumulate.fold(lanes, whole, rows);
}

Accumulate accumulate_of(const Reduction& reduction, Isa isa) {
  return with_reduction(reduction, [isa]<class Given>(auto combine, std::type_identity<Given>) {
    constexpr Combine c = combine.value;
    // Sums and products of integers have the same bits with and without a sign.
    constexpr bool is_either = c == Combine::add || c == Combine::multiply;
    using T =
        typename std::conditional_t<is_either && std::is_integral_v<Given>,
                                    std::make_unsigned<Given>, std::type_identity<Given>>::type;
    return Accumulate{.lanes = PerIsa<Lanes<c, T>, const LanePiece&, void*, int64_t*>::at(isa),
                      .rows = PerIsa<Rows<c, T>, const RowBlock&, void*, int64_t*>::at(isa),
                      .fold = PerIsa<Fold<c, T>, void*, int64_t, int64_t>::at(isa)};
  });
}

}  // namespace nitinol::host
