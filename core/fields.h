// Fields of plain structs: their number, their types, and references to them.
//
// Boost.PFR has the table of structured bindings; counting is our own, because g++ 12 fails with an
// internal error on PFR's `sizeof(T{})` where a field is an array of objects such as
// std::array<Tensor, 2> (docs/decisions/0002-boost-pfr.md).
#pragma once

#include <boost/pfr/core.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace nitinol::reflection {

namespace pfr = boost::pfr::detail;

/// Of a struct, at most: as many as PFR's table has.
inline constexpr std::size_t most_fields = 100;

/// Whether braces around n values of any type initialise a T.
template <class T, std::size_t n>
concept TakesFields = requires {
  typename pfr::enable_if_constructible_helper_t<T, n>;
};
/// Whether fields that get no value may be left out.
template <class T>
concept HasDefaults = requires(void (*take)(T)) {
  take({});
};

/// The largest n that T takes, which takes `least` but not `beyond`.
template <class T, std::size_t least, std::size_t beyond>
consteval std::size_t count_between() {
  constexpr std::size_t middle = least + (beyond - least) / 2;
  if constexpr (middle == least)
    return least;
  else if constexpr (TakesFields<T, middle>)
    return count_between<T, middle, beyond>();
  else
    return count_between<T, least, middle>();
}

template <class T, std::size_t least>
consteval std::size_t count_from() {
  if constexpr (TakesFields<T, 2 * least>)
    return count_from<T, 2 * least>();
  else
    return count_between<T, least, 2 * least>();
}

/// The smallest n that T takes, which is the place of its last field without a default; 0 if there
/// is none. PFR tries all n down from eight a byte, which takes compilers half a minute.
template <class T, std::size_t n = 1>
consteval std::size_t fewest_taken() {
  if constexpr (TakesFields<T, n>)
    return n;
  else if constexpr (n < most_fields)
    return fewest_taken<T, n + 1>();
  else
    return 0;
}

/// Number of fields of the aggregate T.
template <class T>
consteval std::size_t count_fields() {
  if constexpr (std::is_empty_v<T>) {
    return 0;
  } else if constexpr (HasDefaults<T>) {
    return count_from<T, 1>();
  } else {
    constexpr std::size_t fewest = fewest_taken<T>();
    static_assert(fewest != 0,
                  "The fields of this struct cannot be counted. Give those defaults "
                  "that have none, and let none be a C array or a reference.");
    return count_from < T, fewest == 0 ? 1 : fewest > ();
  }
}
template <class T>
inline constexpr std::size_t field_count = [] {
  constexpr std::size_t count = count_fields<std::remove_cv_t<T>>();
  static_assert(
      count <= most_fields,
      "A struct of tensors and modules has 100 fields at most: make some of them a struct.");
  return count;
}();

/// References to the fields of `value`, in the order of declaration.
template <class T>
constexpr auto tie_fields(T& value) {
  return pfr::tie_as_tuple(value, pfr::size_t_<field_count<T>>{});
}
/// Field number `i`.
template <std::size_t i, class T>
constexpr auto& field(T& value) {
  return pfr::sequence_tuple::get<i>(tie_fields(value));
}
/// Its type.
template <std::size_t i, class T>
using FieldType = std::remove_cvref_t<decltype(field<i>(std::declval<T&>()))>;

}  // namespace nitinol::reflection

#pragma GCC visibility pop
