// Stores around the caches.
#pragma once

#include <cstddef>

namespace nitinol {

/// Copies to memory that nobody will read soon: its lines are not fetched, and the caches keep what
/// they hold. The ranges must not overlap. Other threads see it after finish_streams().
void stream(void* to, const void* from, std::size_t bytes);

/// Waits until what this thread has streamed can be seen by others.
void finish_streams();

}  // namespace nitinol
