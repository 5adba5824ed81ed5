// What this build and this machine can do.
#pragma once

#include <string>

#pragma GCC visibility push(default)

namespace nitinol {

/// One line per fact: version, compiler, instruction set in use and the host's, threads, code
/// generation. Loads the code generator if there is one.
[[nodiscard]] std::string build_info();

}  // namespace nitinol

#pragma GCC visibility pop
