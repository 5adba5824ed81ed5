// What making the code of a step cost.
#pragma once

#include <cstddef>

#pragma GCC visibility push(default)

namespace nitinol {

/// What code generation cost, for explain().
struct BuildReport {
  double emit_s = 0;     ///< writing the intermediate code
  double codegen_s = 0;  ///< machine code
  double link_s = 0;
  std::size_t code_bytes = 0;
  bool is_generated = false;  ///< false: a prebuilt loop, an interpreter or a library call
  bool is_from_disk = false;  ///< generated, by an earlier process
  bool is_quick = false;      ///< generated with least effort: better code replaces it
};

}  // namespace nitinol

#pragma GCC visibility pop
