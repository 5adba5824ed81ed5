// Named tensors in safetensors files, the format that Hugging Face's models come in
// (github.com/huggingface/safetensors, format 1): a JSON header, then the elements.
#pragma once

#include "core/tensor.h"

#include <filesystem>
#include <map>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// A tensor and its name in a file.
using NamedTensor = std::pair<std::string, Tensor>;

/// What a safetensors file holds, in the order of the elements in the file.
struct SafetensorsFile {
  std::vector<NamedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Writes the tensors, of any dtype, so that the file appears complete or not at all. Inside a
/// compiled function this ends the trace, like item(). Throws Error(io) if the file cannot be
/// written, Error(value) for a name that is given twice.
void save_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                      const std::map<std::string, std::string>& metadata = {},
                      std::source_location place = std::source_location::current());

/// Reads a file. It is not trusted: whatever its bytes are, the result is tensors or an Error, and
/// nothing larger than the file is allocated. Throws Error(io) if it cannot be read or is damaged
/// (header too large, no JSON, sizes that disagree, elements that overlap, are missing or left
/// over), Error(unsupported) for dtypes that there is no DType for.
[[nodiscard]] SafetensorsFile load_safetensors(
    const std::filesystem::path& path,
    std::source_location place = std::source_location::current());

}  // namespace nitinol

#pragma GCC visibility pop
