// The text of sorting: what sort, argsort and masks are made of, and scatter_add, too.
#pragma once

#include "core/library.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nitinol::cuda {

struct RoutineText;

/// A stable radix sort of n[0] keys of 64 bits in the workspace, with their places: functions of
/// the texts that use it.
[[nodiscard]] std::string_view radix_words();
/// Adds the functions that order half `half` of the keys by the 8 bits from `shift` on, into the
/// other half.
void add_radix_pass(RoutineText& made, int half, int shift);
/// Bytes of the workspace for `count` keys.
[[nodiscard]] std::size_t radix_bytes(int64_t count);

/// Adds the text of sort, argsort, search, compress or positions to one that has the words of
/// routine_text.cpp.
void write_order(const LibraryCall& call, RoutineText& made);

}  // namespace nitinol::cuda
