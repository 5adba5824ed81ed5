// Where the code of a step came from, and what it cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace nitinol {

/// Where generated code comes from.
enum class CodeOrigin : uint8_t {
  none,       ///< it is not generated: a prebuilt loop, an interpreter, a library's
  generated,  ///< for this process
  quick,      ///< the same, with least effort: better code replaces it
  disk,       ///< by an earlier process
  shipped,    ///< with the library, which brought it along
};
/// "generated", "quickly generated", "from disk", "shipped"; empty for none.
[[nodiscard]] constexpr std::string_view name_of(CodeOrigin origin) {
  constexpr std::string_view names[] = {"", "generated", "quickly generated", "from disk",
                                        "shipped"};
  return names[static_cast<std::size_t>(origin)];
}

/// What code generation cost, for explain().
struct BuildReport {
  double emit_s = 0;     ///< writing the intermediate code
  double codegen_s = 0;  ///< machine code
  double link_s = 0;
  std::size_t code_bytes = 0;
  CodeOrigin origin = CodeOrigin::none;
};

/// Code as people read it.
struct CodeText {
  std::string language;  ///< "LLVM IR", "assembly", "CUDA C++"
  std::string text;
};

}  // namespace nitinol

#pragma GCC visibility pop
