// GpuMemory: the allocator of a device's memory: caches blocks, since asking the driver takes
// hundreds of microseconds and waits for the device.
#pragma once

#include "backends/cuda/runtime/libraries.h"
#include "backends/cuda/runtime/segments.h"
#include "core/fork.h"
#include "core/memory.h"
#include "core/storage.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace nitinol::cuda {

class Gpu;

/// Blocks of 256-byte aligned memory by classes of sizes, eight between a power of two and the
/// next. Up to 16 MiB they are cut from segments; larger ones are the driver's own. A released
/// block may be handed out at once: what uses it next comes later on the device's stream. Up to
/// 512 KiB, and of the driver's own, it waits for one of its class; of those between it joins what
/// is free beside it, as a program whose sizes vary would otherwise keep a few blocks of each.
///
/// A block of more than 512 KiB that an upload has filled has an event, recorded when it is
/// released: the next upload into it waits for that, not for all that was asked for since. The
/// block that was released last would have it wait for the work it is to go beside, so a few are
/// kept in rotation.
class GpuMemory {
 public:
  GpuMemory(Gpu& gpu, Backend& owner) : gpu_(gpu), owner_(owner) {}
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  /// Gives back what is cached, and then what else is kept (core/kept_memory.h), before it throws
  /// Error(value), with the sizes.
  [[nodiscard]] StorageHandle allocate(std::size_t bytes);
  /// As allocate(); a large block is one that an upload waits little for, if it comes first.
  [[nodiscard]] StorageHandle allocate_for_upload(std::size_t bytes);
  /// Whether uploads into a block of so many bytes go beside other work.
  [[nodiscard]] static bool is_large(std::size_t bytes);
  /// An event behind all use of a large block until now; null if there was none, or it is over.
  [[nodiscard]] Driver::Event last_use(void* block);
  [[nodiscard]] MemoryStatistics statistics() const;
  void set_budget(std::size_t bytes);
  void release_cached();
  void reset_peak();

 private:
  friend void release_gpu_block(Storage* storage) noexcept;

  /// What is known of a block's use until now.
  enum class Use : uint8_t {
    unknown,   ///< it may be anything that was asked for
    recorded,  ///< it is before the block's event
    over,      ///< nothing that was asked for uses it any more
  };
  struct Uploaded {
    Driver::Event event = nullptr;
    Use use = Use::unknown;
  };
  /// Released blocks of a class that uploads leave alone, as they are still used.
  static constexpr std::size_t most_left_alone = 4;

  /// Segments, and of how many bytes they are asked for.
  struct Source {
    Segments segments;
    std::size_t segment_bytes;
  };

  [[nodiscard]] StorageHandle make_block(std::size_t bytes, bool is_for_upload);
  /// These return null if the budget or the device has no more.
  void* find(std::size_t bytes, bool is_for_upload);
  void* take(std::size_t class_bytes);
  void* take_for_upload(std::size_t class_bytes);
  [[nodiscard]] Segments::Cut take_fresh(std::size_t class_bytes);
  [[nodiscard]] Segments::Cut cut(Source& source, std::size_t class_bytes);
  void* ask_driver(std::size_t bytes);

  void* take_out(std::vector<void*>& blocks, std::vector<void*>::iterator at,
                 std::size_t class_bytes, Use use);
  /// What blocks of a class are cut from, or null.
  [[nodiscard]] Source* source_of(std::size_t class_bytes);
  [[nodiscard]] bool is_beyond_budget(std::size_t bytes) const {
    return budget_ != 0 && system_bytes() + bytes > budget_;
  }
  [[nodiscard]] bool recorded_now(Driver::Event event) const;
  void give(void* block, std::size_t class_bytes);
  /// Released blocks of the classes that join what is beside them do so, if they have waited.
  void join_waiting();
  void join(void* block, Source& source);
  void trim();
  void forget(void* block);
  [[noreturn]] void fail(std::size_t bytes, const char* why) const;
  [[nodiscard]] std::size_t system_bytes() const { return in_use_ + cached_; }

  Gpu& gpu_;
  Backend& owner_;
  mutable ForkSafeMutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;  ///< by class, the latest released last
  std::unordered_map<void*, Uploaded> uploaded_;    ///< of large blocks that uploads fill
  Source small_ = {.segments = {}, .segment_bytes = std::size_t{4} << 20};
  Source medium_ = {.segments = {}, .segment_bytes = std::size_t{32} << 20};
  std::size_t budget_ = 0, in_use_ = 0, peak_ = 0, cached_ = 0;
  uint64_t allocations_ = 0, system_allocations_ = 0;
};

/// The class of a block of so many bytes: at least as many.
[[nodiscard]] std::size_t block_bytes(std::size_t bytes);

}  // namespace nitinol::cuda
