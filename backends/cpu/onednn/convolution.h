// Convolutions on the cpu device.
#pragma once

#include "core/executable.h"
#include "core/library.h"

#include <cstddef>
#include <memory>

namespace nitinol::cpu {

/// An Executable of LibraryCall::conv2d, conv2d_input or conv2d_weight: oneDNN for f32 and
/// (computed in f32) bf16 and f16, own loops for the rest. Operands of any strides: those that are
/// not row-major are copied in each launch, so that no bit depends on them.
[[nodiscard]] std::unique_ptr<Executable> make_convolution(const LibraryCall& call);

/// Backend::packed_bytes() of a conv2d on the cpu. The same code runs then, whose weight has been
/// put in order before: no bit changes.
[[nodiscard]] std::size_t packed_filter_bytes(const LibraryCall& call, std::size_t uses);
/// Executables of LibraryCall::pack_filter and packed_conv2d, where packed_filter_bytes() has not
/// said 0. Throw Error(unsupported) for what oneDNN has no layout of its own.
[[nodiscard]] std::unique_ptr<Executable> make_filter_packing(const LibraryCall& call);
[[nodiscard]] std::unique_ptr<Executable> make_packed_convolution(const LibraryCall& call);

/// Whether this conv2d in f32, whose result has fewer rows or columns than its windows give, has
/// the bits of the whole one there. False for others.
[[nodiscard]] bool gives_bits_of_whole(const LibraryCall& part);

}  // namespace nitinol::cpu
