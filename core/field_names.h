// Names of a struct's fields. Boost.PFR learned them in Boost 1.84, later than Debian 12's
// (docs/decisions/0002-boost-pfr.md).
#pragma once

#include "core/fields.h"

#include <cstddef>
#include <string_view>
#include <utility>

#pragma GCC visibility push(default)

namespace nitinol::reflection {

/// Never defined: only the addresses of its fields are named.
template <class T>
struct FieldHolder {
  const T value;
};
template <class T>
extern const FieldHolder<T> field_holder;

/// The compiler spells a field's address as `&...::name)`; the text after the last colon is wanted.
template <const auto* address>
consteval std::string_view name_at() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find_first_of("];", text.find("address = ")));
  while (!text.empty() && (text.back() == ')' || text.back() == ' ')) text.remove_suffix(1);
  return text.substr(text.find_last_of(":.>") + 1);
}

/// The name of field number `i` of the aggregate T, as it is written in the source.
template <class T, std::size_t i>
consteval std::string_view field_name() {
  return name_at<&field<i>(field_holder<T>.value)>();
}

/// f(name, field) for each field of an aggregate, in the order of declaration.
template <class T, class F>
void for_each_named_field(T& value, F f) {
  using Plain = std::remove_cv_t<T>;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (f(field_name<Plain, i>(), field<i>(value)), ...);
  }
  (std::make_index_sequence<field_count<Plain>>());
}

}  // namespace nitinol::reflection

#pragma GCC visibility pop
