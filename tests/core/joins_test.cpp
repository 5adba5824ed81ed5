// The formulas of core/joins.h on numbers, on vectors and as instructions, against the reference
// device's own definition, for every pair of values that may surprise.
#include "core/joins.h"

#include "backends/host/accumulate.h"
#include "backends/host/combine.h"
#include "backends/reference/joins.h"
#include "core/evaluate.h"
#include "core/isa.h"
#include "core/join_logarithms.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace nitinol;
using reference::Accumulated;

namespace {

constexpr ScalarType types[] = {ScalarType::pred, ScalarType::u8,  ScalarType::i8,  ScalarType::u16,
                                ScalarType::i16,  ScalarType::u32, ScalarType::i32, ScalarType::u64,
                                ScalarType::i64,  ScalarType::f32, ScalarType::f64};
constexpr Combine combines[] = {Combine::add,         Combine::multiply,   Combine::maximum,
                                Combine::minimum,     Combine::logical_or, Combine::logical_and,
                                Combine::arg_maximum, Combine::arg_minimum};

template <class T>
std::vector<uint64_t> surprises() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {T{0}, T{1}, Limits::min(), Limits::max()};
  if constexpr (std::is_floating_point_v<T>) {
    const T more[] = {T(-0.0),
                      T(-1),
                      T(1.5),
                      Limits::infinity(),
                      -Limits::infinity(),
                      Limits::quiet_NaN(),
                      Limits::denorm_min()};
    values.insert(values.end(), std::begin(more), std::end(more));
  } else if constexpr (!std::is_same_v<T, bool>) {
    values.insert(values.end(), {T(-1), T(100), T(-100)});
  }
  std::vector<uint64_t> bits;
  for (const T value : values) bits.push_back(std::bit_cast<native::Bits<T>>(value));
  return bits;
}

bool same_value(ScalarType type, uint64_t a, uint64_t b) {
  const auto is_nan = [type](uint64_t bits) {
    if (type == ScalarType::f32) return std::isnan(std::bit_cast<float>(uint32_t(bits)));
    return type == ScalarType::f64 && std::isnan(std::bit_cast<double>(bits));
  };
  return a == b || (is_nan(a) && is_nan(b));
}

bool same(const Reduction& reduction, const Accumulated& a, const Accumulated& b) {
  return same_value(reduction.type, a.bits, b.bits) && a.position == b.position;
}

Accumulated by_instructions(const Reduction& reduction, const Accumulated& a,
                            const Accumulated& b) {
  ScalarProgram program;
  const auto placed = [&](uint32_t k) {
    const Expr value = argument(program, reduction.type, k);
    return Placed<Expr, Expr>{value, argument(program, ScalarType::i64, k + 1)};
  };
  const auto x = placed(0), y = placed(2);
  const auto result = with_combine(reduction.combine, [&](auto c) -> Placed<Expr, Expr> {
    if constexpr (is_arg(c.value))
      return join<c.value>(x, y);
    else
      return {join<c.value>(x.value, y.value), x.position};
  });
  const std::vector<uint64_t> arguments = {a.bits, static_cast<uint64_t>(a.position), b.bits,
                                           static_cast<uint64_t>(b.position)};
  const auto values =
      evaluate(program, arguments, std::vector{result.value.id, result.position.id});
  return {values[0], is_arg(reduction.combine) ? static_cast<int64_t>(values[1]) : 0};
}

Accumulated by_numbers(const Reduction& reduction, Accumulated a, const Accumulated& b) {
  host::combiner_of(reduction).join(&a.bits, &a.position, &b.bits, &b.position, 1);
  if (!is_arg(reduction.combine)) a.position = 0;
  return a;
}

/// 64 columns, which are whole vectors of every width. For all but arg_*, which have no vectors.
std::vector<uint64_t> by_vectors(const Reduction& reduction, uint64_t a, uint64_t b, Isa isa) {
  constexpr int64_t columns = 64;
  const auto bytes = static_cast<std::size_t>(size_of(reduction.type));
  std::vector<char> sums(columns * bytes), row(columns * bytes);
  for (std::size_t j = 0; j < columns; ++j) {
    std::memcpy(&sums[j * bytes], &a, bytes);
    std::memcpy(&row[j * bytes], &b, bytes);
  }
  host::accumulate_of(reduction, isa).rows({row.data(), 0, 1, columns, 0}, sums.data(), nullptr);
  std::vector<uint64_t> results(columns);
  for (std::size_t j = 0; j < columns; ++j) std::memcpy(&results[j], &sums[j * bytes], bytes);
  return results;
}

void check_pair(const Reduction& reduction, const Accumulated& a, const Accumulated& b) {
  CAPTURE(name_of(reduction.combine), name_of(reduction.type), a.bits, a.position, b.bits,
          b.position);
  const Accumulated expected = reference::joined(reduction, a, b);
  CHECK(same(reduction, by_instructions(reduction, a, b), expected));
  CHECK(same(reduction, by_numbers(reduction, a, b), expected));
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (isa > host_isa() || is_arg(reduction.combine)) continue;
    for (const uint64_t result : by_vectors(reduction, a.bits, b.bits, isa))
      CHECK(same_value(reduction.type, result, expected.bits));
  }
}

template <class T>
void check(const Reduction& reduction) {
  const std::vector<uint64_t> values = surprises<T>();
  const bool has_position = is_arg(reduction.combine);
  for (const uint64_t a : values) {
    CHECK(neutral_bits(reduction) == reference::nothing_of(reduction).bits);
    const Accumulated nothing = reference::nothing_of(reduction);
    check_pair(reduction, nothing, {a, has_position ? 5 : 0});
    CHECK(same(reduction, reference::joined(reduction, nothing, {a, has_position ? 5 : 0}),
               {a, has_position ? 5 : 0}));
    for (const uint64_t b : values) {
      check_pair(reduction, {a, has_position ? 3 : 0}, {b, has_position ? 7 : 0});
      if (has_position) check_pair(reduction, {a, 7}, {b, 3});
    }
  }
}

bool means_something(const Reduction& reduction) {
  const bool is_logical =
      reduction.combine == Combine::logical_or || reduction.combine == Combine::logical_and;
  const bool is_sum = reduction.combine == Combine::add || reduction.combine == Combine::multiply;
  return reduction.type == ScalarType::pred ? !is_sum : !is_logical;
}

}  // namespace

TEST_CASE("values join alike as numbers, as vectors and by instructions", "[core][joins]") {
  for (const ScalarType type : types) {
    for (const Combine combine : combines) {
      const Reduction reduction = {combine, type};
      if (!means_something(reduction)) continue;
      with_reduction(reduction, [&]<class T>(auto, std::type_identity<T>) { check<T>(reduction); });
    }
  }
}

TEST_CASE("what cannot be joined is an internal error that says so", "[core][joins]") {
  for (const Reduction reduction : {Reduction{Combine::logical_or, ScalarType::f32},
                                    Reduction{Combine::add, ScalarType::pred}}) {
    const std::string message = "no values of type " + std::string(name_of(reduction.type)) +
                                " are joined by " + std::string(name_of(reduction.combine));
    CHECK_THROWS_WITH(neutral_bits(reduction), Catch::Contains(message));
    CHECK_THROWS_WITH(host::combiner_of(reduction), Catch::Contains(message));
    CHECK_THROWS_WITH(host::accumulate_of(reduction, Isa::baseline), Catch::Contains(message));
    CHECK_THROWS_WITH(reference::nothing_of(reduction), Catch::Contains(message));
  }
}
