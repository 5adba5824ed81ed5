// Library calls of the cpu device.
#pragma once

#include "core/executable.h"
#include "core/library.h"

#include <memory>

namespace nitinol::cpu {

/// The Executable of a call: oneDNN, or a routine of our own.
[[nodiscard]] std::unique_ptr<Executable> prepare_call(const LibraryCall& call);

}  // namespace nitinol::cpu
