// One map from (device, step) to a shared entry, under one lock that is never held while preparing.
//
// The first caller for a key inserts an unfinished entry and prepares outside the lock; later
// callers find the entry and wait for that entry alone. An entry whose preparation failed is taken
// out before its waiters see the error, so the next call tries again. The list holds the entries in
// order of use; the least recent go first.

#include "core/executables.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <unordered_map>

namespace nitinol {
namespace {

std::size_t hash_of_call(const LibraryCall& call) {
  uint64_t state = static_cast<uint64_t>(call.kind);
  const auto add = [&](uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15U + (state >> 29);
  };
  add(static_cast<uint64_t>(call.threads));
  for (const OperandLayout& operand : call.operands) {
    add(static_cast<uint64_t>(operand.dtype));
    for (const int64_t size : operand.shape) add(static_cast<uint64_t>(size));
    for (const int64_t stride : operand.strides) add(static_cast<uint64_t>(stride));
  }
  const Windows& windows = call.windows;
  for (const auto& pair : {windows.kernel, windows.stride, windows.padding, windows.dilation}) {
    for (const int64_t number : pair) add(static_cast<uint64_t>(number));
  }
  add(static_cast<uint64_t>(windows.groups));
  add(static_cast<uint64_t>(call.axis));
  return state ^ state >> 32;
}

std::size_t hash_of(Device device, const Step& step) {
  const Kernel* kernel = std::get_if<Kernel>(&step);
  const std::size_t hash =
      kernel != nullptr ? nitinol::hash_of(*kernel) : hash_of_call(std::get<LibraryCall>(step));
  return hash * 31 + static_cast<std::size_t>(device.kind) * 7 +
         static_cast<std::size_t>(device.index);
}

struct Entry {
  Device device;
  Step step;
  std::size_t hash = 0;
  std::mutex mutex;
  std::condition_variable finished;
  bool is_finished = false;
  std::shared_ptr<const Executable> executable;
  std::exception_ptr error;

  std::shared_ptr<const Executable> wait() {
    std::unique_lock lock(mutex);
    finished.wait(lock, [this] { return is_finished; });
    if (error) std::rethrow_exception(error);
    return executable;
  }

  void finish(std::shared_ptr<const Executable> made, std::exception_ptr failure) {
    {
      const std::scoped_lock lock(mutex);
      executable = std::move(made);
      error = std::move(failure);
      is_finished = true;
    }
    finished.notify_all();
  }
};

using EntryHandle = std::shared_ptr<Entry>;

class Cache {
 public:
  std::shared_ptr<const Executable> find(Device device, const Step& step) {
    const std::size_t hash = hash_of(device, step);
    EntryHandle entry;
    bool is_new = false;
    std::list<EntryHandle> evicted;  // destroyed after the lock is released
    {
      const std::scoped_lock lock(mutex_);
      const auto found = position_of(device, step, hash);
      is_new = found == by_use_.end();
      if (is_new) {
        entry = insert(device, step, hash);
        evicted = shrink();
      } else {
        by_use_.splice(by_use_.begin(), by_use_, found);
        entry = *found;
        ++statistics_.hits;
      }
    }
    return is_new ? prepare(entry) : entry->wait();
  }

  ExecutableStatistics statistics() {
    const std::scoped_lock lock(mutex_);
    statistics_.entries = by_use_.size();
    return statistics_;
  }

  void clear() {
    std::list<EntryHandle> removed;
    const std::scoped_lock lock(mutex_);
    by_hash_.clear();
    removed.swap(by_use_);
  }

  void set_limit(std::size_t entries) {
    std::list<EntryHandle> evicted;
    const std::scoped_lock lock(mutex_);
    limit_ = std::max<std::size_t>(entries, 1);
    evicted = shrink();
  }

 private:
  using Position = std::list<EntryHandle>::iterator;

  Position position_of(Device device, const Step& step, std::size_t hash) {
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      const Entry& entry = **it->second;
      if (entry.device == device && entry.step == step) return it->second;
    }
    return by_use_.end();
  }

  EntryHandle insert(Device device, const Step& step, std::size_t hash) {
    auto entry = std::make_shared<Entry>();
    entry->device = device;
    entry->step = step;
    entry->hash = hash;
    by_use_.push_front(entry);
    by_hash_.emplace(hash, by_use_.begin());
    ++statistics_.prepared;
    return entry;
  }

  void forget(Position position) {
    const auto [first, last] = by_hash_.equal_range((*position)->hash);
    by_hash_.erase(
        std::find_if(first, last, [&](const auto& pair) { return pair.second == position; }));
  }

  std::list<EntryHandle> shrink() {
    std::list<EntryHandle> evicted;
    while (by_use_.size() > limit_) {
      forget(std::prev(by_use_.end()));
      evicted.splice(evicted.end(), by_use_, std::prev(by_use_.end()));
    }
    return evicted;
  }

  void remove(const EntryHandle& entry) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::find(by_use_.begin(), by_use_.end(), entry);
    if (found == by_use_.end()) return;
    forget(found);
    by_use_.erase(found);
  }

  std::shared_ptr<const Executable> prepare(const EntryHandle& entry) {
    try {
      std::shared_ptr<const Executable> made = backend(entry->device).prepare(entry->step);
      entry->finish(made, nullptr);
      return made;
    } catch (...) {
      remove(entry);
      entry->finish(nullptr, std::current_exception());
      throw;
    }
  }

  std::mutex mutex_;
  std::list<EntryHandle> by_use_;  // most recent first
  std::unordered_multimap<std::size_t, Position> by_hash_;
  std::size_t limit_ = 4096;
  ExecutableStatistics statistics_;
};

/// Never destroyed: threads may still launch while the process ends. Locks itself.
Cache& cache() {
  static Cache& instance = *new Cache;
  return instance;
}

}  // namespace

std::shared_ptr<const Executable> executable_for(Device device, const Step& step) {
  return cache().find(device, step);
}

ExecutableStatistics executable_statistics() {
  return cache().statistics();
}

void clear_executables() {
  cache().clear();
}

void set_executable_limit(std::size_t entries) {
  cache().set_limit(entries);
}

}  // namespace nitinol
