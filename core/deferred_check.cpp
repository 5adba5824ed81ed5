// Two locks. `settling` is held while states are found and failed calls are undone, which locks
// cells; `marks`, which is taken last, guards what checks and marks point to. A call that has cells
// locked takes `marks` alone.
//
// What a handle of a check owns may be much, and end in the user's code: none is dropped under
// `marks`.
#include "core/deferred_check.h"

#include "core/backend.h"
#include "core/short_array.h"
#include "core/variable.h"
#include "core/waiting.h"

#include <algorithm>
#include <mutex>
#include <ranges>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

struct Registry {
  std::mutex settling, marks;
  std::vector<Handle<DeferredCheck>> open;    ///< in the order in which they were enlisted
  std::vector<Handle<DeferredCheck>> untold;  ///< failed by themselves
};

Registry& registry() {
  static Registry& shared = *new Registry;  // never destroyed: memory outlives static objects
  return shared;
}

/// Takes the reference that the mark has.
Handle<DeferredCheck> taken(Storage& storage, DeferredCheck* instead) {
  if (instead != nullptr) intrusive_ptr_add_ref(instead);
  return adopt(storage.check.exchange(instead, std::memory_order_acq_rel));
}

}  // namespace

void destroy(DeferredCheck* check) {
  delete check;
}

// ---- marks

void mark(std::span<Storage* const> filled, DeferredCheck& check) {
  ShortArray<Handle<DeferredCheck>, 16> before(filled.size());
  const std::lock_guard lock(registry().marks);
  for (std::size_t i = 0; i < filled.size(); ++i) before[i] = taken(*filled[i], &check);
}

void destroy_marked(Storage* storage) {
  static_cast<void>(taken(*storage, nullptr));  // nobody else sees it
  storage->release(storage);
}

Handle<DeferredCheck> check_of(const Storage& storage) {
  if (storage.check.load(std::memory_order_acquire) == nullptr) return {};
  const std::lock_guard lock(registry().marks);
  return storage.check.load(std::memory_order_relaxed);
}

Handle<DeferredCheck> check_of(const Tensor& tensor) {
  const bool has_memory = tensor.is_defined() && tensor.internals().storage;
  return has_memory ? check_of(*tensor.internals().storage) : Handle<DeferredCheck>();
}

void replace_mark(Storage& storage, const DeferredCheck& from, DeferredCheck* to) {
  Handle<DeferredCheck> before;
  const std::lock_guard lock(registry().marks);
  if (storage.check.load(std::memory_order_relaxed) == &from) before = taken(storage, to);
}

void settle(Storage& storage) {
  const Handle<DeferredCheck> check = check_of(storage);
  if (!check) return;
  check->expect();
  replace_mark(storage, *check, nullptr);
}

Tensor VariableCell::settled_value() {
  for (;;) {
    Handle<DeferredCheck> open;
    {
      const std::lock_guard lock(mutex);
      // Reading the value settles what marks its memory; but not every value has been computed.
      if (!check || check_of(value) || check->state() == DeferredCheck::State::passed) return value;
      open = check;
    }
    open->expect();
  }
}

// ---- states

DeferredCheck::DeferredCheck(Backend& device, Handle<DeferredCheck> followed)
    : device_(device),
      followed_(std::move(followed)),
      word_(device.take_status(followed_ ? followed_->word_ : nullptr)) {}

DeferredCheck::~DeferredCheck() {
  device_.give_status(word_, state() == State::passed);
}

void DeferredCheck::post() {
  posted_ = device_.post_status(word_);
}

void DeferredCheck::enlist() {
  Registry& shared = registry();
  const std::lock_guard lock(shared.marks);
  shared.open.emplace_back(this);
}

Handle<DeferredCheck> DeferredCheck::last_of(std::span<const Handle<DeferredCheck>> checks) {
  const std::lock_guard lock(registry().marks);
  const auto follows = [](const DeferredCheck* last, const DeferredCheck* other) {
    while (last != nullptr && last != other) last = last->followed_.get();
    return last == other;
  };
  const auto found = std::ranges::find_if(checks, [&](const Handle<DeferredCheck>& last) {
    return std::ranges::all_of(checks, [&](const Handle<DeferredCheck>& other) {
      return follows(last.get(), other.get());
    });
  });
  return found != checks.end() ? *found : Handle<DeferredCheck>();
}

