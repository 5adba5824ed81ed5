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
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#pragma GCC visibility push(default)

namespace nitinol {

/// What a binding does around waiting for another thread's call, which may need what this thread
/// holds: the lock of an interpreter. `end` is given what `begin` has returned.
struct WaitHooks {
  void* (*begin)() noexcept;
  void (*end)(void*) noexcept;
};
extern std::atomic<const WaitHooks*> wait_hooks;

/// A mutex that knows its owner, and that a thread which takes it again and again does not keep
/// from others: who has waited for a millisecond gets it next.
class CallOrder {
 public:
  /// How long those wait who hold other Variables already, or may be waited for by the owner.
  static constexpr std::chrono::milliseconds patience{200};
  /// How long those wait who hold no Variable of a higher id: then calls do not wait in a circle,
  /// though a user's function may wait for the thread that waits for it.
  static constexpr std::chrono::milliseconds long_patience{60'000};

  CallOrder() = default;
  CallOrder(const CallOrder&) = delete;
  CallOrder& operator=(const CallOrder&) = delete;

  void lock() {
    if (!take()) static_cast<void>(wait({}));
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  /// False if another call has owned it all the time.
  [[nodiscard]] bool lock_within(std::chrono::milliseconds time) {
    if (!take() && !wait(Clock::now() + time)) return false;
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    return true;
  }
  void unlock() {
    owner_.store({}, std::memory_order_relaxed);
    State expected = owned;
    if (!state_.compare_exchange_strong(expected, vacant, std::memory_order_release)) hand_on();
  }
  /// Whether a call of this thread owns it.
  [[nodiscard]] bool is_mine() const {
    return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
#if defined(__SANITIZE_THREAD__)  // does not know what waits by the steady clock
  using Clock = std::chrono::system_clock;
#else
  using Clock = std::chrono::steady_clock;
#endif
  /// `awaited`: owned, and some thread may wait.
  enum State : uint8_t { vacant, owned, awaited };
  struct Waiter;

  bool take() {
    State expected = vacant;
    return state_.compare_exchange_strong(expected, owned, std::memory_order_acquire);
  }
  bool wait(std::optional<Clock::time_point> until);  // (core/call_order.cpp)
  void hand_on();
  void remove(Waiter& waiter);

  std::atomic<State> state_ = vacant;
  std::atomic<std::thread::id> owner_;
  std::mutex mutex_;  ///< guards the list of those who wait
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

}  // namespace nitinol

#pragma GCC visibility pop
