// Tells debuggers of generated code, by GDB's interface for that, which LLDB knows too.
#pragma once

#include "backends/cpu/code/code_symbols.h"

#include <memory>

namespace nitinol::cpu {

/// While it lives, a debugger knows the functions: by name in `break` and `backtrace`, and how to
/// leave them. A debugger that comes later finds those that live then. It takes about 1 KB and a
/// microsecond (docs/decisions/0032-tools-know-kernels.md). Any thread; no fork happens meanwhile
/// (core/fork.h, NoFork).
class DebuggerEntry {
 public:
  DebuggerEntry() = default;
  explicit DebuggerEntry(const CodeSymbols& symbols);

  /// How many live.
  [[nodiscard]] static std::size_t count();

 private:
  struct Entry;
  struct Remove {
    void operator()(Entry* entry) const noexcept;
  };
  std::unique_ptr<Entry, Remove> entry_;
};

}  // namespace nitinol::cpu
