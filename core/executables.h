// Step -> Executable: the one cache of prepared steps, shared by eager and compiled code.
#pragma once

#include "core/backend.h"

#include <memory>

namespace nitinol {

/// Counters of the executable cache.
struct ExecutableStatistics {
  uint64_t hits = 0;
  uint64_t prepared = 0;  ///< calls of Backend::prepare
  std::size_t entries = 0;
};

/// The prepared form of `step` on `device`, made at most once: threads that ask together wait for
/// the first. Keys are compared in full. Thread-safe. Errors of Backend::prepare propagate and
/// leave no entry.
[[nodiscard]] std::shared_ptr<const Executable> executable_for(Device device, const Step& step);
[[nodiscard]] ExecutableStatistics executable_statistics();
/// Forgets all entries (running calls keep theirs alive).
void clear_executables();
/// Most entries kept; the least recently used go first.
void set_executable_limit(std::size_t entries);

}  // namespace nitinol
