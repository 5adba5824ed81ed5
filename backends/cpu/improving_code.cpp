// A stage's StageCode calls through a slot, so that who holds a copy of it needs to know nothing: a
// slot leads to the quick code, by way of a counter, and later to the better one.
#include "backends/cpu/improving_code.h"

#include "backends/cpu/stored_code.h"
#include "core/fork.h"
#include "core/log.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <deque>
#include <exception>
#include <mutex>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace nitinol::cpu {
namespace {

/// The launch that shows that a kernel is launched again.
constexpr uint32_t telling_launch = 2;

/// What is to be improved, and the thread that does it, which ends when there is no more.
class Improver {
 public:
  void add(std::shared_ptr<ImprovingCode> code) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(code));
      if (thread_of_ == ::getpid()) return;  // the child of a fork has none
      start();
      thread_of_ = ::getpid();
    } catch (const std::exception& error) {  // without memory or a thread it stays as it is
      log(LogLevel::info, fmt::format("code is not made better: {}", error.what()));
    }
  }

  [[nodiscard]] bool is_at_work() {
    const std::lock_guard lock(mutex_);
    return thread_of_ == ::getpid();
  }

  /// The one of the process; never destroyed, as its thread may run while the process ends.
  static Improver& instance() {
    static Improver& improver = *new Improver;
    return improver;
  }

 private:
  /// Signals are for the program's own threads.
  void start() {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::exception_ptr failure;
    try {
      std::thread([this] { run(); }).detach();
    } catch (const std::system_error&) {
      failure = std::current_exception();
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (failure) std::rethrow_exception(failure);
  }

  void run() {
    ::setpriority(PRIO_PROCESS, 0, 19);  // of this thread: those that compute come first
    while (const std::shared_ptr<ImprovingCode> code = next()) {
      if (code.use_count() == 1) continue;  // the kernel is gone
      try {
        code->improve();
      } catch (const std::exception& error) {
        log(LogLevel::info, fmt::format("code is not made better: {}", error.what()));
      }
    }
  }

  std::shared_ptr<ImprovingCode> next() {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) {
      thread_of_ = 0;
      return nullptr;
    }
    std::shared_ptr<ImprovingCode> code = std::move(queue_.front());
    queue_.pop_front();
    return code;
  }

  ForkSafeMutex mutex_;
  std::deque<std::shared_ptr<ImprovingCode>> queue_;
  pid_t thread_of_ = 0;  ///< the process that has the thread; 0: none
};

}  // namespace

ImprovingCode::ImprovingCode(const Kernel& kernel, Isa isa, StageCodes quick, CodeStore* store)
    : kernel_(kernel),
      isa_(isa),
      store_(store),
      quick_(std::move(quick)),
      slots_(quick_.stages.size()) {
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    slots_[s].quick = quick_.stages[s].function;
    slots_[s].owner = this;
    slots_[s].function = kernel_.order == Order::none ? run_counted : run_quick;
    stages_.push_back({.function = run, .self = &slots_[s]});
  }
}

ImprovingCode::~ImprovingCode() {
  const NoFork no_fork;
  const StageCodes last = std::move(quick_);
  better_.reset();
}

void ImprovingCode::run(const void* slot, const host::StageCall& call) {
  static_cast<const Slot*>(slot)->function.load(std::memory_order_acquire)(slot, call);
}

void ImprovingCode::run_quick(const void* slot, const host::StageCall& call) {
  static_cast<const Slot*>(slot)->quick(nullptr, call);
}

void ImprovingCode::run_counted(const void* slot, const host::StageCall& call) {
  static_cast<const Slot*>(slot)->owner->count();
  run_quick(slot, call);
}

void ImprovingCode::count() {
  if (launches_.load(std::memory_order_relaxed) >= telling_launch) return;
  if (launches_.fetch_add(1, std::memory_order_relaxed) + 1 == telling_launch)
    Improver::instance().add(shared_from_this());
}

void ImprovingCode::improve() {
  const NoFork no_fork;
  better_ = code_of(kernel_, isa_, store_, Effort::full);
  if (!better_) return;
  for (std::size_t s = 0; s < slots_.size(); ++s)
    slots_[s].function.store(better_->stages[s].function, std::memory_order_release);
}

void wait_for_better_code() {
  while (Improver::instance().is_at_work())
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

}  // namespace nitinol::cpu
