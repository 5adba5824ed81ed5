// Whether anybody wants to know of each op: one word that all who apply them look at.
#pragma once

#include <atomic>
#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol::observed {

inline constexpr uint32_t by_profile = 1;  ///< core/profiling.h
inline constexpr uint32_t by_check = 2;    ///< core/result_check.h
inline constexpr uint32_t by_memory = 4;   ///< core/memory_notes.h

extern constinit std::atomic<uint32_t> by;

[[nodiscard]] inline bool is_any() {
  return by.load(std::memory_order_relaxed) != 0;
}

}  // namespace nitinol::observed

#pragma GCC visibility pop
