#include "core/interpreter.h"

#include "core/fork.h"
#include "core/pending.h"
#include "core/variable.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace nitinol {
namespace {

std::atomic<uint64_t> epoch = 0;

}  // namespace

constinit thread_local Interpreter* thread_interpreter::top = nullptr;
constinit thread_local bool thread_interpreter::watches = false;
constinit thread_local PendingCall* thread_interpreter::pending = nullptr;

uint64_t current_epoch() {
  return epoch.load(std::memory_order_relaxed);
}

uint64_t begin_epoch() {
  return epoch.fetch_add(1, std::memory_order_relaxed) + 1;
}

// ---- updates outside of calls

UpdateScope::UpdateScope(const Variable& variable) {
  CallOrder& order = variable.cell().order;
  if (is_held() || order.is_mine()) return;
  if (order.lock_within(CallOrder::patience)) order_ = &order;
}

UpdateScope::~UpdateScope() {
  if (order_ != nullptr) order_->unlock();
}

// ---- calls that keep results pending

namespace {

/// A call whose tensors are pending, and how many other threads are computing some of them.
struct Listed {
  uint64_t trace = 0;
  PendingCall* call = nullptr;
  int users = 0;
};

struct List {
  ForkSafeMutex mutex;
  std::condition_variable_any is_unused;
  std::vector<Listed> calls;

  [[nodiscard]] std::vector<Listed>::iterator find(uint64_t trace) {
    return std::ranges::find(calls, trace, &Listed::trace);
  }
};

List& list() {
  static auto& list = *new List;  // never destroyed: threads may outlive main
  return list;
}

/// Uses a call that may end at any time.
class User {
 public:
  explicit User(uint64_t trace) : trace_(trace) {
    const std::lock_guard lock(list().mutex);
    const auto found = list().find(trace);
    if (found == list().calls.end()) return;
    ++found->users;
    call_ = found->call;
  }
  ~User() {
    if (call_ == nullptr) return;
    const std::lock_guard lock(list().mutex);
    if (--list().find(trace_)->users == 0) list().is_unused.notify_all();
  }
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  /// Null if it has ended.
  [[nodiscard]] PendingCall* call() const { return call_; }

 private:
  uint64_t trace_;
  PendingCall* call_ = nullptr;
};

}  // namespace

void materialise(const TensorData& data) {
  if (!is_pending(data)) return;
  PendingCall* const own = pending_call();
  if (own != nullptr && own->owns(data)) return own->compute(data);
  const User user(data.trace);
  if (user.call() != nullptr) user.call()->compute_elsewhere(data);
}

PendingCallEntry::PendingCallEntry(uint64_t trace, PendingCall& call) : trace_(trace) {
  const std::lock_guard lock(list().mutex);
  list().calls.push_back({trace, &call});
}

PendingCallEntry::~PendingCallEntry() {
  std::unique_lock lock(list().mutex);
  list().is_unused.wait(lock, [&] { return list().find(trace_)->users == 0; });
  list().calls.erase(list().find(trace_));
}

}  // namespace nitinol
