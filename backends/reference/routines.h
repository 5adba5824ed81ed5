// Library calls as plain loops.
#pragma once

#include "core/backend.h"
#include "core/library.h"

#include <memory>

namespace nitinol::reference {

/// An Executable of plain loops over strided operands. Matmul sums the products in the order of k,
/// in f32 for f16 and bf16, else in the result's dtype. Throws Error(unsupported) for packed
/// products.
[[nodiscard]] std::unique_ptr<Executable> make_routine(const LibraryCall& call);

}  // namespace nitinol::reference
