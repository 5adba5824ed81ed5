// Statements: what the text of a kernel says, whatever its names and numbers are.
#pragma once

#include <string>
#include <vector>

namespace nitinol::test {

/// The lines of a text, with types in place of the names that have been declared and without
/// numbers, but for those of shared memory: a compiler that takes one takes all that are the same.
[[nodiscard]] std::vector<std::string> statements_of(const std::string& text);

}  // namespace nitinol::test
