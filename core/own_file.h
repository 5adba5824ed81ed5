// Where the library lies.
#pragma once

#include <string>

namespace nitinol {

/// The path of the library's file; empty if it is part of the program (a static library).
[[nodiscard]] std::string own_file();

}  // namespace nitinol
