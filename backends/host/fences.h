// Memory in which each tensor ends at a page that nobody may touch: a debugging aid.
//
// Neither generated code nor oneDNN is seen by the address sanitizer, and what they write beyond a
// buffer is usually another buffer's or malloc's. With NITINOL_FENCES=1 such a program ends at the
// instruction that does it, and one that uses memory after its release too.
#pragma once

#include "core/storage.h"

#include <cstddef>

namespace nitinol::host {

/// Whether NITINOL_FENCES asks for it.
[[nodiscard]] bool has_fences();

/// Memory of its own pages, before a page without access: its data begins at a multiple of 64 and
/// ends less than 64 bytes before that page. Those bytes are checked when it is released. Not
/// counted by memory_statistics(). Throws Error(value) if the system has none.
[[nodiscard]] StorageHandle allocate_fenced(std::size_t bytes);

}  // namespace nitinol::host
