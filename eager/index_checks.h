// What ops that index by tensors check, and say.
#pragma once

#include "core/op.h"

#include <cstdint>
#include <string_view>

namespace nitinol {

/// Throws Error(dtype) unless the indices are integers.
void check_indices(std::string_view where, const Tensor& indices);
/// The indices, checked so, as int64, which is what ops get. Of uint64 an Error(value) for one that
/// int64 does not hold.
[[nodiscard]] Tensor as_indices(std::string_view where, const Tensor& indices);
/// Throws Error(dtype) unless they are int64.
void check_i64(const Op& op, const Spec& indices);
/// Throws Error(value) for an index of an axis of `rows`.
[[noreturn]] void throw_index(const Op& op, int64_t rows, int64_t index);
/// Throws Error(value) for the first index that is none of `rows`, if there is one.
void fail_index(const Op& op, const Tensor& indices, int64_t rows);

}  // namespace nitinol
