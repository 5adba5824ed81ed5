// Tables of numbers in CSV files.
#pragma once

#include "core/tensor.h"

#include <filesystem>
#include <source_location>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

struct CsvOptions {
  char separator = ',';
  bool has_header = false;  ///< the first line holds names
  DType dtype = f32;        ///< f32, f64 or i64
};

/// What a CSV file holds.
struct CsvFile {
  Tensor values;                   ///< [lines, columns]
  std::vector<std::string> names;  ///< of the columns, if it has a header
};

/// Reads a table of numbers, which may stand in quotes and between blanks; what is missing is NaN,
/// and an Error where `dtype` has none. Empty lines at the end are left out. The file is not
/// trusted, as of load_npy(). Throws Error(io) if it cannot be read, with line and column for what
/// is no number, does not fit or is too much or too little for its line; Error(dtype) for other
/// dtypes, Error(value) for a separator that numbers may contain.
[[nodiscard]] CsvFile load_csv(const std::filesystem::path& path, const CsvOptions& options = {},
                               std::source_location place = std::source_location::current());

}  // namespace nitinol

#pragma GCC visibility pop
