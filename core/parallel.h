// The one pool of threads that all computing uses, and the floating-point mode that it computes in.
#pragma once

#include "core/function_ref.h"

#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol {

/// Calls `body(first, last)` for ranges that together are [begin, end), on several threads.
///
/// The ranges are cut only at begin + k * grain, so results that depend on where blocks begin do
/// not depend on the number of threads. Each thread gets at most one range, the same for the same
/// arguments and thread count. Runs in the calling thread if there is one block or one thread,
/// inside another parallel_for, inside an OpenMP region of the caller's, and after a fork. Every
/// thread computes in the DefaultFloatMode. Of exceptions thrown by the body, that of the lowest
/// range is rethrown here, after all threads have finished. Any thread may call it.
///
/// grain: at least 1; choose it so that one block is worth about 2 µs, the cost of waking a thread.
void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  FunctionRef<void(int64_t first, int64_t last)> body);

/// How many threads compute, at most. Initially NITINOL_NUM_THREADS, else OMP_NUM_THREADS, else the
/// number of CPUs that this process may run on.
[[nodiscard]] int num_threads();

/// Whether the environment or set_num_threads() has said how many.
[[nodiscard]] bool has_chosen_threads();

/// For the whole process; takes effect at the next parallel_for. Throws Error(value) if `count`
/// < 1.
void set_num_threads(int count);

/// How many threads parallel_for would use if called here: num_threads(), or 1 (see there).
[[nodiscard]] int available_threads();

/// While it lives, a library that uses OpenMP itself (oneDNN) runs on `count` threads when called
/// from this thread, but on 1 where parallel_for would run on 1.
class LibraryThreads {
 public:
  explicit LibraryThreads(int count);
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int saved_;
};

/// While it lives, this thread rounds to nearest, keeps denormal numbers, and does not trap. Costs
/// about 2 ns if that is so already.
class DefaultFloatMode {
 public:
  DefaultFloatMode();
  ~DefaultFloatMode();
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
  uint64_t saved_;
  uint64_t used_;
};

}  // namespace nitinol

#pragma GCC visibility pop
