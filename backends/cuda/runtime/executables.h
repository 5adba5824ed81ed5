// What a GPU runs by texts of our own: printed kernels and routines.
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

/// Throws Error(unsupported) for what has no text of our own.
[[nodiscard]] std::unique_ptr<Executable> make_routine(Gpu& gpu, const LibraryCall& call);

}  // namespace nitinol::cuda
