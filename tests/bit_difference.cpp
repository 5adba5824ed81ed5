#include "tests/bit_difference.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace nitinol {
namespace {

template <class T>
bool is_same(T p, T q) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(p) && std::isnan(q)) return true;
  }
  return std::memcmp(&p, &q, sizeof(T)) == 0;
}

/// "0.5 (0x3f000000)".
template <class T>
std::string text_of(T value) {
  if constexpr (std::same_as<T, float>)
    return fmt::format("{} ({:#010x})", value, std::bit_cast<uint32_t>(value));
  else if constexpr (std::same_as<T, double>)
    return fmt::format("{} ({:#018x})", value, std::bit_cast<uint64_t>(value));
  else
    return fmt::format("{}", value);
}

Dims indices_of(std::size_t element, const Shape& shape) {
  Dims indices = shape;
  auto rest = static_cast<int64_t>(element);
  for (int i = shape.size() - 1; i >= 0; --i) {
    indices[i] = rest % shape[i];
    rest /= shape[i];
  }
  return indices;
}

template <class T>
std::optional<std::string> element_difference(const Tensor& a, const Tensor& b) {
  const std::vector<T> x = a.to_vector<T>();
  const std::vector<T> y = b.to_vector<T>();
  std::size_t count = 0;
  std::size_t first = 0;
  for (std::size_t i = x.size(); i-- > 0;) {
    if (is_same<T>(x[i], y[i])) continue;
    first = i;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return fmt::format("element {} at {} is {} instead of {}; {} of {} differ", first,
                     to_string(indices_of(first, a.shape())), text_of<T>(x[first]),
                     text_of<T>(y[first]), count, x.size());
}

}  // namespace

std::optional<std::string> bit_difference(const Tensor& got, const Tensor& expected) {
  if (got.is_defined() != expected.is_defined()) return "only one of them is defined";
  if (!got.is_defined()) return std::nullopt;
  if (got.shape() != expected.shape() || got.dtype() != expected.dtype())
    return fmt::format("{} instead of {}", describe(got), describe(expected));
  return with_type(compute_type(got.dtype()),
                   [&]<class T>(T) { return element_difference<T>(got, expected); });
}

}  // namespace nitinol
