// What fork() must not cut in half.
//
// The child of a fork has the memory of all threads and one of the threads. A lock that another
// thread held is never released there, and what it was changing stays half changed. So fork() waits
// (pthread_atfork) until no thread is inside a NoFork and no ForkSafeMutex is held.
#pragma once

#include <mutex>

namespace nitinol {

/// While one lives, forks by other threads wait: for work in libraries whose state is not ours to
/// lock (LLVM, oneDNN, the dynamic loader). Nests; a thread may itself fork inside one.
class NoFork {
 public:
  NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
  /// Passes on what was logged meanwhile, if it is the thread's outermost: a sink is the user's
  /// code, and may wait for a thread that forks.
  ~NoFork();
  /// Whether this thread is in one.
  [[nodiscard]] static bool is_inside();
};
/// Passes on what was logged inside a NoFork. (core/log.cpp)
void log_deferred() noexcept;

/// A mutex that is free whenever a fork happens. Whoever holds it may enter a NoFork, but must not
/// wait for another thread that does, nor call the user's code.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;
  ~ForkSafeMutex();
  // NOLINTBEGIN(readability-identifier-naming): std::lock_guard's names
  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }
  // NOLINTEND(readability-identifier-naming)

 private:
  friend class ForkHandler;
  std::mutex mutex_;
  ForkSafeMutex* previous_ = nullptr;  ///< in the list of all
  ForkSafeMutex* next_ = nullptr;
};

}  // namespace nitinol
