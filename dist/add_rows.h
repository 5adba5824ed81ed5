// What a sum over ranks adds.
#pragma once

#include "core/dtype.h"
#include "core/reduction.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace nitinol::dist {

/// Of others, and of more rows, the canonical sum is not formed one after the other in the dtype.
inline constexpr DTypes added_dtypes = {f32, f64};
inline constexpr int64_t most_added = reduction_order::ordered_block;

/// Adds 2 to most_added rows of `bytes`, one after the other as a sum over their axis does, and
/// divides what comes of it by their number if `is_mean`.
void add_rows(DType dtype, std::span<const std::byte* const> rows, std::size_t bytes, bool is_mean,
              std::byte* to);

}  // namespace nitinol::dist
