// Running code that may crash in a process of its own.
#pragma once

#include "core/function_ref.h"

#include <optional>
#include <string>

namespace nitinol::fuzz {

/// What became of a child process.
struct ChildOutcome {
  std::string text;  ///< what `body` returned, or what ended the child instead
  bool has_crashed = false;
};

/// Calls `body` in a forked child and hands its text back. The caller must not have computed
/// anything yet: threads do not survive a fork.
[[nodiscard]] ChildOutcome run_in_child(FunctionRef<std::string()> body);

}  // namespace nitinol::fuzz
