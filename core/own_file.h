// Where the library lies.
#pragma once

#include <string>
#include <string_view>

namespace nitinol {

/// The path of the library's file; empty if it is part of the program (a static library).
[[nodiscard]] std::string own_file();
/// The path of a file of that name beside the library's: of a module of its own.
[[nodiscard]] std::string beside_own_file(std::string_view name);

}  // namespace nitinol
