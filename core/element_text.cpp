// Elements to text and back.
//
// The 16-bit formats go through double, which holds all their values exactly; a quotient by the
// distance of neighbouring values (a power of two) rounded to an integer is then the one rounding.
#include "core/element_text.h"

#include "core/native.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

namespace nitinol {
namespace {

/// A binary floating-point format in its stored bits.
struct Format {
  int mantissa;  ///< explicit bits
  int exponent;  ///< bits
  [[nodiscard]] uint64_t sign() const { return uint64_t{1} << (mantissa + exponent); }
  [[nodiscard]] uint64_t infinity() const { return ((uint64_t{1} << exponent) - 1) << mantissa; }
  [[nodiscard]] uint64_t quiet_nan() const { return infinity() | uint64_t{1} << (mantissa - 1); }
  /// Exponent of the smallest normal number.
  [[nodiscard]] int lowest() const { return 2 - (1 << (exponent - 1)); }
};

Format format_of(DType dtype) {
  if (dtype == f16) return {10, 5};
  if (dtype == bf16) return {7, 8};
  if (dtype == f32) return {23, 8};
  return {52, 11};
}

double from_format(Format format, uint64_t bits) {
  const uint64_t magnitude = bits & (format.sign() - 1);
  const uint64_t fraction = magnitude & ((uint64_t{1} << format.mantissa) - 1);
  const auto biased = static_cast<int>(magnitude >> format.mantissa);
  const uint64_t hidden = biased == 0 ? 0 : uint64_t{1} << format.mantissa;
  const double value = std::ldexp(static_cast<double>(fraction | hidden),
                                  std::max(biased, 1) - 1 + format.lowest() - format.mantissa);
  return (bits & format.sign()) != 0 ? -value : value;
}

std::optional<uint64_t> to_format(Format format, double value) {
  const double magnitude = std::fabs(value);
  const uint64_t sign = std::signbit(value) ? format.sign() : 0;
  const int exponent =
      magnitude == 0 ? format.lowest() : std::max(std::ilogb(magnitude), format.lowest());
  const double steps = std::nearbyint(std::ldexp(magnitude, format.mantissa - exponent));
  // The encoding counts steps within a binade and carries into the next one by itself.
  const uint64_t bits = (static_cast<uint64_t>(exponent - format.lowest()) << format.mantissa) +
                        static_cast<uint64_t>(steps);
  if (bits >= format.infinity()) return std::nullopt;
  return sign | bits;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
std::optional<uint64_t> integer_bits(std::string_view text) {
  const std::optional<T> value = number<T>(text);
  if (!value) return std::nullopt;
  return static_cast<std::make_unsigned_t<T>>(*value);
}

std::string float_text(DType dtype, uint64_t bits) {
  const Format format = format_of(dtype);
  const uint64_t magnitude = bits & (format.sign() - 1);
  if (magnitude > format.infinity()) {
    return bits == format.quiet_nan() ? "nan" : fmt::format("nan({:#x})", bits);
  }
  if (magnitude == format.infinity()) return bits == magnitude ? "inf" : "-inf";
  if (dtype == f64) return fmt::format("{}", std::bit_cast<double>(bits));
  if (dtype == f32) return fmt::format("{}", std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return fmt::format("{}", static_cast<float>(from_format(format, bits)));
}

std::optional<uint64_t> nan_bits(Format format, std::string_view text) {
  if (text == "nan") return format.quiet_nan();
  if (!text.starts_with("nan(0x") || !text.ends_with(')')) return std::nullopt;
  text = text.substr(6, text.size() - 7);
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const bool fits = (bits & ~(format.sign() | (format.sign() - 1))) == 0;
  const bool is_nan = (bits & (format.sign() - 1)) > format.infinity();
  return fits && is_nan ? std::optional(bits) : std::nullopt;
}

std::optional<uint64_t> float_bits(DType dtype, std::string_view text) {
  const Format format = format_of(dtype);
  if (text == "inf") return format.infinity();
  if (text == "-inf") return format.infinity() | format.sign();
  if (text.starts_with("nan")) return nan_bits(format, text);
  // from_chars knows infinities and NaNs of its own.
  if (text.find_first_not_of("0123456789.+-eE") != std::string_view::npos) return std::nullopt;
  if (dtype == f32) {
    const auto value = number<float>(text);
    return value ? std::optional<uint64_t>(std::bit_cast<uint32_t>(*value)) : std::nullopt;
  }
  const auto value = number<double>(text);
  if (!value) return std::nullopt;
  return dtype == f64 ? std::bit_cast<uint64_t>(*value) : to_format(format, *value);
}

}  // namespace

std::string element_text(DType dtype, uint64_t bits) {
  if (dtype == boolean) return bits != 0 ? "true" : "false";
  if (is_floating(dtype)) return float_text(dtype, bits);
  return with_type(compute_type(dtype),
                   [&]<class T>(T) { return fmt::format("{}", static_cast<T>(bits)); });
}

std::optional<uint64_t> element_bits(DType dtype, std::string_view text) {
  if (dtype == boolean)
    return text == "true" || text == "false" ? std::optional<uint64_t>(text == "true")
                                             : std::nullopt;
  if (is_floating(dtype)) return float_bits(dtype, text);
  return with_type(compute_type(dtype), [&]<class T>(T) -> std::optional<uint64_t> {
    if constexpr (native::Int<T>)
      return integer_bits<T>(text);
    else
      return std::nullopt;
  });
}

}  // namespace nitinol
