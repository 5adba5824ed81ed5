// The passes, in the order in which they run.
#pragma once

#include "core/graph.h"

#include <string>
#include <string_view>
#include <vector>

namespace nitinol::jit {

/// One rewrite of a graph, by name.
struct Pass {
  std::string_view name;
  Graph (*run)(Graph);
  enum class Need : uint8_t { optional, required };
  Need need = Need::optional;  ///< required: cannot be switched off
};

/// All passes in order.
[[nodiscard]] std::span<const Pass> all_passes();
/// The names of what can be switched off: passes that are not required, and what the planner does
/// after them.
[[nodiscard]] std::vector<std::string_view> optional_passes();

/// What a process changes about its passes, for finding the one that is wrong.
struct PassOptions {
  /// Names not to run: of passes, or "fuse", which turns grouping off.
  std::vector<std::string> disabled;
  /// What to print to stderr: "graph" (as recorded, and after the last pass), the name of a pass
  /// (what it made, if it changed anything), or "all".
  std::vector<std::string> dumped;
  /// Passes that run after those of all_passes(): for tests, which plant wrong ones.
  std::vector<Pass> added = {};
  /// False if `name` is not to run.
  [[nodiscard]] bool has(std::string_view name) const;
};

/// The present options: at first NITINOL_DISABLE_PASSES and NITINOL_DUMP, comma-separated.
/// Thread-safe.
[[nodiscard]] PassOptions pass_options();
/// Replaces them, for graphs compiled from now on. Names that no pass has are noted in the log.
/// Thread-safe.
void set_pass_options(PassOptions options);
/// Runs all passes but for those that are disabled. Builds with assertions verify the graph before
/// and after each.
[[nodiscard]] Graph run_passes(Graph graph, const PassOptions& options);

}  // namespace nitinol::jit
