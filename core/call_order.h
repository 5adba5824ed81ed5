// CallOrder: calls that assign the same Variable run one after the other.
//
// A call of a compiled function reads Variables, computes, and commits at its end. If another one
// commits in between, the first one's update is made of an old value and the other's is lost. So a
// call owns the order of each Variable that it will assign, from before its first read until it has
// committed. Which they are is known from earlier calls of the function; then all are taken at
// once, by id, and nobody waits in a circle. In a first call they are taken one by one as they are
// read, and nobody waits for long; should that have been too short, the call finds at its end that
// a value it read has been replaced, and throws.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#pragma GCC visibility push(default)

namespace nitinol {

class CallOrder {
 public:
  /// How long those wait who hold other Variables already, or may be waited for by the owner.
  static constexpr std::chrono::milliseconds patience{200};

  void lock() {
    mutex_.lock();
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  /// False if another call has owned it all the time.
  [[nodiscard]] bool lock_within(std::chrono::milliseconds time) {
    if (!mutex_.try_lock() && !try_lock_for(time)) return false;
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    return true;
  }
  void unlock() {
    owner_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
  }
  /// Whether a call of this thread owns it.
  [[nodiscard]] bool is_mine() const {
    return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
  bool try_lock_for(std::chrono::milliseconds time) {
#if defined(__SANITIZE_THREAD__)  // does not know pthread_mutex_clocklock(), by the steady clock
    return mutex_.try_lock_until(std::chrono::system_clock::now() + time);
#else
    return mutex_.try_lock_for(time);
#endif
  }

  std::timed_mutex mutex_;
  std::atomic<std::thread::id> owner_;
};

}  // namespace nitinol

#pragma GCC visibility pop
