// Step -> Executable: the one cache of prepared steps, shared by eager and compiled code.
// (core/memory.h has what users may ask of it.)
#pragma once

#include "core/backend.h"
#include "core/build_report.h"
#include "core/memory.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace nitinol {

/// The prepared form of `step` on `device`, made at most once: threads that ask together wait for
/// the first. Keys are compared in full; backends live for ever. Thread-safe. Errors of
/// Backend::prepare propagate and leave no entry. `was_there`, unless null, gets whether another
/// call has made it, or is at it.
[[nodiscard]] std::shared_ptr<const Executable> executable_for(Backend& device, const Step& step,
                                                               bool* was_there = nullptr);

/// What executable_for() gives if it is there, or about to be; else null.
[[nodiscard]] std::shared_ptr<const Executable> known_executable(Backend& device, const Step& step);

/// Counts code that was found and not made, for executable_statistics(): for those whose
/// executables get theirs after prepare(). That of a report is counted by executable_for().
void note_code(CodeOrigin origin);

/// Raised by clear_executables(), for those who keep executables at hand.
extern std::atomic<uint64_t> executable_clears;

}  // namespace nitinol
