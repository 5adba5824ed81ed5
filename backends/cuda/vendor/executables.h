// What a GPU runs by NVIDIA's libraries: cuBLASLt's products, cuDNN's convolutions, NCCL's
// messages.
#pragma once

#include "core/executable.h"

#include <memory>

namespace nitinol {
struct LibraryCall;
}  // namespace nitinol

namespace nitinol::cuda {

class Gpu;

/// LibraryCall::Kind::matmul of floating-point matrices by cuBLASLt: f32 with f32's precision, 16
/// bits accumulated in f32. Null for integers, what has no element, what cuBLASLt refuses, and
/// without it.
[[nodiscard]] std::unique_ptr<Executable> make_product(Gpu& gpu, const LibraryCall& call);

/// LibraryCall::Kind::conv2d and its gradients by cuDNN 9, without TF32, by algorithms that give
/// the same bits in each run. Null for integers, what has no element, what cuDNN refuses, and
/// without it.
[[nodiscard]] std::unique_ptr<Executable> make_convolution(Gpu& gpu, const LibraryCall& call);

/// LibraryCall::Kind::collective by NCCL, or by way of the host's memory where a rank has none, or
/// shares its GPU with another.
[[nodiscard]] std::unique_ptr<Executable> make_collective(Gpu& gpu, const LibraryCall& call);

}  // namespace nitinol::cuda
