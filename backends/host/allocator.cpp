// Fresh memory is dear: a new 64 MB buffer costs ten times more in page faults than the addition
// that fills it. So released blocks are kept. Small ones (up to 32 KiB, 32 sizes) go to a cache of
// the releasing thread, which takes no lock; what a thread has too many of goes to a shared pool in
// batches. Large ones go to the shared pool directly and are handed out to requests of nearly their
// size. From 2 MiB on they come from mmap, aligned for huge pages.
//
// A block is a line of 64 bytes with the Storage and the block's size before the data. One
// allocation serves both, and the Storage of a released block is the link of the free list.
//
// Counters are per thread and plain; statistics add them up. A block may be released by another
// thread than took it, so a thread's own sums may be negative, but not their total.

#include "backends/host/allocator.h"

#include "backends/host/fences.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/per_thread.h"
#include "core/round_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__SANITIZE_ADDRESS__)
#  include <sanitizer/asan_interface.h>
#endif

namespace nitinol::host {
namespace {

constexpr std::size_t small_limit = std::size_t{32} << 10;
constexpr std::size_t class_count = 32;
constexpr std::size_t huge_page = std::size_t{2} << 20;
/// Of each size, a thread keeps this many bytes, but at least 4 and at most 64 blocks.
constexpr std::size_t bytes_per_class = std::size_t{64} << 10;
/// Large blocks kept beyond what is in use.
constexpr std::size_t least_cached = std::size_t{256} << 20;
constexpr uint8_t large_class = class_count;

struct Block : Storage {
  std::size_t capacity;  ///< bytes of data
  Block* next;           ///< while it is free
};
static_assert(sizeof(Block) <= line);

/// Bytes from where the system's memory begins to the data: the block is the line before the data.
/// A loop over 16 MB that begins one or two lines behind a multiple of 256 bytes takes 13 % longer.
constexpr std::size_t lead_of(std::size_t capacity) {
  return capacity > small_limit ? std::size_t{256} : line;
}

/// 1 to 4 lines, then four sizes from each power of two to the next.
std::size_t class_of(std::size_t bytes) {
  const std::size_t last = bytes == 0 ? 0 : (bytes - 1) / line;
  if (last < 4) return last;
  const auto width = static_cast<std::size_t>(std::bit_width(last));
  return 4 * (width - 2) + (last >> (width - 3)) - 4;
}

std::size_t bytes_of_class(std::size_t size_class) {
  if (size_class < 4) return (size_class + 1) * line;
  const std::size_t shift = size_class / 4 - 1;
  return ((size_class % 4 + 5) << shift) * line;
}

std::size_t most_of_class(std::size_t size_class) {
  return std::clamp<std::size_t>(bytes_per_class / bytes_of_class(size_class), 4, 64);
}

std::byte* data_of(Block* block) {
  return reinterpret_cast<std::byte*>(block) + line;
}

void forbid_access([[maybe_unused]] Block* block) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(data_of(block), block->capacity);
#endif
}
void allow_access([[maybe_unused]] Block* block) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(data_of(block), block->capacity);
#endif
}

Block* last_of(Block* list) {
  while (list->next != nullptr) list = list->next;
  return list;
}

/// Written by one thread, read by any.
class Counter {
 public:
  void add(int64_t change) {
    value_.store(value_.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
  }
  [[nodiscard]] int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_ = 0;
};

struct Counters {
  Counter in_use, allocations;
};

struct ThreadCache {
  ThreadCache();
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;
  ~ThreadCache();

