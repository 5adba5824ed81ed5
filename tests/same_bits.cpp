#include "tests/same_bits.h"

#include <cmath>
#include <cstring>

namespace nitinol {
namespace {

template <class T>
bool same_elements(const Tensor& a, const Tensor& b) {
  const std::vector<T> x = a.to_vector<T>();
  const std::vector<T> y = b.to_vector<T>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T p = x[i];
    const T q = y[i];
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(p) && std::isnan(q)) continue;
    }
    if (std::memcmp(&p, &q, sizeof(T)) != 0) return false;
  }
  return true;
}

}  // namespace

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  switch (a.dtype()) {
    case boolean:
      return same_elements<bool>(a, b);
    case u8:
      return same_elements<uint8_t>(a, b);
    case i8:
      return same_elements<int8_t>(a, b);
    case i16:
      return same_elements<int16_t>(a, b);
    case i32:
      return same_elements<int32_t>(a, b);
    case i64:
      return same_elements<int64_t>(a, b);
    case f16:
    case bf16:
    case f32:
      return same_elements<float>(a, b);
    case f64:
      return same_elements<double>(a, b);
  }
  return false;
}

}  // namespace nitinol
