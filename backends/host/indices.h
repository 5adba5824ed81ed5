// What routines that look rows up by index share.
#pragma once

#include "core/backend.h"
#include "core/library.h"

#include <cstdint>

namespace nitinol::host {

/// Sizes multiplied, from axis `first` to before axis `last`.
inline int64_t product(const Shape& shape, int first, int last) {
  int64_t count = 1;
  for (int i = first; i < last; ++i) count *= shape[i];
  return count;
}

/// Notes in the launch's status that `index` is none of `rows`, or throws Error(value) where nobody
/// reads a status.
void report_index(std::string_view where, int64_t index, int64_t rows, const Launch& launch);

}  // namespace nitinol::host
