// What a collective does on the host's memory: what backends run.
#pragma once

#include "core/executable.h"
#include "core/launch.h"
#include "core/library.h"

#include <memory>

namespace nitinol::dist {

/// Runs LibraryCall::Kind::collective. Waits for the other members of its group. Throws Error(io)
/// as Meeting does, and Error(value) if there is no such group any more.
void run_collective(const LibraryCall& call, const Launch& launch);

/// The same on a thread of the group's, if it may call the engine; null if not, when it has been
/// done.
[[nodiscard]] std::unique_ptr<Underway> begin_collective(const LibraryCall& call,
                                                         const Launch& launch);

}  // namespace nitinol::dist
