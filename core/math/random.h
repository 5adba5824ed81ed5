// Counter-based random numbers: Philox 4x32-10, and uniform and normal numbers from it.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
//
// Which words an element uses: element i of an op that starts at counter `offset` has the block
// with the 128-bit counter {offset + i (64 bits), 0} and the 64-bit key, words least significant
// first. So it depends on key, offset and i only. Of the block's four words
//   uniform f32 takes word 0, uniform f64 words 0 (low) and 1 (high),
//   normal f32 takes words 0 (radius) and 1 (angle), normal f64 all four (low, high; low, high),
//   random bits are words 0 (low) and 1 (high).
#pragma once

#include "core/math/log.h"
#include "core/math/reduce.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace nitinol {
namespace math {

inline constexpr int philox_rounds = 10;
inline constexpr std::array<uint64_t, 2> philox_multipliers = {0xd2511f53, 0xcd9e8d57};
/// What the keys grow by from round to round.
inline constexpr std::array<uint64_t, 2> philox_weyl = {0x9e3779b9, 0xbb67ae85};

/// The generator proper. Counter and keys are u64 lanes of which the lower halves count, and so are
/// the words that come out: a product of two halves is one instruction of vectors and of GPUs, and
/// what is above a word need not be cleared in between.
template <Lane W>
constexpr std::array<W, 4> philox_block(std::array<W, 4> counter, W key0, W key1) {
  constexpr uint64_t word = 0xffffffff;
  std::array<W, 4> c = counter;
  const auto round = [&](uint64_t number) {
    const W product0 = (c[0] & word) * philox_multipliers[0];
    const W product1 = (c[2] & word) * philox_multipliers[1];
    c = {(product1 >> 32) ^ c[1] ^ (key0 + number * philox_weyl[0]), product1,
         (product0 >> 32) ^ c[3] ^ (key1 + number * philox_weyl[1]), product0};
  };
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    (round(static_cast<uint64_t>(k)), ...);
  }
  (std::make_index_sequence<philox_rounds>{});
  return c;
}

/// A u64 lane from its halves.
template <Lane U>
constexpr auto joined(U low, U high) {
  return convert<uint64_t>(low) | (convert<uint64_t>(high) << 32);
}

/// (sin(r) / r - 1) / r^2 in powers of r^2 for |r| <= pi/2; relative error of the sine below 2^-27
/// (f64: 2^-61).
template <class T>
inline constexpr auto half_turn_tail =
    std::array{-1.666665971e-01f, 8.333068341e-03f, -1.980966481e-04f, 2.605776899e-06f};
template <>
inline constexpr auto half_turn_tail<double> =
    std::array{-0.16666666666666666,   0.008333333333333207,    -0.0001984126984121248,
               2.7557319211569482e-06, -2.5052106904423313e-08, 1.6058941002399343e-10,
               -7.643019378819293e-13, 2.7214197270358946e-15};

/// sqrt(-2 ln u) sin(pi f) for u in (0, 1] and f uniform in [-1/2, 1/2): Box and Muller, where half
/// a turn will do because sin has the same values in the other half.
template <class T, Lane X>
constexpr X normal_of(X u, X f) {
  const X radius = sqrt(finish_log<T>(reduce_log<T>(u)) * T{-2});
  const X angle = f * ReduceConstants<T>::pi_high, square = angle * angle;
  return radius * fma(polynomial(square, half_turn_tail<T>), square * angle, angle);
}

}  // namespace math

/// The four random words (u32 lanes) of element `index` of an op whose counters start at `offset`;
/// all arguments are u64 lanes.
template <Lane X>
constexpr auto philox(X index, X offset, X key) {
  using U = Rebind<X, uint32_t>;
  const X position = offset + index, zero = constant<uint64_t>(index, 0);
  const auto words =
      math::philox_block(std::array<X, 4>{position, position >> 32, zero, zero}, key, key >> 32);
  return std::array<U, 4>{convert<uint32_t>(words[0]), convert<uint32_t>(words[1]),
                          convert<uint32_t>(words[2]), convert<uint32_t>(words[3])};
}

/// 64 random bits of an element's words, a u64 lane.
template <Lane U>
constexpr auto bits_of_words(const std::array<U, 4>& words) {
  return math::joined(words[0], words[1]);
}

/// Uniform in [0, 1): a multiple of 2^-24 (float) or 2^-53 (double).
template <class T, Lane U>
constexpr auto uniform_of_words(const std::array<U, 4>& words) {
  if constexpr (sizeof(T) == 4) {
    return convert<float>(bitcast<int32_t>(words[0] >> 8)) * 0x1p-24f;
  } else {
    return convert<double>(bitcast<int64_t>(bits_of_words(words) >> 11)) * 0x1p-53;
  }
}

/// Normal with mean 0 and standard deviation 1; at most 6.7 (float) or 9.5 (double) in size.
template <class T, Lane U>
constexpr auto normal_of_words(const std::array<U, 4>& words) {
  if constexpr (sizeof(T) == 4) {
    const auto u = fma(convert<float>(words[0]), 0x1p-32f, 0x1p-33f);
    const auto f = convert<float>(bitcast<int32_t>(words[1])) * 0x1p-32f;
    return math::normal_of<float>(u, f);
  } else {
    const auto u = fma(convert<double>(math::joined(words[0], words[1])), 0x1p-64, 0x1p-65);
    const auto f = convert<double>(bitcast<int64_t>(math::joined(words[2], words[3]))) * 0x1p-64;
    return math::normal_of<double>(u, f);
  }
}

}  // namespace nitinol