  std::array<Block*, class_count> free = {};
  std::array<uint8_t, class_count> count = {};
  Counters counters;
  uint32_t release_epoch = 0;
  ThreadCache* previous = nullptr;  ///< in the list of all threads
  ThreadCache* next = nullptr;
};

[[noreturn]] void fail(std::size_t bytes, std::string what, std::string fix) {
  throw Error(ErrorKind::value, {.where = "allocate",
                                 .what = fmt::format("{} bytes {}", bytes, what),
                                 .expected = {},
                                 .got = {},
                                 .fix = std::move(fix)});
}

std::size_t physical_memory() {
  static const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                                   static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// `bytes` of memory aligned for huge pages, or null.
void* map_memory(std::size_t bytes) {
  // Aligned to huge pages by mapping more and giving back both ends.
  void* const mapped =
      mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(mapped) % huge_page;
  std::byte* const aligned = begin + before;
  if (before > 0) munmap(begin, before);
  if (before < huge_page) munmap(aligned + bytes, huge_page - before);
  madvise(aligned, bytes, MADV_HUGEPAGE);
  return aligned;
}

/// Memory for a block of this capacity and its data, or null.
void* ask_system(std::size_t capacity) {
  const std::size_t lead = lead_of(capacity), bytes = lead + capacity;
  void* const memory =
      bytes < huge_page ? std::aligned_alloc(lead, round_up(bytes, lead)) : map_memory(bytes);
  return memory == nullptr ? nullptr : static_cast<std::byte*>(memory) + lead - line;
}

void give_to_system(Block* block) {
  const std::size_t lead = lead_of(block->capacity), bytes = lead + block->capacity;
  void* const memory = data_of(block) - lead;
  allow_access(block);
  if (bytes < huge_page)
    std::free(memory);
  else
    munmap(memory, bytes);
}

/// What all threads share. Locks itself; never destroyed.
class Pool {
 public:
  static Pool& pool();

  /// Moves up to `most` blocks of a small size to `list`; returns how many.
  std::size_t take_small(std::size_t size_class, std::size_t most, Block*& list) {
    const std::scoped_lock lock(mutex_);
    std::size_t count = 0;
    for (Block*& head = small_[size_class]; head != nullptr && count < most; ++count) {
      Block* const block = head;
      head = block->next;
      block->next = list;
      list = block;
    }
    return count;
  }

  void put_small(std::size_t size_class, Block* first, Block* last) {
    const std::scoped_lock lock(mutex_);
    last->next = small_[size_class];
    small_[size_class] = first;
  }

  /// A cached large block of at least `capacity` and at most an eighth more, or null: of those of
  /// its size the one that was released last, of which a cache may still know something.
  Block* take_large(std::size_t capacity) {
    const std::scoped_lock lock(mutex_);
    note_peak(capacity);
    const auto least = large_.lower_bound(capacity);
    if (least == large_.end() || least->first > capacity + capacity / 8 + page) return nullptr;
    const auto found = std::prev(large_.upper_bound(least->first));
    Block* const block = found->second.block;
    large_.erase(found);
    large_cached_ -= block->capacity;
    return block;
  }

  void put_large(Block* block) {
    const std::scoped_lock lock(mutex_);
    try {
      large_.emplace(block->capacity, Cached{block, ++ticks_});
    } catch (const std::bad_alloc&) {  // releasing must not fail
      block->next = nullptr;
      return destroy_locked(block);
    }
    large_cached_ += block->capacity;
    const std::size_t in_use = reserved_ - std::min(reserved_, large_cached_);
    while (large_cached_ > std::max(least_cached, in_use)) drop_oldest();
  }

  /// A block from the system, within the budget.
  Block* make(std::size_t capacity, uint8_t size_class) {
    void* memory = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      note_peak(capacity);
      const bool fits = budget_ == 0 || reserved_ + capacity <= budget_;
      if (fits && capacity <= physical_memory()) memory = ask_system(capacity);
      if (memory == nullptr) return nullptr;
      reserved_ += capacity;
      ++system_allocations_;
    }
    Block* const block = new (memory) Block;
    block->capacity = capacity;
    block->size_class = size_class;
    return block;
  }

  /// Returns a list of blocks to the system.
  void destroy(Block* list) {
    const std::scoped_lock lock(mutex_);
    destroy_locked(list);
  }

  void release_cached() {
    const std::scoped_lock lock(mutex_);
    for (Block*& head : small_) {
      destroy_locked(head);
      head = nullptr;
    }
    while (!large_.empty()) drop(large_.begin());
    release_epoch_.fetch_add(1, std::memory_order_relaxed);
  }

  void reset_peak() {
    const std::scoped_lock lock(mutex_);
    peak_ = 0;
    note_peak(0);
  }

  [[nodiscard]] uint32_t release_epoch() const {
    return release_epoch_.load(std::memory_order_relaxed);
  }

  void set_budget(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    budget_ = bytes;
  }

  void add(ThreadCache* cache) {
    const std::scoped_lock lock(mutex_);
    cache->next = threads_;
    if (threads_ != nullptr) threads_->previous = cache;
    threads_ = cache;
    find_only();
  }

  void remove(ThreadCache* cache) {
    const std::scoped_lock lock(mutex_);
    if (cache->previous != nullptr)
      cache->previous->next = cache->next;
    else
      threads_ = cache->next;
    if (cache->next != nullptr) cache->next->previous = cache->previous;
    ended_.in_use.add(cache->counters.in_use.get());
    ended_.allocations.add(cache->counters.allocations.get());
    find_only();
  }

  /// For a thread whose own cache is gone.
  void count(int64_t in_use, int64_t allocations) {
    const std::scoped_lock lock(mutex_);
    ended_.in_use.add(in_use);
    ended_.allocations.add(allocations);
  }

  /// Without the lock if no other thread has a cache.
  MemoryStatistics counts(const ThreadCache* own) {
    if (own == nullptr || only_.load(std::memory_order_acquire) != own) return statistics();
    const int64_t in_use = ended_.in_use.get() + own->counters.in_use.get();
    const int64_t allocations = ended_.allocations.get() + own->counters.allocations.get();
    return {.in_use = static_cast<std::size_t>(std::max<int64_t>(in_use, 0)),
            .allocations = static_cast<uint64_t>(allocations)};
  }

  MemoryStatistics statistics() {
    const std::scoped_lock lock(mutex_);
    MemoryStatistics result;
    result.in_use = note_peak(0);
    result.peak = peak_;
    int64_t allocations = ended_.allocations.get();
    for (const ThreadCache* cache = threads_; cache != nullptr; cache = cache->next) {
      allocations += cache->counters.allocations.get();
    }
    result.cached = reserved_ - std::min(reserved_, result.in_use);
    result.allocations = static_cast<uint64_t>(allocations);
    result.system_allocations = system_allocations_;
    return result;
  }

 private:
  struct Cached {
    Block* block;
    uint64_t tick;
  };
  using LargeBlocks = std::multimap<std::size_t, Cached>;

  /// Bytes in use; `coming` more will be in a moment. Blocks from a thread's own cache are noticed
  /// late.
  std::size_t note_peak(std::size_t coming) {
    int64_t sum = ended_.in_use.get();
    for (const ThreadCache* cache = threads_; cache != nullptr; cache = cache->next) {
      sum += cache->counters.in_use.get();
    }
    const auto in_use = static_cast<std::size_t>(std::max<int64_t>(sum, 0));
    peak_ = std::max(peak_, in_use + coming);
    return in_use;
  }

  void find_only() {
    const bool is_one = threads_ != nullptr && threads_->next == nullptr;
    only_.store(is_one ? threads_ : nullptr, std::memory_order_release);
  }

  void destroy_locked(Block* list) {
    while (list != nullptr) {
      Block* const next = list->next;
      reserved_ -= list->capacity;
      give_to_system(list);
      list = next;
    }
  }

  void drop(LargeBlocks::iterator at) {
    Block* const block = at->second.block;
    large_.erase(at);
    large_cached_ -= block->capacity;
    block->next = nullptr;
    destroy_locked(block);
  }

  void drop_oldest() {
    drop(std::min_element(large_.begin(), large_.end(), [](const auto& a, const auto& b) {
      return a.second.tick < b.second.tick;
    }));
  }

  ForkSafeMutex mutex_;
  std::array<Block*, class_count> small_ = {};
  LargeBlocks large_;
  uint64_t ticks_ = 0;
  std::size_t large_cached_ = 0;
  std::size_t reserved_ = 0;  ///< capacity of all blocks that exist
  std::size_t peak_ = 0;
  std::size_t budget_ = 0;
  uint64_t system_allocations_ = 0;
  std::atomic<uint32_t> release_epoch_ = 0;
  ThreadCache* threads_ = nullptr;
  std::atomic<const ThreadCache*> only_ = nullptr;  ///< the one, if there is no other
  Counters ended_;                                  ///< of threads that have ended
};

Pool& Pool::pool() {
  static Pool& instance = *new Pool;
  return instance;
}

Pool& pool() {
  return Pool::pool();
}

void empty(ThreadCache& cache) {
  for (std::size_t i = 0; i < class_count; ++i) {
    pool().destroy(cache.free[i]);
    cache.free[i] = nullptr;
    cache.count[i] = 0;
  }
}

ThreadCache::ThreadCache() : release_epoch(pool().release_epoch()) {
  pool().add(this);
}

/// Its blocks go to the other threads.
ThreadCache::~ThreadCache() {
  for (std::size_t i = 0; i < class_count; ++i) {
    if (free[i] != nullptr) pool().put_small(i, free[i], last_of(free[i]));
  }
  pool().remove(this);
}

/// The thread's cache; null in a thread that is ending.
ThreadCache* cache_of_thread() {
  ThreadCache* const cache = PerThread<ThreadCache>::get();
  if (cache != nullptr && cache->release_epoch != pool().release_epoch()) [[unlikely]] {
    cache->release_epoch = pool().release_epoch();
    empty(*cache);
  }
  return cache;
}

void count(ThreadCache* cache, int64_t in_use, int64_t allocations) {
  if (cache == nullptr) return pool().count(in_use, allocations);
  cache->counters.in_use.add(in_use);
  if (allocations != 0) cache->counters.allocations.add(allocations);
}

/// A block from the system; tries again after releasing what is cached.
Block* make_block(std::size_t bytes, std::size_t capacity, uint8_t size_class, ThreadCache* cache) {
  Block* block = pool().make(capacity, size_class);
  if (block != nullptr) return block;
  pool().release_cached();
  if (cache != nullptr) empty(*cache);
  block = pool().make(capacity, size_class);
  if (block == nullptr) {
    fail(bytes, "cannot be had: the memory budget or the machine is exhausted",
         "Release tensors, work on smaller pieces, or raise the memory budget.");
  }
  return block;
}

Block* take_small(std::size_t bytes, std::size_t size_class, ThreadCache* cache) {
  Block* list = nullptr;
  const std::size_t most = cache == nullptr ? 1 : most_of_class(size_class) / 2;
  const std::size_t found = pool().take_small(size_class, most, list);
  if (found == 0) {
    return make_block(bytes, bytes_of_class(size_class), static_cast<uint8_t>(size_class), cache);
  }
  if (cache != nullptr) {
    cache->free[size_class] = list->next;
    cache->count[size_class] = static_cast<uint8_t>(found - 1);
  }
  return list;
}

Block* take_large(std::size_t bytes, ThreadCache* cache) {
  // Lead and data together fill whole pages.
  const std::size_t unit = bytes < huge_page ? page : 16 * page, lead = lead_of(bytes);
  const std::size_t capacity = round_up(bytes + lead, unit) - lead;
  Block* const block = pool().take_large(capacity);
  return block != nullptr ? block : make_block(bytes, capacity, large_class, cache);
}

/// Half of what the thread has of this size goes to the other threads.
void spill(ThreadCache& cache, std::size_t size_class) {
  const std::size_t kept = cache.count[size_class] / std::size_t{2};
  Block* last_kept = cache.free[size_class];
  for (std::size_t i = 1; i < kept; ++i) last_kept = last_kept->next;
  Block* const first = last_kept->next;
  last_kept->next = nullptr;
  cache.count[size_class] = static_cast<uint8_t>(kept);
  pool().put_small(size_class, first, last_of(first));
}

void release(Storage* storage) noexcept {
  auto* const block = static_cast<Block*>(storage);
  ThreadCache* const cache = cache_of_thread();
  count(cache, -static_cast<int64_t>(block->capacity), 0);
  forbid_access(block);
  const std::size_t size_class = block->size_class;
  if (size_class == large_class) return pool().put_large(block);
  if (cache == nullptr) return pool().put_small(size_class, block, block);
  block->next = cache->free[size_class];
  cache->free[size_class] = block;
  if (++cache->count[size_class] > most_of_class(size_class)) spill(*cache, size_class);
}

}  // namespace

