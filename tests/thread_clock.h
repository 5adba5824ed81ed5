// What a thread has computed, whatever else the machine does.
#pragma once

#include <ctime>

namespace nitinol::test {

/// CPU time of the calling thread.
inline double thread_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace nitinol::test
