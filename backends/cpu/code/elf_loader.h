// Turns a relocatable object file in memory into code that runs.
#pragma once

#include "backends/cpu/code/code_arena.h"

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>

namespace nitinol::cpu {

/// Loaded code. The addresses are valid while `block` lives.
struct LoadedObject {
  CodeBlock block;
  /// The code of global functions, by name.
  std::map<std::string, std::span<const std::byte>, std::less<>> functions;
  /// The section that tells unwinders how to leave the functions; empty if it has none.
  std::span<const std::byte> unwind;
  std::size_t code_bytes = 0;  ///< of code and constants
};

/// Loads an object that read_elf() accepts and that calls no others than outside_function(). Throws
/// Error(compile) for any other bytes, and what CodeArena::allocate() throws. Thread-safe.
[[nodiscard]] LoadedObject load_object(std::span<const std::byte> object);

}  // namespace nitinol::cpu
