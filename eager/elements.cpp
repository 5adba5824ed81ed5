#include "eager/elements.h"

#include "core/error.h"
#include "core/math.h"
#include "core/native.h"
#include "core/parallel.h"

#include <fmt/format.h>

#include <bit>
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
  return bits(static_cast<T>(number.to_integer()));
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
  return computed_here(static_cast<float>(computed_here(number.to_integer())));
}

/// What is rounded to 16 bits then.
Num<float> to_short_float(const Scalar& number) {
  if (number.kind() == Scalar::Kind::real)
    return to_odd_float(Num<double>(computed_here(number.to_double())));
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

/// The least and the largest number of an integer dtype.
struct IntegerRange {
  int64_t low, high;
};

template <class T>
constexpr IntegerRange range_of() {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

IntegerRange range_of(DType dtype) {
  switch (dtype) {
    case u8:
      return range_of<uint8_t>();
    case i8:
      return range_of<int8_t>();
    case i16:
      return range_of<int16_t>();
    case i32:
      return range_of<int32_t>();
    case i64:
    case boolean:
    case f16:
    case bf16:
    case f32:
    case f64:
      break;
  }
  return range_of<int64_t>();
}

}  // namespace

bool fits(DType dtype, const Scalar& number) {
  if (number.kind() != Scalar::Kind::integer) return true;
  const auto [low, high] = range_of(dtype);
  return number.to_integer() >= low && number.to_integer() <= high;
}

void throw_does_not_fit(DType dtype, int64_t number) {
  const auto [low, high] = range_of(dtype);
  throw Error(ErrorKind::value,
              {.where = std::string(name_of(dtype)),
               .what = fmt::format("{} does not hold the number that it meets", name_of(dtype)),
               .expected = fmt::format("an integer from {} to {}", low, high),
               .got = fmt::format("{}", number),
               .fix = "Cast the tensor to a wider dtype first, for example x.to(i64)."});
}

uint64_t element_of(DType dtype, const Scalar& number) {
  switch (dtype) {
    case boolean:
      return number.to_double() != 0 ? 1 : 0;
    case u8:
      return integer_bits<uint8_t>(number);
    case i8:
      return integer_bits<int8_t>(number);
    case i16:
      return integer_bits<int16_t>(number);
    case i32:
      return integer_bits<int32_t>(number);
    case i64:
      return integer_bits<int64_t>(number);
    case f16:
      return short_bits(number, [](auto x) { return float_to_half(x); });
    case bf16:
      return short_bits(number, [](auto x) { return float_to_bfloat(x); });
    case f32:
      return bits(to_float(number));
    case f64:
      return bits(number.to_double());
  }
  return 0;
}

Scalar number_at(DType dtype, const void* address) {
  switch (dtype) {
    case boolean:
      return load<uint8_t>(address) != 0;
    case u8:
      return load<uint8_t>(address);
    case i8:
      return load<int8_t>(address);
    case i16:
      return load<int16_t>(address);
    case i32:
      return load<int32_t>(address);
    case i64:
      return load<int64_t>(address);
    case f16:
      return half_to_float(Num<uint16_t>(load<uint16_t>(address))).value;
    case bf16:
      return bfloat_to_float(Num<uint16_t>(load<uint16_t>(address))).value;
    case f32:
      return load<float>(address);
    case f64:
      return load<double>(address);
  }
  return {};
}

}  // namespace nitinol
