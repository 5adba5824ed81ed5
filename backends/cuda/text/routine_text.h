// The text of library calls that run as kernels of our own.
#pragma once

#include "core/library.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nitinol::cuda {

/// What every routine is passed: addresses, and numbers that its text names by their places.
struct RoutineArguments {
  static constexpr int most_numbers = 100;
  const uint32_t* gate = nullptr;
  uint32_t* status = nullptr;
  void* workspace = nullptr;
  std::array<void*, 4> operands = {};
  int64_t step = 0;  ///< number of the step that runs
  std::array<int64_t, most_numbers> numbers = {};
};

/// A library call as text, whose sizes and strides are numbers of its arguments.
struct RoutineText {
  std::string text;  ///< after the words of the prelude
  RoutineArguments arguments;
  std::size_t workspace_bytes = 0;  ///< of any content

  /// A launch of function `entry<number>`, after those before it.
  struct Step {
    int entry = 0;
    int64_t threads = 0;
    int64_t number = 0;  ///< what the text knows as a.step
  };
  std::vector<Step> steps;
  std::vector<std::string> entries;  ///< the bodies of the functions

  /// Adds a step whose function is of this body, after all that it names; `at` is its thread.
  void add_step(const std::string& body, int64_t threads, int64_t number = 0);
};

/// Keeps sizes of axes as numbers from `at` on, and strides of two operands from at + 8 and at + 16
/// on; neighbours that lie in both without a gap become one axis. How many there are then.
int put_axes(RoutineText& made, int at, std::span<const int64_t> sizes,
             std::span<const int64_t> first, std::span<const int64_t> second);

/// Whether places in memory, and what comes near them, need 64 bits.
[[nodiscard]] bool needs_wide_index(const LibraryCall& call);

/// The text knows the types Stored and Value of the first operand; Index, of 32 bits where places
/// in memory and what comes near them fit; and UnsignedIndex, which is quicker to divide.
///
/// The bits of the cpu, but for convolutions and products of f32 and less, whose order the cpu
/// leaves to a library. Throws Error(unsupported) for what has no text.
[[nodiscard]] RoutineText routine_text(const LibraryCall& call);

}  // namespace nitinol::cuda
