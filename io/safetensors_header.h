// Reading the headers of safetensors files: JSON that names the tensors and says where they lie.
#pragma once

#include "core/tensor.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::io {

/// Bytes first to last of the elements belong to this tensor.
struct SafetensorsEntry {
  std::string name;
  Spec spec;
  uint64_t first = 0, last = 0;
};

struct SafetensorsHeader {
  /// In the order of their elements, which follow one another without gaps.
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// Parses a header; `data_bytes` come after it, `file` is the name for messages. The text is not
/// trusted: time and memory are in proportion to its length, whatever it says. Throws Error(io) if
/// it is damaged, Error(unsupported) for dtypes and ranks that tensors do not have.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                                         const std::string& file);

/// Throws the Error(io) that says what is wrong with a file.
[[noreturn]] void fail_safetensors(const std::string& file, std::string what, std::string expected,
                                   std::string got);

/// What the format calls a dtype: "F32".
[[nodiscard]] std::string safetensors_name(DType dtype);

}  // namespace nitinol::io
