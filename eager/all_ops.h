// The vocabulary: every op, in one list.
#pragma once

#include "core/op.h"

#include <cstdint>
#include <span>
#include <string_view>

#pragma GCC visibility push(default)

namespace nitinol {

/// All ops, family by family. Bindings, documentation and the generic tests loop over it.
[[nodiscard]] std::span<const Op* const> all_ops();
/// The op of that name, or null.
[[nodiscard]] const Op* find_op(std::string_view name);

/// What interpreters, passes and derivatives apply or put into graphs themselves.
namespace ops {
[[nodiscard]] const Op& add();
[[nodiscard]] const Op& cast();
[[nodiscard]] const Op& check_fits();
/// Its attribute is a Checker.
[[nodiscard]] const Op& check_nonzero();
/// For whom it checks, which its error speaks of.
enum class Checker : int64_t { check_nonzero, floor_divide, remainder, fmod, pow, mask, others };
/// What its Error says of others: literals. Where a check is found later, in a compiled call on a
/// device, no more is known.
struct CheckText {
  const char *where, *what, *expected, *fix;
  friend bool operator==(const CheckText&, const CheckText&) = default;
};
/// The Checker of a text: one for the same literals. There are as many as places that check.
[[nodiscard]] int64_t checker_of(const CheckText& text);
[[nodiscard]] const Op& concat();
[[nodiscard]] const Op& copy();
[[nodiscard]] const Op& expand();
[[nodiscard]] const Op& permute();
[[nodiscard]] const Op& reshape();
[[nodiscard]] const Op& slice();
}  // namespace ops

}  // namespace nitinol

#pragma GCC visibility pop
