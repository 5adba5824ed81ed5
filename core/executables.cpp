// One map from (backend, step) to a shared entry, under one lock that is never held while
// preparing.
//
// The first caller for a key inserts an unfinished entry and prepares outside the lock; later
// callers find the entry and wait for that entry alone. An entry whose preparation failed is taken
// out before its waiters see the error, so the next call tries again. The list holds the entries in
// order of use; the least recent go first. How much an entry holds is known when it is prepared.
//
// A fork waits while an entry is being prepared: the child would wait for it for ever.

#include "core/executables.h"

#include "core/fork.h"
#include "core/hash.h"
#include "core/kernel.h"
#include "core/library.h"

#include <algorithm>
#include <exception>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace nitinol {

std::atomic<uint64_t> executable_clears = 0;

namespace {

std::size_t hash_of_call(const LibraryCall& call) {
  Hash hash;
  hash.add(call.kind);
  hash.add(call.threads);
  for (const OperandLayout& operand : call.operands) {
    hash.add(operand.dtype);
    hash.add_all(operand.shape);
    hash.add_all(operand.strides);
  }
  const Windows& windows = call.windows;
  for (const auto& pair : {windows.kernel, windows.stride, windows.padding, windows.dilation})
    hash.add_all(pair);
  hash.add(windows.groups);
  hash.add(call.axis);
  hash.add(reinterpret_cast<uintptr_t>(call.routine));
  return hash.result();
}

std::size_t hash_of(const Backend& device, const Step& step) {
  const Kernel* kernel = std::get_if<Kernel>(&step);
  Hash hash;
  hash.add(reinterpret_cast<uintptr_t>(&device));
  hash.add(kernel != nullptr ? nitinol::hash_of(*kernel)
                             : hash_of_call(std::get<LibraryCall>(step)));
  return hash.result();
}

/// Bytes of a step twice, as the key and in the executable, with what the maps take for it.
std::size_t bytes_of(const Step& step) {
  const auto of_vector = [](const auto& vector) { return vector.capacity() * sizeof(vector[0]); };
  std::size_t bytes = sizeof(Step) + 256;
  if (const auto* kernel = std::get_if<Kernel>(&step)) {
    bytes +=
        of_vector(kernel->operands) + of_vector(kernel->reductions) + of_vector(kernel->stages);
    for (const Stage& stage : kernel->stages) {
      bytes += of_vector(stage.program.instrs) + of_vector(stage.sources) + of_vector(stage.sinks);
    }
    return 2 * bytes;
  }
  return 2 * (bytes + of_vector(std::get<LibraryCall>(step).operands));
}

struct Entry {
  Backend* device;
  Step step;
  std::size_t hash = 0;
  std::size_t bytes = 0;  ///< counted for it; guarded by the cache's lock

  // Written before is_finished.
  std::shared_ptr<const Executable> executable;
  std::exception_ptr error;
  std::atomic<bool> is_finished = false;

  std::shared_ptr<const Executable> wait() {
    is_finished.wait(false, std::memory_order_acquire);
    if (error) std::rethrow_exception(error);
    return executable;
  }

  void finish() {
    is_finished.store(true, std::memory_order_release);
    is_finished.notify_all();
  }
};

using EntryHandle = std::shared_ptr<Entry>;

class Cache {
 public:
  std::shared_ptr<const Executable> find(Backend& device, const Step& step, bool& was_there) {
    const std::size_t hash = hash_of(device, step);
    was_there = true;
    if (const EntryHandle entry = look_up(device, step, hash)) return entry->wait();
    return prepare(device, step, hash, was_there);
  }

  std::shared_ptr<const Executable> find_known(Backend& device, const Step& step) {
    const EntryHandle entry = look_up(device, step, hash_of(device, step));
    return entry ? entry->wait() : nullptr;
  }

  ExecutableStatistics statistics() {
    const std::scoped_lock lock(mutex_);
    statistics_.entries = by_use_.size();
    return statistics_;
  }

  void clear() {
    std::list<EntryHandle> removed;
    {
      const std::scoped_lock lock(mutex_);
      by_hash_.clear();
      removed.swap(by_use_);
      statistics_.bytes = 0;
      for (const EntryHandle& entry : removed) entry->bytes = 0;
    }
    executable_clears.fetch_add(1, std::memory_order_relaxed);
  }

  void set_limit(std::size_t bytes) {
    std::list<EntryHandle> evicted;  // destroyed after the lock is released
    const std::scoped_lock lock(mutex_);
    statistics_.limit = bytes;
    shrink(evicted);
  }

 private:
  using Position = std::list<EntryHandle>::iterator;

