// Named tensors in NumPy's .npz files: zip files of .npy files.
#pragma once

#include "core/tensor.h"
#include "io/safetensors.h"

#include <filesystem>
#include <source_location>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

struct NpzOptions {
  bool is_compressed = false;  ///< as np.savez_compressed does
};

/// Writes the tensors, of any dtype but bf16, to a file that np.load and load_npz read back exactly
/// and in this order. Names may have slashes. The file appears complete or not at all. Inside a
/// compiled function this ends the trace, like item().
/// Throws Error(io) if the file cannot be written, Error(value) for a name that is given twice, is
/// no UTF-8, has a NUL or is longer than 65,531 bytes, Error(unsupported) for bf16 (cast it to f32)
/// and in a library that was built without zip files (NITINOL_ZIP).
void save_npz(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
              const NpzOptions& options = {},
              std::source_location place = std::source_location::current());

/// Reads what np.savez and np.savez_compressed write: all arrays, in the order of the file.
///
/// The file is not trusted: whatever its bytes are, the result is tensors or an Error. Memory is
/// allocated for an array when its header and the list of members agree on its size, and at most
/// 1,032 times the file's size for all, which is how far deflate goes.
/// Throws Error(io) if the file cannot be read or is damaged, or has a member that is no array or
/// whose name comes twice or is no UTF-8; Error(unsupported) for what load_npy() does not read, for
/// members that are encrypted or compressed by something else than deflate, and in a library that
/// was built without zip files (NITINOL_ZIP).
[[nodiscard]] std::vector<NamedTensor> load_npz(
    const std::filesystem::path& path,
    std::source_location place = std::source_location::current());

}  // namespace nitinol

#pragma GCC visibility pop
