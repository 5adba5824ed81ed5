// Family: the table of a file's ops.
#pragma once

#include "core/op.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace nitinol {

// No functions: a compiler that would have to call one while it evaluates a table reports its name.
[[noreturn]] void the_family_has_no_op_of_this_name();
[[noreturn]] void the_family_has_two_ops_of_this_name();

/// The ops of one file; all_ops() lists them. Functions name an op by its family,
/// `views["reshape"]`, which the compiler looks up and which does not compile if it is not there:
/// what can be applied is also documented and tested.
template <std::size_t n>
struct Family {
  std::array<Op, n> ops;

  consteval const Op& operator[](std::string_view name) const {
    const auto found = std::ranges::find(ops, name, &Op::name);
    if (found == ops.end()) the_family_has_no_op_of_this_name();
    if (std::ranges::count(ops, name, &Op::name) > 1) the_family_has_two_ops_of_this_name();
    return *found;
  }
};

/// `constexpr auto views = family({...});`. Not a constructor: what has one lies in writable memory
/// (g++ 12).
template <std::size_t n>
consteval Family<n> family(const Op (&ops)[n]) {
  return {std::to_array(ops)};
}

/// The same; autocast computes those that the array `in_full` names in full precision.
template <const auto& in_full, std::size_t n>
consteval Family<n> family(const Op (&ops)[n]) {
  Family<n> family = {std::to_array(ops)};
  for (const std::string_view name : in_full) {
    const auto index = &std::as_const(family)[name] - family.ops.data();
    family.ops[static_cast<std::size_t>(index)].precision = Precision::full;
  }
  return family;
}

}  // namespace nitinol
