// Three kinds of values: signed integers are int64_t, others and conditions uint64_t, cut to the
// bits of their type in the end, and f32 and f64 are double. A sum or product of two f32 that was
// rounded to f64 rounds to the same f32 as the exact one. Of functions there is one definition
// (core/math), which computes f32 in f64.

#include "backends/reference/joins.h"

#include "core/expr.h"
#include "core/math/hypot.h"
#include "core/num.h"

#include <bit>
#include <cmath>
#include <concepts>
#include <limits>

namespace nitinol::reference {
namespace {

template <class T>
struct Value {
  T value;
  int64_t position;
};

template <class T>
T value_of(ScalarType type, uint64_t bits) {
  if constexpr (std::same_as<T, double>) {
    if (type == ScalarType::f64) return std::bit_cast<double>(bits);
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  } else {
    const int unused = is_signed_integer(type) ? 64 - 8 * size_of(type) : 0;
    return static_cast<T>(bits << unused) >> unused;
  }
}

bool wants_largest(Combine combine) {
  return combine == Combine::maximum || combine == Combine::arg_maximum;
}

template <class T>
T extreme(Combine combine, T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  const bool is_less = a == b ? std::signbit(static_cast<double>(a)) : a < b;
  return is_less == wants_largest(combine) ? b : a;
}

double joined_value(Combine combine, double a, double b) {
  if (combine == Combine::add) return a + b;
  if (combine == Combine::log_add_exp) {
    const bool is_nothing = a == -std::numeric_limits<double>::infinity();
    return is_nothing ? b : logaddexp(Num<double>(a), Num<double>(b)).value;
  }
  return combine == Combine::multiply ? a * b : extreme(combine, a, b);
}

template <std::integral T>
T joined_value(Combine combine, T a, T b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);  // which wrap
  switch (combine) {
    case Combine::add:
      return static_cast<T>(x + y);
    case Combine::multiply:
      return static_cast<T>(x * y);
    case Combine::logical_or:
      return a | b;
    case Combine::logical_and:
      return a & b;
    default:
      return extreme(combine, a, b);
  }
}

/// Whether arg_* give b rather than a.
template <class T>
bool is_chosen(Combine combine, const Value<T>& b, const Value<T>& a) {
  const bool is_a_nan = a.value != a.value, is_b_nan = b.value != b.value;
  if (is_a_nan != is_b_nan) return is_b_nan;
  if (is_a_nan || a.value == b.value) return b.position < a.position;
  return (b.value > a.value) == wants_largest(combine);
}

template <class T>
Accumulated joined_as(const Reduction& reduction, const Accumulated& a, const Accumulated& b) {
  const Value<T> x = {value_of<T>(reduction.type, a.bits), a.position};
  const Value<T> y = {value_of<T>(reduction.type, b.bits), b.position};
  if (is_arg(reduction.combine)) return is_chosen(reduction.combine, y, x) ? b : a;
  return {bits_of(reduction.type, joined_value(reduction.combine, x.value, y.value)), 0};
}

/// The value that every other one beats.
uint64_t last_choice(const Reduction& reduction) {
  const bool is_lowest = wants_largest(reduction.combine);
  const ScalarType type = reduction.type;
  if (is_float(type)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return bits_of(type, is_lowest ? -infinity : infinity);
  }
  const int bits = type == ScalarType::pred ? 1 : 8 * size_of(type);
  const uint64_t all = ~uint64_t{0} >> (64 - bits);
  if (!is_signed_integer(type)) return is_lowest ? 0 : all;
  return is_lowest ? all ^ all >> 1 : all >> 1;
}

}  // namespace

Accumulated nothing_of(const Reduction& reduction) {
  const bool is_condition = reduction.type == ScalarType::pred;
  switch (reduction.combine) {
    case Combine::add:
    case Combine::multiply:
      if (is_condition) throw_meaningless(reduction);
      return {bits_of(reduction.type, reduction.combine == Combine::add ? -0.0 : 1.0)};
    case Combine::logical_or:
    case Combine::logical_and:
      if (!is_condition) throw_meaningless(reduction);
      return {reduction.combine == Combine::logical_and ? uint64_t{1} : 0};
    default:
      return {last_choice(reduction), no_position};
  }
}

Accumulated joined(const Reduction& reduction, const Accumulated& a, const Accumulated& b) {
  if (is_float(reduction.type)) return joined_as<double>(reduction, a, b);
  if (is_signed_integer(reduction.type)) return joined_as<int64_t>(reduction, a, b);
  return joined_as<uint64_t>(reduction, a, b);
}

}  // namespace nitinol::reference
