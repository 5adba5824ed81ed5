#include "core/random_words.h"

#include "core/math/random.h"
#include "core/num.h"

#include <algorithm>
#include <cstddef>

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

namespace nitinol {
namespace {

/// Elements one by one, each with its own key.
template <int count>
void fill_each(const int64_t* indices, const int64_t* keys, const int64_t* counters, int64_t n,
               RandomWords& to) {
  const auto word_of = [](int64_t bits) { return Num<uint64_t>(static_cast<uint64_t>(bits)); };
  for (int64_t i = 0; i < n; ++i) {
    const auto words = philox(word_of(indices[i]), word_of(counters[i]), word_of(keys[i]));
    for (std::size_t k = 0; k < count; ++k)
      to.words[k][static_cast<std::size_t>(i)] = words[k].value;
  }
}

#if defined(__x86_64__)

/// A vector register of words, each in the lower half of a lane. By reference only: by value it
/// takes other ways into functions of other instruction sets.
template <int bytes>
struct Vector {
  using Lanes [[gnu::vector_size(bytes), gnu::may_alias]] = uint64_t;
  using Anywhere [[gnu::vector_size(bytes), gnu::aligned(1), gnu::may_alias]] = uint64_t;
  static constexpr std::size_t lanes = bytes / sizeof(uint64_t);
  Lanes value;

  void set_all(uint64_t bits) { value = bits - Lanes{}; }
  void load(const int64_t* from) { value = *reinterpret_cast<const Anywhere*>(from); }
};

// to = the products of the words of a and b.
inline void multiply(const Vector<16>& a, const Vector<16>& b, Vector<16>& to) {
  to.value = (Vector<16>::Lanes)_mm_mul_epu32((__m128i)a.value, (__m128i)b.value);
}
[[gnu::target("avx2")]] inline void multiply(const Vector<32>& a, const Vector<32>& b,
                                             Vector<32>& to) {
  to.value = (Vector<32>::Lanes)_mm256_mul_epu32((__m256i)a.value, (__m256i)b.value);
}
[[gnu::target("avx512f")]] inline void multiply(const Vector<64>& a, const Vector<64>& b,
                                                Vector<64>& to) {
  // Not _mm512_mul_epu32, of which g++ 12 thinks that it reads what is not initialised.
  to.value = (Vector<64>::Lanes)_mm512_maskz_mul_epu32(0xff, (__m512i)a.value, (__m512i)b.value);
}

/// What is the same for all elements.
template <class V>
struct Constants {
  std::array<V, 2> multipliers;
  std::array<std::array<V, 2>, math::philox_rounds> keys;  ///< of each round

  explicit Constants(uint64_t key) {
    for (std::size_t k = 0; k < 2; ++k) {
      multipliers[k].set_all(math::philox_multipliers[k]);
      for (std::size_t round = 0; round < keys.size(); ++round)
        keys[round][k].set_all((key >> 32 * k) + round * math::philox_weyl[k]);
    }
  }
};

/// Two vectors of elements: each round waits for the one before it, so that two take little longer
/// than one.
template <class V, int count>
inline void fill_two(const int64_t* indices, const int64_t* counters, const Constants<V>& constants,
                     RandomWords& to, std::size_t at) {
  std::array<std::array<V, 4>, 2> words;
  for (std::size_t half = 0; half < 2; ++half) {
    std::array<V, 4>& c = words[half];
    V counter;
    c[0].load(indices + half * V::lanes);
    counter.load(counters + half * V::lanes);
    c[0].value += counter.value;
    c[1].value = c[0].value >> 32;
    c[2].set_all(0);
    c[3].set_all(0);
  }
#  pragma GCC unroll 10
  for (const std::array<V, 2>& key : constants.keys) {
#  pragma GCC unroll 2
    for (std::array<V, 4>& c : words) {
      V product0, product1;
      multiply(c[0], constants.multipliers[0], product0);
      multiply(c[2], constants.multipliers[1], product1);
      c[0].value = product1.value >> 32 ^ c[1].value ^ key[0].value;
      c[2].value = product0.value >> 32 ^ c[3].value ^ key[1].value;
      c[1].value = product1.value;
      c[3].value = product0.value;
    }
  }
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t k = 0; k < count; ++k) {
      auto* const first = &to.words[k][at + half * V::lanes];
      *reinterpret_cast<typename V::Lanes*>(first) = words[half][k].value;
    }
  }
}

template <int bytes, int count>
inline void fill(const int64_t* indices, const int64_t* keys, const int64_t* counters, int64_t n,
                 RandomWords& to) {
  int64_t differ = 0;
  for (int64_t i = 0; i < n; ++i) differ |= keys[i] ^ keys[0];
  if (differ != 0) return fill_each<count>(indices, keys, counters, n, to);
  using V = Vector<bytes>;
  constexpr int64_t step = 2 * V::lanes;
  static_assert(random_block % step == 0);
  const Constants<V> constants(static_cast<uint64_t>(keys[0]));
  for (int64_t i = 0; i < n; i += step) {
    std::array<int64_t, step> last_indices, last_counters;
    const int64_t *index = indices + i, *counter = counters + i;
    if (n - i < step) {
      const auto pad = [&](const int64_t*& values, std::array<int64_t, step>& padded) {
        std::fill(std::copy(values, values + (n - i), padded.begin()), padded.end(), 0);
        values = padded.data();
      };
      pad(index, last_indices);
      pad(counter, last_counters);
    }
    fill_two<V, count>(index, counter, constants, to, static_cast<std::size_t>(i));
  }
}

template <int count>
[[gnu::flatten]] void fill_baseline(const int64_t* indices, const int64_t* keys,
                                    const int64_t* counters, int64_t n, RandomWords& to) {
  fill<16, count>(indices, keys, counters, n, to);
}
template <int count>
[[gnu::flatten, gnu::target("avx2")]] void fill_avx2(const int64_t* indices, const int64_t* keys,
                                                     const int64_t* counters, int64_t n,
                                                     RandomWords& to) {
  fill<32, count>(indices, keys, counters, n, to);
}
template <int count>
[[gnu::flatten, gnu::target("avx512f,prefer-vector-width=512")]] void fill_avx512(
    const int64_t* indices, const int64_t* keys, const int64_t* counters, int64_t n,
    RandomWords& to) {
  fill<64, count>(indices, keys, counters, n, to);
}

#endif

}  // namespace

template <int count>
FillRandomWords fill_random_words([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::baseline:
      return fill_baseline<count>;
    case Isa::avx2:
      return fill_avx2<count>;
    case Isa::avx512:
      return fill_avx512<count>;
  }
#endif
  return fill_each<count>;
}

template FillRandomWords fill_random_words<1>(Isa isa);
template FillRandomWords fill_random_words<2>(Isa isa);
template FillRandomWords fill_random_words<4>(Isa isa);

}  // namespace nitinol
