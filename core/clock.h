// How long something takes.
#pragma once

#include <chrono>

namespace nitinol {

/// Seconds of a precise clock that never goes back, for durations.
[[nodiscard]] inline double precise_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace nitinol
