// Reading an array in the .npy format from wherever its bytes come: a file, or a part of one.
#pragma once

#include "core/function_ref.h"
#include "core/tensor.h"
#include "io/npy_header.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace nitinol::io {

/// The bytes of a .npy file, one after the other.
struct NpyStream {
  const NpyName& name;
  int64_t size;  ///< of all of them
  /// Stores the next ones; throws if there are not as many.
  FunctionRef<void(std::span<std::byte>)> read;
};

/// Reads all of it. Memory is allocated when the size is that which the header asks for. Throws
/// what load_npy() does.
[[nodiscard]] Tensor read_npy(const NpyStream& stream);

}  // namespace nitinol::io
