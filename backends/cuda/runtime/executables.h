// What a GPU runs: printed kernels, cuBLASLt's products, cuDNN's convolutions, routines of our own.
#pragma once

#include "core/executable.h"

#include <memory>
#include <span>
#include <vector>

namespace nitinol {
struct Kernel;
struct LibraryCall;
}  // namespace nitinol

namespace nitinol::cuda {

class Gpu;
struct Request;

/// An Executable whose code is compiled when it is known what will be launched.
class Compiled : public Executable {
 public:
  /// Adds what launches like these need and is not there yet.
  virtual void add_requests(std::span<const Launch> examples,
                            std::vector<Request>& requests) const = 0;
};

/// Compiled for what a launch needs when it comes, or when specialise() says what will come.
[[nodiscard]] std::unique_ptr<Executable> make_printed(Gpu& gpu, const Kernel& kernel);

/// LibraryCall::Kind::matmul of floating-point matrices by cuBLASLt: f32 with f32's precision, 16
/// bits accumulated in f32. Null for integers, what has no element, what cuBLASLt refuses, and
/// without it.
[[nodiscard]] std::unique_ptr<Executable> make_product(Gpu& gpu, const LibraryCall& call);

/// LibraryCall::Kind::conv2d and its gradients by cuDNN 9, without TF32, by algorithms that give
/// the same bits in each run. Null for integers, what has no element, what cuDNN refuses, and
/// without it.
[[nodiscard]] std::unique_ptr<Executable> make_convolution(Gpu& gpu, const LibraryCall& call);

/// Throws Error(unsupported) for what has no text of our own.
[[nodiscard]] std::unique_ptr<Executable> make_routine(Gpu& gpu, const LibraryCall& call);

}  // namespace nitinol::cuda
