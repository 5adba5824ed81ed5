// An object file in memory that tells a debugger what code that is already loaded is.
#pragma once

#include "backends/cpu/code/code_symbols.h"

#include <cstddef>
#include <vector>

namespace nitinol::cpu {

/// An ELF file of sections at the addresses of the code: functions by name, how to leave them, and
/// the line that they belong to, as DWARF. The code itself is not in it.
[[nodiscard]] std::vector<std::byte> debug_object(const CodeSymbols& symbols);

}  // namespace nitinol::cpu