  EntryHandle look_up(Backend& device, const Step& step, std::size_t hash) {
    const std::scoped_lock lock(mutex_);
    return look_up_locked(device, step, hash);
  }

  EntryHandle look_up_locked(Backend& device, const Step& step, std::size_t hash) {
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      const Entry& entry = **it->second;
      if (entry.device != &device || entry.step != step) continue;
      by_use_.splice(by_use_.begin(), by_use_, it->second);
      ++statistics_.hits;
      return *it->second;
    }
    return nullptr;
  }

  std::shared_ptr<const Executable> prepare(Backend& device, const Step& step, std::size_t hash,
                                            bool& was_there) {
    auto entry = std::make_shared<Entry>();
    entry->device = &device;
    entry->step = step;
    entry->hash = hash;
    const NoFork no_fork;
    if (const EntryHandle other = insert(entry)) return other->wait();
    was_there = false;
    try {
      entry->executable = device.prepare(step);
    } catch (...) {
      remove(entry);
      entry->error = std::current_exception();
      entry->finish();
      throw;
    }
    entry->finish();
    add_bytes(entry, entry->executable->bytes());
    if (entry->executable->report().is_from_disk) note_from_disk();
    return entry->executable;
  }

  /// Or returns the entry that another thread has inserted meanwhile.
  EntryHandle insert(const EntryHandle& entry) {
    std::list<EntryHandle> added = {entry}, evicted;
    const std::scoped_lock lock(mutex_);
    if (EntryHandle other = look_up_locked(*entry->device, entry->step, entry->hash)) return other;
    by_hash_.emplace(entry->hash, added.begin());
    by_use_.splice(by_use_.begin(), added);
    ++statistics_.prepared;
    grow(*entry, bytes_of(entry->step), evicted);
    return nullptr;
  }

  void add_bytes(const EntryHandle& entry, std::size_t bytes) {
    std::list<EntryHandle> evicted;  // destroyed after the lock is released
    const std::scoped_lock lock(mutex_);
    if (position_of(entry) == by_use_.end()) return;  // cleared or evicted meanwhile
    grow(*entry, bytes, evicted);
  }

  void note_from_disk() {
    const std::scoped_lock lock(mutex_);
    ++statistics_.from_disk;
  }

  void grow(Entry& entry, std::size_t bytes, std::list<EntryHandle>& evicted) {
    entry.bytes += bytes;
    statistics_.bytes += bytes;
    shrink(evicted);
  }

  Position position_of(const EntryHandle& entry) {
    const auto [first, last] = by_hash_.equal_range(entry->hash);
    const auto found =
        std::find_if(first, last, [&](const auto& pair) { return *pair.second == entry; });
    return found == last ? by_use_.end() : found->second;
  }

  /// Moves an entry out of the cache.
  void take_out(Position position, std::list<EntryHandle>& to) {
    const auto [first, last] = by_hash_.equal_range((*position)->hash);
    by_hash_.erase(
        std::find_if(first, last, [&](const auto& pair) { return pair.second == position; }));
    statistics_.bytes -= std::exchange((*position)->bytes, 0);
    to.splice(to.end(), by_use_, position);
  }

  void shrink(std::list<EntryHandle>& evicted) {
    while (statistics_.bytes > statistics_.limit && by_use_.size() > 1) {
      take_out(std::prev(by_use_.end()), evicted);
      ++statistics_.evicted;
    }
  }

  void remove(const EntryHandle& entry) {
    std::list<EntryHandle> removed;
    const std::scoped_lock lock(mutex_);
    const Position position = position_of(entry);
    if (position != by_use_.end()) take_out(position, removed);
  }

  ForkSafeMutex mutex_;
  std::list<EntryHandle> by_use_;  // most recent first
  std::unordered_multimap<std::size_t, Position> by_hash_;
  ExecutableStatistics statistics_ = {.limit = std::size_t{256} << 20};
};

/// Never destroyed: threads may still launch while the process ends. Locks itself.
Cache& cache() {
  static Cache& instance = *new Cache;
  return instance;
}

}  // namespace

std::shared_ptr<const Executable> executable_for(Backend& device, const Step& step,
                                                 bool* was_there) {
  bool unread = false;
  return cache().find(device, step, was_there != nullptr ? *was_there : unread);
}

std::shared_ptr<const Executable> known_executable(Backend& device, const Step& step) {
  return cache().find_known(device, step);
}

ExecutableStatistics executable_statistics() {
  return cache().statistics();
}

void clear_executables() {
  cache().clear();
}

void set_executable_limit(std::size_t bytes) {
  cache().set_limit(bytes);
}

}  // namespace nitinol
