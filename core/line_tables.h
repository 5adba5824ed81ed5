// Lines of addresses, from the debug information of the program and its libraries.
#pragma once

#include "core/function_ref.h"

#include <cstdint>

namespace nitinol {

/// Calls take(file, line, function) for the lines that `address` belongs to, of inlined functions
/// the innermost first, until it returns true; `function` may be null or mangled. Never, where
/// there is no debug information.
void for_each_line(uintptr_t address,
                   FunctionRef<bool(const char* file, int line, const char* function)> take);

}  // namespace nitinol
