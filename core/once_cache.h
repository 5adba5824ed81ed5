// OnceCache: values that are made at most once for a key, and kept up to a number of bytes.
//
// One lock, never held while a value is made. Who asks first enters an unfinished entry and makes
// the value outside the lock; others find the entry and wait for that one alone. An entry whose
// making failed is taken out before those who wait see the error, so the next call tries again. The
// list holds the entries in order of use; the least recent go first. How much one takes is known
// when it is made.
//
// A fork waits while a value is being made: the child would wait for it for ever.
#pragma once

#include "core/fork.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nitinol {

/// From Key to Value, which is cheap to copy: a pointer to what is shared. Who asks names a key by
/// anything that `key == like` compares and a Key can be made from, and gives its hash.
/// Thread-safe.
template <class Key, class Value>
class OnceCache {
 public:
  struct Counts {
    uint64_t hits = 0;        ///< questions whose key was there, or about to be
    uint64_t claimed = 0;     ///< keys that were not, so that somebody set out to make the value
    uint64_t evicted = 0;     ///< values that had to go because of the limit
    std::size_t entries = 0;  ///< there now
    std::size_t bytes = 0;    ///< of those
    std::size_t limit = 0;
  };
  struct Made {
    Value value;
    std::size_t bytes = 0;
  };

  explicit OnceCache(std::size_t most_bytes) { counts_.limit = most_bytes; }

  /// The value if it is there; waits if somebody makes it. Rethrows what that one throws.
  template <class Like>
  [[nodiscard]] std::optional<Value> find(std::size_t hash, const Like& like) {
    const EntryHandle entry = look_up(hash, like);
    return entry ? entry->wait() : std::nullopt;
  }

  /// The value, which `make` gives as Made if it is not there. Throws what `make` throws, in all
  /// calls that wait for it.
  template <class Like, class Make>
  [[nodiscard]] Value get(std::size_t hash, const Like& like, const Make& make) {
    for (;;) {
      if (const EntryHandle entry = look_up(hash, like)) {
        if (std::optional<Value> value = entry->wait()) return *std::move(value);
        continue;  // who claimed it has given up
      }
      Claims claims(*this);
      if (!claims.add(hash, like)) continue;
      try {
        Made made = make();
        claims.put(0, made);
        return std::move(made.value);
      } catch (...) {
        claims.fail(0, std::current_exception());
        throw;
      }
    }
  }

  /// Keys whose values one thread sets out to make. Those that get none are given up at the end:
  /// who waits for one asks anew.
  class Claims {
   public:
    explicit Claims(OnceCache& cache) : cache_(cache) {}
    Claims(const Claims&) = delete;
    Claims& operator=(const Claims&) = delete;
    ~Claims() {
      for (std::size_t i = 0; i < entries_.size(); ++i) fail(i, nullptr);
    }
    /// False if it is there, or claimed by somebody.
    template <class Like>
    bool add(std::size_t hash, const Like& like) {
      entries_.reserve(entries_.size() +
                       1);  // an entry without a claim would be waited for for ever
      EntryHandle entry = cache_.insert(hash, like);
      const bool is_claimed = entry != nullptr;
      if (is_claimed) entries_.push_back(std::move(entry));
      return is_claimed;
    }
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] const Key& key(std::size_t i) const { return entries_[i]->key; }
    [[nodiscard]] bool is_finished(std::size_t i) const { return entries_[i]->is_finished; }
    /// Each from any thread, but from one.
    void put(std::size_t i, const Made& made) { cache_.put(entries_[i], made); }
    void fail(std::size_t i, std::exception_ptr error) {
      if (!is_finished(i)) cache_.take_back(entries_[i], std::move(error));
    }

