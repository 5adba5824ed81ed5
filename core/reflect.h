// Reflection over what compiled functions take and return: every leaf of nested containers and
// plain structs.
#pragma once

#include "core/fields.h"
#include "core/generator.h"
#include "core/host_value.h"
#include "core/integer.h"
#include "core/scalar_value.h"
#include "core/tensor.h"
#include "core/variable.h"

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

namespace reflection {

template <class T>
inline constexpr bool is_host_value = false;
template <class T>
inline constexpr bool is_host_value<HostValue<T>> = true;

template <class T>
inline constexpr bool is_sequence = false;
template <class T, class A>
inline constexpr bool is_sequence<std::vector<T, A>> = true;
template <class T, std::size_t N>
inline constexpr bool is_sequence<std::array<T, N>> = true;
template <>
inline constexpr bool is_sequence<Dims> = true;
template <>
inline constexpr bool is_sequence<Pair> = true;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

template <class T>
concept Text = std::same_as<T, std::string> || std::same_as<T, std::string_view>;

template <class>
inline constexpr bool never = false;

template <class Leaf, class T>
constexpr bool contains();

template <class Leaf, class T, std::size_t... I>
constexpr bool has_field(std::index_sequence<I...>) {
  return (contains<Leaf, FieldType<I, T>>() || ... || false);
}

template <class Leaf, class T, std::size_t... I>
constexpr bool has_element(std::index_sequence<I...>) {
  return (contains<Leaf, std::remove_cvref_t<std::tuple_element_t<I, T>>>() || ... || false);
}

/// Whether values of type T (no reference, no const) can contain a leaf of type Leaf.
template <class Leaf, class T>
constexpr bool contains() {
  if constexpr (std::same_as<T, Leaf> || std::same_as<T, Tensor> || std::same_as<T, Variable> ||
                std::same_as<T, Generator> || std::same_as<T, Scalar> || is_host_value<T> ||
                Text<T> || std::is_scalar_v<T> || std::same_as<T, Integer>) {
    return std::same_as<T, Leaf>;
  } else if constexpr (is_sequence<T>) {
    return contains<Leaf, std::remove_cvref_t<decltype(*std::declval<T&>().begin())>>();
  } else if constexpr (is_optional<T>) {
    return contains<Leaf, typename T::value_type>();
  } else if constexpr (is_tuple<T>) {
    return has_element<Leaf, T>(std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (std::is_aggregate_v<T>) {
    return has_field<Leaf, T>(std::make_index_sequence<field_count<T>>());
  } else {
    return false;
  }
}

}  // namespace reflection

namespace reflection {

/// A visitor that is told values as they are, and where they stand.
template <class Visitor>
concept WantsPlaces = requires(Visitor visitor) {
  visitor.leave();
};

template <class T, class Visitor>
void visit_fixed(const T& value, uint64_t bits, Visitor& visitor) {
  if constexpr (WantsPlaces<Visitor>)
    visitor.value(value);
  else
    visitor.fixed(bits);
}

template <class Visitor>
void visit_length(std::size_t length, Visitor& visitor) {
  if constexpr (WantsPlaces<Visitor>)
    visitor.length(length);
  else
    visitor.fixed(length);
}

/// visit() of a part of something.
template <class Visitor, class Visit>
void visit_part(const char* kind, std::size_t position, Visitor& visitor, Visit visit) {
  if constexpr (WantsPlaces<Visitor>) visitor.enter(kind, position);
  visit();
  if constexpr (WantsPlaces<Visitor>) visitor.leave();
}

}  // namespace reflection

/// Calls visitor.tensor(t), .variable(v), .scalar(s) or .fixed(bits) for every leaf of `value`,
/// depth first, in the order of declaration. Lengths of vectors and whether optionals hold
/// something are fixed leaves, and so are HostValues. A visitor with leave() gets .value(x) and
/// .length(n) instead of fixed(), with .enter("field", i) and .leave() around parts.
template <class T, class Visitor>
void visit_leaves(T& value, Visitor& visitor) {
  using Plain = std::remove_cv_t<T>;
  if constexpr (std::same_as<Plain, Tensor>) {
    visitor.tensor(value);
  } else if constexpr (std::same_as<Plain, Variable>) {
    visitor.variable(value);
  } else if constexpr (std::same_as<Plain, Generator>) {
    visitor.variable(value.state());
  } else if constexpr (std::same_as<Plain, Scalar>) {
    visitor.scalar(value);
  } else if constexpr (reflection::is_host_value<Plain>) {
    visitor.fixed(value.bits());
  } else if constexpr (std::is_empty_v<Plain>) {
    return;  // std::monostate, a lambda without captures
  } else if constexpr (std::is_floating_point_v<Plain>) {
    reflection::visit_fixed(value, std::bit_cast<uint64_t>(static_cast<double>(value)), visitor);
  } else if constexpr (std::is_integral_v<Plain> || std::is_enum_v<Plain>) {
    reflection::visit_fixed(value, static_cast<uint64_t>(value), visitor);
  } else if constexpr (std::same_as<Plain, Integer>) {
    const int64_t number = value;
    reflection::visit_fixed(number, static_cast<uint64_t>(number), visitor);
  } else if constexpr (reflection::Text<Plain>) {
    if constexpr (reflection::WantsPlaces<Visitor>) return visitor.value(value);
    visitor.fixed(value.size());
    for (const char c : value) visitor.fixed(static_cast<uint64_t>(static_cast<unsigned char>(c)));
  } else if constexpr (reflection::is_sequence<Plain>) {
    reflection::visit_length(static_cast<std::size_t>(value.size()), visitor);
    std::size_t position = 0;
    for (auto&& element : value) {
      reflection::visit_part("element", position++, visitor,
                             [&] { visit_leaves(element, visitor); });
    }
  } else if constexpr (reflection::is_optional<Plain>) {
    reflection::visit_length(value.has_value() ? 1 : 0, visitor);
    if (value.has_value()) visit_leaves(*value, visitor);
  } else if constexpr (reflection::is_tuple<Plain>) {
    std::size_t position = 0;
    const auto visit = [&](auto& element) {
      reflection::visit_part("element", position++, visitor,
                             [&] { visit_leaves(element, visitor); });
    };
    std::apply([&](auto&... element) { (visit(element), ...); }, value);
  } else if constexpr (std::is_pointer_v<Plain> &&
                       std::is_function_v<std::remove_pointer_t<Plain>>) {
    visitor.fixed(static_cast<uint64_t>(reinterpret_cast<std::uintptr_t>(value)));
  } else if constexpr (std::is_pointer_v<Plain> || std::is_null_pointer_v<Plain>) {
    static_assert(reflection::never<T>,
                  "compile(): pointers cannot be arguments or results of a compiled function: what "
                  "they point to could "
                  "change unseen. Pass a Tensor, a Variable or a struct of them.");
  } else if constexpr (std::is_aggregate_v<Plain>) {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (reflection::visit_part("field", i, visitor,
                              [&] { visit_leaves(reflection::field<i>(value), visitor); }),
       ...);
    }
    (std::make_index_sequence<reflection::field_count<Plain>>());
  } else {
    static_assert(
        reflection::never<T>,
        "compile(): arguments and results may be Tensor, Scalar, Variable, Generator, numbers, "
        "enums, strings, "
        "std::vector/array/optional/pair/tuple of them, and plain structs (aggregates) of them.");
  }
}

}  // namespace nitinol

#pragma GCC visibility pop
