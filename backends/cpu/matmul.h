// Matrix products on the cpu device.
#pragma once

#include "core/executable.h"
#include "core/library.h"

#include <memory>

namespace nitinol::cpu {

/// An Executable of LibraryCall::matmul: oneDNN for f32, bf16 and (computed in f32) f16, own loops
/// for the rest. Operands of any strides: those oneDNN cannot take are copied in each launch.
[[nodiscard]] std::unique_ptr<Executable> make_matmul(const LibraryCall& call);

}  // namespace nitinol::cpu
