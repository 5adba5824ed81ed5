// Tensors in IDX files, the format of the MNIST digits.
#pragma once

#include "core/tensor.h"

#include <filesystem>
#include <source_location>

#pragma GCC visibility push(default)

namespace nitinol {

/// Reads an IDX file of u8, i8, i16, i32, f32 or f64 elements (Y. LeCun, C. Cortes, C. Burges, "The
/// MNIST database", which describes the format). The file is not trusted, as of load_npy().
/// Throws Error(io) if it cannot be read, is compressed or damaged, Error(unsupported) for more
/// than max_rank dimensions.
[[nodiscard]] Tensor load_idx(const std::filesystem::path& path,
                              std::source_location place = std::source_location::current());

}  // namespace nitinol

#pragma GCC visibility pop
