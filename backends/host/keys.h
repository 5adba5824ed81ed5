// Keys: elements as unsigned integers that compare as the elements do.
#pragma once

#include "backends/host/elements.h"
#include "core/dtype.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace nitinol::host {

template <DType dtype>
using Key = std::make_unsigned_t<std::conditional_t<
    std::is_floating_point_v<typename Elements<dtype>::Stored>,
    std::conditional_t<sizeof(typename Elements<dtype>::Stored) == 4, int32_t, int64_t>,
    typename Elements<dtype>::Stored>>;

/// The bit that makes negative numbers of the type less than others.
template <class Key>
inline constexpr Key top_bit = static_cast<Key>(Key{1} << (sizeof(Key) * 8 - 1));

/// The bits of infinity.
template <DType dtype>
inline constexpr Key<dtype> infinite = [] {
  if constexpr (dtype == f16) return Key<dtype>{0x7c00};
  if constexpr (dtype == bf16) return Key<dtype>{0x7f80};
  if constexpr (dtype == f32) return Key<dtype>{0x7f800000};
  if constexpr (dtype == f64) return Key<dtype>{0x7ff0000000000000};
  return Key<dtype>{0};
}();

/// -0 has the key of 0, and every NaN the greatest one.
template <DType dtype>
inline Key<dtype> key_of(typename Elements<dtype>::Stored element) {
  using K = Key<dtype>;
  const auto bits = std::bit_cast<K>(element);
  if constexpr (floating.contains(dtype)) {
    const auto size = static_cast<K>(bits & ~top_bit<K>);
    const auto flipped = static_cast<K>(bits ^ (bits != size ? K(~K{0}) : top_bit<K>));
    const K key = size == 0 ? top_bit<K> : flipped;
    return size > infinite<dtype> ? K(~K{0}) : key;
  } else if constexpr (std::is_signed_v<typename Elements<dtype>::Stored>) {
    return static_cast<K>(bits ^ top_bit<K>);
  } else {
    return bits;
  }
}

/// An element with this key, which is none of NaN.
template <DType dtype>
inline typename Elements<dtype>::Stored element_of(Key<dtype> key) {
  using K = Key<dtype>;
  using Stored = typename Elements<dtype>::Stored;
  if constexpr (floating.contains(dtype))
    return std::bit_cast<Stored>(
        static_cast<K>(key ^ ((key & top_bit<K>) != 0 ? top_bit<K> : K(~K{0}))));
  else if constexpr (std::is_signed_v<Stored>)
    return std::bit_cast<Stored>(static_cast<K>(key ^ top_bit<K>));
  else
    return key;
}

template <DType dtype>
inline bool is_nan(typename Elements<dtype>::Stored element) {
  using K = Key<dtype>;
  if constexpr (!floating.contains(dtype)) return false;
  return static_cast<K>(std::bit_cast<K>(element) & ~top_bit<K>) > infinite<dtype>;
}

/// As with_number_type, with booleans, which are bytes, as u8.
template <class F>
void with_ordered_type(DType dtype, const F& f) {
  with_number_type(dtype == boolean ? u8 : dtype, f);
}

}  // namespace nitinol::host
