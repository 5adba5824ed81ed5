// Copying small pieces of memory that lie apart: rows of a few elements, columns of few rows.
#pragma once

#include <cstdint>

namespace nitinol::host {

/// Copies `count` pieces, which begin so many bytes apart.
using CopyApart = void (*)(const char* from, int64_t from_step, char* to, int64_t to_step,
                           int64_t count);

inline constexpr int64_t longest_piece = 128;

/// The code for pieces of `size` bytes, of 1 to longest_piece: each is a few instructions.
[[nodiscard]] CopyApart copy_apart_of(int64_t size);

/// Writes each of `rows` values of `size` bytes (1, 2, 4, 8), which follow each other, `columns`
/// times.
void spread(const char* values, int64_t size, int64_t rows, int64_t columns, char* to);

}  // namespace nitinol::host
