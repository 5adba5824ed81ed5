// Turns a relocatable object file in memory into code that runs.
#pragma once

#include "backends/cpu/jit/code_arena.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace nitinol::cpu {

/// The address of a function outside the object that generated code calls, or null.
using SymbolResolver = const void* (*)(std::string_view name);

/// Loaded code. The addresses are valid while `block` lives.
struct LoadedObject {
  CodeBlock block;
  std::map<std::string, const void*, std::less<>> functions;  ///< global functions by name
  std::size_t code_bytes = 0;                                 ///< of code and constants
};

/// Loads an ELF object made position-independent with the small code model. Throws Error(compile)
/// if it uses something else than code, constants and the relocations these need.
[[nodiscard]] LoadedObject load_object(std::span<const std::byte> object, SymbolResolver resolve);

}  // namespace nitinol::cpu