StorageHandle allocate(std::size_t bytes) {
  if (bytes > std::size_t{std::numeric_limits<int64_t>::max() / 2}) {
    fail(bytes, "are more than any machine has", "Check the sizes of the shape.");
  }
  ThreadCache* const cache = cache_of_thread();
  const bool is_small = bytes <= small_limit;
  const std::size_t size_class = is_small ? class_of(bytes) : std::size_t{large_class};
  Block* block = nullptr;
  if (is_small && cache != nullptr && cache->free[size_class] != nullptr) {
    block = cache->free[size_class];
    cache->free[size_class] = block->next;
    --cache->count[size_class];
  } else if (has_fences()) {  // asked here: what has fences is in no cache
    return allocate_fenced(bytes);
  } else {
    block = is_small ? take_small(bytes, size_class, cache) : take_large(bytes, cache);
  }
  count(cache, static_cast<int64_t>(block->capacity), 1);
  allow_access(block);
  block->references.store(1, std::memory_order_relaxed);
  block->data = data_of(block);
  block->bytes = bytes;
  block->is_borrowed = false;
  block->release = release;
  return adopt<Storage>(block);
}

MemoryStatistics memory_statistics() {
  return pool().statistics();
}

MemoryStatistics memory_counts() {
  return pool().counts(PerThread<ThreadCache>::get());
}

void set_memory_budget(std::size_t bytes) {
  pool().set_budget(bytes);
}

void reset_peak_memory() {
  pool().reset_peak();
}

void release_cached_memory() {
  pool().release_cached();
  static_cast<void>(cache_of_thread());  // empties itself, as the others will
}

}  // namespace nitinol::host
