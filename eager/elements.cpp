#include "eager/elements.h"

#include "core/error.h"
#include "core/math.h"
#include "core/native.h"
#include "core/parallel.h"

#include <fmt/format.h>

#include <bit>
#include <concepts>
#include <cstring>
#include <limits>
#include <utility>

namespace nitinol {
namespace {

template <class T>
uint64_t bits(T value) {
  uint64_t result = 0;
  std::memcpy(&result, &value, sizeof(T));
  return result;
}

template <class T>
uint64_t integer_bits(const Scalar& number) {
  if (number.kind() == Scalar::Kind::real) return bits(native::convert<T>(number.to_double()));
  return bits(static_cast<T>(
      number.is_beyond_int64() ? number.bits() : static_cast<uint64_t>(number.to_integer())));
}

float to_float(const Scalar& number) {
  if (number.kind() == Scalar::Kind::real) {
    const double real = number.to_double();
    const auto nearest = static_cast<float>(real);
    if (nearest == real) return nearest;  // in any mode
  }
  const DefaultFloatMode mode;
  // An integer goes to f32 in one rounding.
  if (number.kind() == Scalar::Kind::real)
    return computed_here(static_cast<float>(computed_here(number.to_double())));
  if (number.is_beyond_int64()) return static_cast<float>(computed_here(number.bits()));
  return computed_here(static_cast<float>(computed_here(number.to_integer())));
}

/// What is rounded to 16 bits then.
Num<float> to_short_float(const Scalar& number) {
  if (number.kind() == Scalar::Kind::real)
    return to_odd_float(Num<double>(computed_here(number.to_double())));
  if (number.is_beyond_int64()) return to_odd_float(Num<uint64_t>(computed_here(number.bits())));
  return to_odd_float(Num<int64_t>(computed_here(number.to_integer())));
}

/// The bits that `round` makes of it.
template <class Round>
uint16_t short_bits(const Scalar& number, Round round) {
  const DefaultFloatMode mode;
  return computed_here(round(to_short_float(number)).value);
}

template <class T>
T load(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

/// Calls f with a value of the C++ type that elements of an integer dtype have.
template <class F>
auto with_integer_type(DType dtype, F f) {
  return with_type(compute_type(dtype), [&]<class T>(T zero) {
    if constexpr (native::Int<T>)
      return f(zero);
    else
      return f(int64_t{});
  });
}

}  // namespace

bool fits(DType dtype, const Scalar& number) {
  if (number.kind() != Scalar::Kind::integer || !is_integer(dtype)) return true;
  return with_integer_type(dtype, [&]<class T>(T) {
    return number.is_beyond_int64() ? std::same_as<T, uint64_t>
                                    : std::in_range<T>(number.to_integer());
  });
}

namespace {

std::string fix_of(DType dtype, Misfit misfit) {
  const bool is_narrow = size_of(dtype) < 8;
  if (misfit == Misfit::element)
    return fmt::format("Ask for a dtype that does, for example {}.",
                       name_of(is_narrow ? i64 : f64));
  return is_narrow ? "Cast the tensor to a wider dtype first, for example x.to(i64)."
                   : "Cast the tensor to one that does, for example x.to(f64).";
}

}  // namespace

void throw_does_not_fit(std::string_view where, DType dtype, const Scalar& number, Misfit misfit) {
  throw Error(ErrorKind::value,
              {.where = std::string(where),
               .what = fmt::format("{} does not hold the number that it meets", name_of(dtype)),
               .expected = with_integer_type(dtype,
                                             []<class T>(T) {
                                               using Limits = std::numeric_limits<T>;
                                               return fmt::format("an integer from {} to {}",
                                                                  Limits::min(), Limits::max());
                                             }),
               .got = number.is_beyond_int64() ? fmt::format("{}", number.bits())
                                               : fmt::format("{}", number.to_integer()),
               .fix = fix_of(dtype, misfit)});
}

uint64_t element_of(DType dtype, const Scalar& number) {
  if (dtype == f16) return short_bits(number, [](auto x) { return float_to_half(x); });
  if (dtype == bf16) return short_bits(number, [](auto x) { return float_to_bfloat(x); });
  return with_type(compute_type(dtype), [&]<class T>(T) -> uint64_t {
    if constexpr (std::same_as<T, bool>)
      return number.to_double() != 0 ? 1 : 0;
    else if constexpr (std::same_as<T, float>)
      return bits(to_float(number));
    else if constexpr (std::same_as<T, double>)
      return bits(number.to_double());
    else
      return integer_bits<T>(number);
  });
}

Scalar number_at(DType dtype, const void* address) {
  if (dtype == f16) return half_to_float(Num<uint16_t>(load<uint16_t>(address))).value;
  if (dtype == bf16) return bfloat_to_float(Num<uint16_t>(load<uint16_t>(address))).value;
  return with_type(compute_type(dtype), [&]<class T>(T) -> Scalar {
    if constexpr (std::same_as<T, bool>)
      return load<uint8_t>(address) != 0;
    else
      return load<T>(address);
  });
}

}  // namespace nitinol
