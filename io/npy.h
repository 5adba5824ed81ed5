// Tensors in NumPy's .npy files.
#pragma once

#include "core/tensor.h"

#include <filesystem>
#include <source_location>

#pragma GCC visibility push(default)

namespace nitinol {

/// Writes `tensor`, of any dtype but bf16, to a file that np.load and load_npy read back exactly.
///
/// The file appears complete or not at all: a temporary file beside it is written, synchronised and
/// renamed, so that an old file is kept if anything fails. Inside a compiled function this ends the
/// trace, like item().
/// Throws Error(io) if the file cannot be written, Error(unsupported) for bf16 (cast it to f32).
void save_npy(const std::filesystem::path& path, const Tensor& tensor,
              std::source_location place = std::source_location::current());

/// Reads a .npy file (format 1.0, 2.0 or 3.0) of bool, integers of 8 to 64 bits, f16, f32 or
/// f64 in either order of bytes. The result is contiguous, also if the file is in Fortran order.
///
/// The file is not trusted: whatever its bytes are, the result is a tensor or an Error. Nothing is
/// allocated before the file's size has been found to agree with its header.
/// Throws Error(io) if the file cannot be read or is damaged, Error(unsupported) for other element
/// types (complex numbers, objects, text) and more than max_rank dimensions.
[[nodiscard]] Tensor load_npy(const std::filesystem::path& path,
                              std::source_location place = std::source_location::current());

}  // namespace nitinol

#pragma GCC visibility pop
