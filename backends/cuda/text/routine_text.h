// The text of library calls that run as kernels of our own.
#pragma once

#include "core/library.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace nitinol::cuda {

/// What every routine is passed: addresses, and numbers that its text names by their places.
struct RoutineArguments {
  static constexpr int most_numbers = 88;
  const uint32_t* gate = nullptr;
  uint32_t* status = nullptr;
  void* workspace = nullptr;
  std::array<void*, 4> operands = {};
  std::array<int64_t, most_numbers> numbers = {};
};

/// A library call as text, whose sizes and strides are numbers of its arguments.
struct RoutineText {
  std::string text;  ///< after the words of the prelude
  RoutineArguments arguments;
  std::vector<int64_t> threads;     ///< per function entry0, entry1, ..., in their order
  std::size_t workspace_bytes = 0;  ///< of any content
};

/// The bits of the cpu, but for convolutions and products of f32 and less, whose order the cpu
/// leaves to a library. Throws Error(unsupported) for what has no text.
[[nodiscard]] RoutineText routine_text(const LibraryCall& call);

}  // namespace nitinol::cuda