   private:
    const NoFork no_fork_;
    OnceCache& cache_;
    std::vector<std::shared_ptr<typename OnceCache::Entry>> entries_;
  };

  [[nodiscard]] Counts counts() {
    const std::scoped_lock lock(mutex_);
    counts_.entries = by_use_.size();
    return counts_;
  }

  void clear() {
    std::list<EntryHandle> removed;  // destroyed after the lock is released, as all that follow
    const std::scoped_lock lock(mutex_);
    by_hash_.clear();
    removed.swap(by_use_);
    counts_.bytes = 0;
  }

  void set_limit(std::size_t bytes) {
    std::list<EntryHandle> evicted;
    const std::scoped_lock lock(mutex_);
    counts_.limit = bytes;
    shrink(evicted);
  }

 private:
  struct Entry {
    Key key;
    std::size_t hash = 0;
    std::size_t bytes = 0;  ///< guarded by the cache's lock; 0 until it is made

    // Written before is_finished. Neither: given up.
    std::optional<Value> value;
    std::exception_ptr error;
    std::atomic<bool> is_finished = false;

    template <class Like>
    Entry(std::size_t its_hash, const Like& like) : key(like), hash(its_hash) {}

    std::optional<Value> wait() const {
      is_finished.wait(false, std::memory_order_acquire);
      if (error) std::rethrow_exception(error);
      return value;
    }
    void finish() {
      is_finished.store(true, std::memory_order_release);
      is_finished.notify_all();
    }
  };
  using EntryHandle = std::shared_ptr<Entry>;
  using Position = typename std::list<EntryHandle>::iterator;

  template <class Like>
  EntryHandle look_up(std::size_t hash, const Like& like) {
    const std::scoped_lock lock(mutex_);
    const Position position =
        position_of(hash, [&](const Entry& each) { return each.key == like; });
    if (position == by_use_.end()) return nullptr;
    by_use_.splice(by_use_.begin(), by_use_, position);
    ++counts_.hits;
    return *position;
  }

  /// Null if another thread has entered it meanwhile.
  template <class Like>
  EntryHandle insert(std::size_t hash, const Like& like) {
    std::list<EntryHandle> added = {std::make_shared<Entry>(hash, like)};
    const std::scoped_lock lock(mutex_);
    const Position present = position_of(hash, [&](const Entry& each) { return each.key == like; });
    if (present != by_use_.end()) return nullptr;
    by_hash_.emplace(hash, added.begin());
    by_use_.splice(by_use_.begin(), added);
    ++counts_.claimed;
    return by_use_.front();
  }

  void put(const EntryHandle& entry, const Made& made) {
    entry->value = made.value;
    entry->finish();
    std::list<EntryHandle> evicted;
    const std::scoped_lock lock(mutex_);
    if (position_of(entry) == by_use_.end()) return;  // cleared meanwhile
    entry->bytes = made.bytes;
    counts_.bytes += made.bytes;
    shrink(evicted);
  }

  void take_back(const EntryHandle& entry, std::exception_ptr error) {
    {
      std::list<EntryHandle> removed;
      const std::scoped_lock lock(mutex_);
      const Position position = position_of(entry);
      if (position != by_use_.end()) take_out(position, removed);
    }
    entry->error = std::move(error);
    entry->finish();
  }

  template <class Is>
  Position position_of(std::size_t hash, const Is& is) {
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (is(**it->second)) return it->second;
    }
    return by_use_.end();
  }
  Position position_of(const EntryHandle& entry) {
    return position_of(entry->hash, [&](const Entry& each) { return &each == entry.get(); });
  }

  void take_out(Position position, std::list<EntryHandle>& to) {
    auto it = by_hash_.find((*position)->hash);
    while (it->second != position) ++it;
    by_hash_.erase(it);
    counts_.bytes -= (*position)->bytes;
    to.splice(to.end(), by_use_, position);
  }

  /// The latest stays, whatever it takes.
  void shrink(std::list<EntryHandle>& evicted) {
    Position last = by_use_.end();
    while (counts_.bytes > counts_.limit && last != by_use_.begin()) {
      const Position each = std::prev(last);
      if (each == by_use_.begin()) return;
      if ((*each)->bytes > 0) {
        take_out(each, evicted);
        ++counts_.evicted;
      } else {
        last = each;
      }
    }
  }

  ForkSafeMutex mutex_;
  std::list<EntryHandle> by_use_;  // the latest first
  std::unordered_multimap<std::size_t, Position> by_hash_;
  Counts counts_;
};

}  // namespace nitinol