void DeferredCheck::look() {
  Registry& shared = registry();
  std::vector<Handle<DeferredCheck>> done, dropped;
  struct LetGo {  // when nothing is locked
    const std::vector<Handle<DeferredCheck>>& of;
    ~LetGo() {
      for (const Handle<DeferredCheck>& check : of) {
        if (check->state() == State::passed) check->let_go();
      }
    }
  } const let_go{done};
  const std::lock_guard settling(shared.settling);
  {
    const std::lock_guard lock(shared.marks);
    std::erase_if(shared.untold, [&](Handle<DeferredCheck>& check) {
      const bool is_told = check->is_told_.load(std::memory_order_relaxed);
      if (is_told) dropped.push_back(std::move(check));
      return is_told;
    });
  }
  const auto take_done = [&]() -> DeferredCheck* {
    const std::lock_guard lock(shared.marks);
    const auto found = std::ranges::find_if(shared.open, [](const Handle<DeferredCheck>& check) {
      return check->posted_->is_there() || check->follows_failure();
    });
    if (found == shared.open.end()) return nullptr;
    done.push_back(std::move(*found));
    shared.open.erase(found);
    return done.back().get();
  };
  std::vector<DeferredCheck*> failed;
  while (DeferredCheck* const check = take_done()) {
    if (check->posted_->wait() == Status::ok) {
      check->state_.store(State::passed, std::memory_order_release);
    } else {
      if (check->follows_failure()) {
        const Handle<DeferredCheck>& before = check->followed_;
        check->cause_ = before->cause_ ? before->cause_ : before;
        ++check->cause_->discarded_with_;
      }
      failed.push_back(check);
      // Before it is discarded: whoever follows it meanwhile fails with it.
      check->state_.store(State::failed, std::memory_order_release);
    }
    const std::lock_guard lock(shared.marks);
    if (check->followed_) dropped.push_back(std::move(check->followed_));
  }
  for (DeferredCheck* const check : failed | std::views::reverse) check->discard();
  const std::lock_guard lock(shared.marks);
  for (DeferredCheck* const check : failed) {
    if (!check->cause_) shared.untold.emplace_back(check);
  }
}

void DeferredCheck::wait() {
  if (state() == State::passed) return;
  const Waiting waiting;
  if (posted_) static_cast<void>(posted_->wait());
  look();
}

void DeferredCheck::expect() {
  wait();
  if (state() == State::failed) tell();
}

void DeferredCheck::tell() {
  DeferredCheck& cause = cause_ ? *cause_ : *this;
  Registry& shared = registry();
  std::shared_ptr<const Error> known;
  {
    const std::lock_guard lock(shared.marks);
    known = cause.error_;
  }
  if (!known) {  // computed without a lock, by several at worst
    const auto made =
        std::make_shared<const Error>(cause.error(cause.posted_->wait(), cause.discarded_with_));
    cause.let_go();
    const std::lock_guard lock(shared.marks);
    if (!cause.error_) cause.error_ = made;
    known = cause.error_;
  }
  for (DeferredCheck* const check : {this, &cause}) {
    if (std::this_thread::get_id() == check->thread_)
      check->is_told_.store(true, std::memory_order_relaxed);
  }
  throw Error(known->kind(), known->report());  // with the place where it comes out
}

bool DeferredCheck::is_untold() const {
  if (state() != State::failed || is_told_.load(std::memory_order_relaxed)) return false;
  return !cause_ || cause_->thread_ != thread_ || !cause_->is_told_.load(std::memory_order_relaxed);
}

void DeferredCheck::expect_all(const Backend& device) {
  look();
  Handle<DeferredCheck> first;
  {
    Registry& shared = registry();
    const std::lock_guard lock(shared.marks);
    std::erase_if(shared.untold, [&](Handle<DeferredCheck>& check) {
      if (&check->device_ != &device || first) return false;
      if (!check->is_told_.load(std::memory_order_relaxed)) first = check;
      return true;
    });
  }
  if (!first) return;
  first->is_told_.store(true, std::memory_order_relaxed);
  first->tell();
}

}  // namespace nitinol
