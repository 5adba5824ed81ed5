#include "backends/cuda/runtime/gpu_memory.h"

#include "backends/cuda/runtime/gpu.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/kept_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <mutex>
#include <utility>

namespace nitinol::cuda {
namespace {

constexpr std::size_t smallest = 256, most_small = std::size_t{512} << 10;
constexpr std::size_t most_cut = std::size_t{16} << 20;
constexpr int out_of_memory = 2;

/// Whether a released block of the class joins what is free beside it.
bool joins(std::size_t class_bytes) {
  return class_bytes > most_small && class_bytes <= most_cut;
}

struct GpuBlock : Storage {
  GpuMemory* memory = nullptr;
  std::size_t class_bytes = 0;
};

}  // namespace

std::size_t block_bytes(std::size_t bytes) {
  if (bytes <= smallest) return smallest;
  const std::size_t step = std::max(smallest, std::bit_floor(bytes - 1) / 8);
  return (bytes + step - 1) / step * step;
}

void release_gpu_block(Storage* storage) noexcept {
  auto* const block = static_cast<GpuBlock*>(storage);
  block->memory->give(block->data, block->class_bytes);
  delete block;
}

StorageHandle GpuMemory::allocate(std::size_t bytes) {
  return make_block(bytes, false);
}

StorageHandle GpuMemory::allocate_for_upload(std::size_t bytes) {
  return make_block(bytes, is_large(bytes));
}

StorageHandle GpuMemory::make_block(std::size_t bytes, bool is_for_upload) {
  if (bytes > SIZE_MAX / 2) fail(bytes, "no device has so much");
  gpu_.expect_usable();
  auto block = std::make_unique<GpuBlock>();
  block->data = find(bytes, is_for_upload);
  block->bytes = bytes;
  block->backend = &owner_;
  block->release = release_gpu_block;
  block->memory = this;
  block->class_bytes = block_bytes(bytes);
  return StorageHandle(block.release(), false);
}

void* GpuMemory::find(std::size_t bytes, bool is_for_upload) {
  const std::size_t class_bytes = block_bytes(bytes);
  const auto try_it = [&]() -> void* {
    void* const block = is_for_upload ? take_for_upload(class_bytes) : take(class_bytes);
    if (block == nullptr) return nullptr;
    ++allocations_;
    in_use_ += class_bytes;
    peak_ = std::max(peak_, in_use_);
    return block;
  };
  {
    const std::lock_guard lock(mutex_);
    if (void* const block = try_it()) [[likely]]
      return block;
    trim();
    if (void* const block = try_it()) return block;
  }
  KeptMemory::give_back_all(owner_);  // without the lock, which releasing takes
  const std::lock_guard lock(mutex_);
  trim();
  if (void* const block = try_it()) return block;
  fail(bytes, is_beyond_budget(class_bytes) ? "it is beyond the budget" : "the device has no more");
}

GpuMemory::Source* GpuMemory::source_of(std::size_t class_bytes) {
  if (class_bytes <= most_small) return &small_;
  return class_bytes <= most_cut ? &medium_ : nullptr;
}

void* GpuMemory::take(std::size_t class_bytes) {
  if (joins(class_bytes)) {
    if (!medium_.segments.has_room(class_bytes)) join_waiting();  // before the driver is asked
    return cut(medium_, class_bytes).block;
  }
  std::vector<void*>& blocks = free_[class_bytes];
  if (!blocks.empty()) return take_out(blocks, std::prev(blocks.end()), class_bytes, Use::unknown);
  return take_fresh(class_bytes).block;
}

Segments::Cut GpuMemory::take_fresh(std::size_t class_bytes) {
  if (Source* const source = source_of(class_bytes)) return cut(*source, class_bytes);
  return {.block = ask_driver(class_bytes), .is_unused = true};
}

Segments::Cut GpuMemory::cut(Source& source, std::size_t class_bytes) {
  Segments::Cut made = source.segments.cut(class_bytes);
  // Where there is no room for a segment there may be for the block.
  for (const std::size_t bytes : {source.segment_bytes, class_bytes}) {
    if (made.block != nullptr) break;
    void* const segment = ask_driver(bytes);
    if (segment == nullptr) continue;
    source.segments.add(segment, bytes);
    cached_ += bytes;
    made = source.segments.cut(class_bytes);
  }
  if (made.block != nullptr) cached_ -= class_bytes;
  return made;
}

void* GpuMemory::take_out(std::vector<void*>& blocks, std::vector<void*>::iterator at,
                          std::size_t class_bytes, Use use) {
  void* const block = *at;
  blocks.erase(at);
  cached_ -= class_bytes;
  if (const auto found = uploaded_.find(block); found != uploaded_.end()) found->second.use = use;
  return block;
}

void* GpuMemory::take_for_upload(std::size_t class_bytes) {
  const Entered entered = gpu_.enter();
  std::vector<void*>& blocks = free_[class_bytes];
  auto oldest = blocks.end();
  std::size_t used = 0;
  for (auto at = blocks.begin(); at != blocks.end(); ++at) {
    const auto found = uploaded_.find(*at);
    if (found == uploaded_.end() || found->second.use != Use::recorded) continue;
    // What cannot be told is not over.
    if (driver().cuEventQuery(found->second.event) == 0)
      return take_out(blocks, at, class_bytes, Use::over);
    if (used++ == 0) oldest = at;
  }
  if (used == 0 && !blocks.empty()) return take(class_bytes);
  if (used < most_left_alone) {
    const auto [fresh, is_unused] = take_fresh(class_bytes);
    if (fresh != nullptr) uploaded_[fresh].use = is_unused ? Use::over : Use::unknown;
    if (fresh != nullptr || used == 0) return fresh;
  }
  return take_out(blocks, oldest, class_bytes, Use::recorded);
}

void* GpuMemory::ask_driver(std::size_t bytes) {
  if (is_beyond_budget(bytes)) return nullptr;
  const Entered entered = gpu_.enter();
  Driver::Address address = 0;
  const int result = driver().cuMemAlloc_v2(&address, bytes);
  if (result == out_of_memory) return nullptr;
  gpu_.check(result, "allocating memory");
  ++system_allocations_;
  return reinterpret_cast<void*>(address);  // NOLINT: an address of the device
}

void GpuMemory::give(void* block, std::size_t class_bytes) {
  const std::lock_guard lock(mutex_);
  in_use_ -= class_bytes;
  cached_ += class_bytes;
  const auto found = uploaded_.find(block);
  if (found == uploaded_.end() && joins(class_bytes)) return medium_.segments.give(block);
  if (found != uploaded_.end())
    found->second.use = recorded_now(found->second.event) ? Use::recorded : Use::unknown;
  free_[class_bytes].push_back(block);
}

void GpuMemory::join_waiting() {
  const Entered entered = gpu_.enter();
  for (auto& [class_bytes, blocks] : free_) {
    if (!joins(class_bytes)) continue;
    for (void* const block : blocks) join(block, medium_);
    blocks.clear();
  }
}

void GpuMemory::join(void* block, Source& source) {
  forget(block);
  source.segments.give(block);
}

bool GpuMemory::recorded_now(Driver::Event event) const {
  if (event == nullptr) return false;
  try {
    const Entered entered = gpu_.enter();
    return driver().cuEventRecord(event, gpu_.stream()) == 0;
  } catch (const Error&) {
    return false;
  }
}

void GpuMemory::trim() {
  const Entered entered = gpu_.enter();
  driver().cuStreamSynchronize(gpu_.stream());  // what was released may still be used there
  // What the driver does not take back can still be used.
  const auto release = [](void* block) {
    return driver().cuMemFree_v2(Driver::address_of(block)) == 0;
  };
  for (auto& [class_bytes, blocks] : free_) {
    Source* const source = source_of(class_bytes);
    std::erase_if(blocks, [&](void* block) {
      if (source != nullptr) {
        join(block, *source);
        return true;
      }
      if (!release(block)) return false;
      forget(block);
      cached_ -= class_bytes;
      return true;
    });
  }
  for (Source* const source : {&small_, &medium_}) {
    source->segments.note_done();
    cached_ -= source->segments.release_whole(release);
  }
}

void GpuMemory::forget(void* block) {
  const auto found = uploaded_.find(block);
  if (found == uploaded_.end()) return;
  if (found->second.event != nullptr) driver().cuEventDestroy_v2(found->second.event);
  uploaded_.erase(found);
}

bool GpuMemory::is_large(std::size_t bytes) {
  return block_bytes(bytes) > most_small;
}

Driver::Event GpuMemory::last_use(void* block) {
  const std::lock_guard lock(mutex_);
  Uploaded& uploaded = uploaded_[block];
  if (uploaded.event == nullptr)  // also for when the block is released
    gpu_.check(driver().cuEventCreate(&uploaded.event, Driver::no_timing), "making an event");
  if (uploaded.use == Use::unknown)
    gpu_.check(driver().cuEventRecord(uploaded.event, gpu_.stream()), "recording an event");
  // From now on this upload is one.
  return std::exchange(uploaded.use, Use::unknown) == Use::over ? nullptr : uploaded.event;
}

void GpuMemory::fail(std::size_t bytes, const char* why) const {
  throw Error(ErrorKind::value,
              {.where = "allocate",
               .what = fmt::format("no {} bytes of {}: {}", bytes, describe(owner_.device()), why),
               .got = fmt::format("{} bytes in use, {} cached{}", in_use_, cached_,
                                  budget_ != 0 ? fmt::format(", a budget of {}", budget_) : ""),
               .fix = "Use smaller batches, or release tensors that are no longer needed."});
}

MemoryStatistics GpuMemory::statistics() const {
  const std::lock_guard lock(mutex_);
  return {.in_use = in_use_,
          .peak = peak_,
          .cached = cached_,
          .allocations = allocations_,
          .system_allocations = system_allocations_};
}

void GpuMemory::set_budget(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  budget_ = bytes;
}

void GpuMemory::release_cached() {
  const std::lock_guard lock(mutex_);
  trim();
}

void GpuMemory::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = in_use_;
}

}  // namespace nitinol::cuda
