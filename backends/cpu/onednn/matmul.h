// Matrix products on the cpu device.
#pragma once

#include "backends/cpu/onednn/onednn.h"
#include "core/executable.h"
#include "core/library.h"

#include <memory>
#include <optional>

namespace nitinol::cpu {

/// An Executable of LibraryCall::matmul: oneDNN for f32, bf16 and (computed in f32) f16, own loops
/// for the rest. Operands of any strides: those oneDNN cannot take are copied in each launch.
[[nodiscard]] std::unique_ptr<Executable> make_matmul(const LibraryCall& call);

/// The product as oneDNN gets it in a launch, if that is one product of two f32 matrices (perhaps
/// of a batch whose b repeats) which all pass as they lie.
[[nodiscard]] std::optional<MatmulDescription> as_one_product(const LibraryCall& call);

}  // namespace nitinol::cpu
