// Taking what is vacant is one atomic operation, also for a thread that comes while others wait: it
// is running, and they would have to be woken. But a thread that computes step after step would
// then be the only one that ever gets there. So each that waits stands in a list; who gives the
// order up wakes the first, and hands it over if that one has waited for too long.
#include "core/call_order.h"

#include "core/waiting.h"

#include <condition_variable>

namespace nitinol {

constinit std::atomic<const WaitHooks*> wait_hooks = nullptr;

namespace {

constexpr std::chrono::milliseconds too_long{1};

}  // namespace

struct CallOrder::Waiter {
  Clock::time_point since = Clock::now();
  std::condition_variable woken;
  bool is_given = false;
  Waiter* before = nullptr;
  Waiter* after = nullptr;
};

bool CallOrder::wait(std::optional<Clock::time_point> until) {
  const Waiting waiting;  // outlives the lock: its end may wait, too
  Waiter me;
  std::unique_lock lock(mutex_);
  me.before = last_;
  (last_ == nullptr ? first_ : last_->after) = &me;
  last_ = &me;
  for (;;) {
    // From here on who gives it up looks at the list.
    if (state_.exchange(awaited, std::memory_order_acquire) == vacant) {
      remove(me);
      return true;
    }
    bool is_late = false;
    if (until)
      is_late = me.woken.wait_until(lock, *until) == std::cv_status::timeout;
    else
      me.woken.wait(lock);
    if (me.is_given) return true;
    if (is_late) {
      const bool was_first = first_ == &me;
      remove(me);
      // It may have been woken at this very moment: then it is the next one's turn to look.
      if (was_first && first_ != nullptr) first_->woken.notify_one();
      return false;
    }
  }
}

void CallOrder::hand_on() {
  const std::lock_guard lock(mutex_);
  if (first_ == nullptr) {
    state_.store(vacant, std::memory_order_release);
    return;
  }
  Waiter& next = *first_;
  if (Clock::now() - next.since >= too_long) {
    next.is_given = true;  // the state stays: it is owned
    remove(next);
  } else {
    state_.store(vacant, std::memory_order_release);
  }
  next.woken.notify_one();  // under the mutex: it lives until it has that
}

void CallOrder::remove(Waiter& waiter) {
  (waiter.before == nullptr ? first_ : waiter.before->after) = waiter.after;
  (waiter.after == nullptr ? last_ : waiter.after->before) = waiter.before;
}

}  // namespace nitinol
