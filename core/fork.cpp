// fork() takes everything or nothing: it waits for the gate, then tries all mutexes; if one stays
// held, it lets all through again, because its owner may be waiting at the gate. So no order among
// the mutexes is needed, and forking cannot deadlock.

#include "core/fork.h"

#include <condition_variable>
#include <new>
#include <pthread.h>
#include <time.h>

namespace nitinol {
namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local int own_depth = 0;

}  // namespace

/// One per process, never destroyed.
class ForkHandler {
 public:
  static ForkHandler& instance() {
    static ForkHandler& handler = *new ForkHandler;
    return handler;
  }

  void enter() {
    if (own_depth++ > 0) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_forking_; });
    ++inside_;
  }

  void leave() {
    if (--own_depth > 0) return;
    const std::lock_guard lock(mutex_);
    if (--inside_ <= 1) changed_.notify_all();
  }

  void add(ForkSafeMutex& mutex) {
    const std::lock_guard lock(mutex_);
    mutex.next_ = first_;
    if (first_ != nullptr) first_->previous_ = &mutex;
    first_ = &mutex;
  }

  void remove(ForkSafeMutex& mutex) {
    const std::lock_guard lock(mutex_);
    (mutex.previous_ != nullptr ? mutex.previous_->next_ : first_) = mutex.next_;
    if (mutex.next_ != nullptr) mutex.next_->previous_ = mutex.previous_;
  }

 private:
  ForkHandler() {
    pthread_atfork([] { instance().prepare(); }, [] { instance().resume(); },
                   [] { instance().resume_in_child(); });
  }

  void prepare() {
    const int own = own_depth > 0 ? 1 : 0;
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !is_forking_; });  // two threads may fork at once
      is_forking_ = true;
      changed_.wait(lock, [&] { return inside_ == own; });
      for (int i = 0; i < 50; ++i) {  // most owners will not be at the gate
        if (try_all()) {
          static_cast<void>(lock.release());  // nobody passes until resume()
          return;
        }
        pause();
      }
      is_forking_ = false;
      changed_.notify_all();
      lock.unlock();
      pause();
    }
  }

  static void pause() {
    constexpr timespec moment = {.tv_sec = 0, .tv_nsec = 20'000};
    nanosleep(&moment, nullptr);
  }

  void resume() {
    unlock_until(nullptr);
    is_forking_ = false;
    changed_.notify_all();
    mutex_.unlock();
  }

  void resume_in_child() {
    unlock_until(nullptr);
    is_forking_ = false;
    new (&changed_) std::condition_variable;  // the old one counts waiters that are not here
    mutex_.unlock();
  }

  bool try_all() {
    for (ForkSafeMutex* mutex = first_; mutex != nullptr; mutex = mutex->next_) {
      if (mutex->try_lock()) continue;
      unlock_until(mutex);
      return false;
    }
    return true;
  }

  void unlock_until(const ForkSafeMutex* end) {
    for (ForkSafeMutex* mutex = first_; mutex != end; mutex = mutex->next_) mutex->unlock();
  }

  std::mutex mutex_;  ///< guards the rest; held during a fork
  std::condition_variable changed_;
  int inside_ = 0;  ///< threads inside a NoFork
  bool is_forking_ = false;
  ForkSafeMutex* first_ = nullptr;
};

NoFork::NoFork() {
  ForkHandler::instance().enter();
}

NoFork::~NoFork() {
  ForkHandler::instance().leave();
  if (!is_inside()) log_deferred();
}

bool NoFork::is_inside() {
  return own_depth > 0;
}

ForkSafeMutex::ForkSafeMutex() {
  ForkHandler::instance().add(*this);
}

ForkSafeMutex::~ForkSafeMutex() {
  ForkHandler::instance().remove(*this);
}

}  // namespace nitinol
