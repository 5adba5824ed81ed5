#include "backends/cuda/runtime/gpu_memory.h"

#include "backends/cuda/runtime/gpu.h"
#include "core/backend.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <mutex>
#include <utility>

namespace nitinol::cuda {
namespace {

constexpr std::size_t smallest = 256, most_small = std::size_t{512} << 10;
constexpr std::size_t segment_size = std::size_t{4} << 20;
constexpr int out_of_memory = 2;

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
  const Entered entered = gpu_.enter();
  const std::size_t class_bytes = block_bytes(bytes);
  auto block = std::make_unique<GpuBlock>();
  {
    const std::lock_guard lock(mutex_);
    ++allocations_;
    block->data = is_for_upload ? take_for_upload(class_bytes) : take(class_bytes);
    in_use_ += class_bytes;
    peak_ = std::max(peak_, in_use_);
  }
  block->bytes = bytes;
  block->backend = &owner_;
  block->release = release_gpu_block;
  block->memory = this;
  block->class_bytes = class_bytes;
  return StorageHandle(block.release(), false);
}

void* GpuMemory::take(std::size_t class_bytes) {
  std::vector<void*>& blocks = free_[class_bytes];
  if (blocks.empty()) return class_bytes <= most_small ? cut(class_bytes) : ask_driver(class_bytes);
  return take_out(blocks, std::prev(blocks.end()), class_bytes, Use::unknown);
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
  void* fresh = nullptr;
  if (used == 0) fresh = ask_driver(class_bytes);
  if (used > 0 && used < most_left_alone) fresh = try_driver(class_bytes);
  if (fresh == nullptr) return take_out(blocks, oldest, class_bytes, Use::recorded);
  uploaded_[fresh].use = Use::over;
  return fresh;
}

void* GpuMemory::cut(std::size_t class_bytes) {
  if (segment_bytes_ < class_bytes) {
    auto* const fresh = static_cast<std::byte*>(ask_driver(segment_size));
    // What is left of the old one becomes blocks of the smaller classes.
    while (segment_bytes_ >= smallest) {
      const std::size_t piece = std::bit_floor(segment_bytes_);
      free_[piece].push_back(segment_);
      segment_ += piece;
      segment_bytes_ -= piece;
    }
    segment_ = fresh;
    segment_bytes_ = segment_size;
    cached_ += segment_size;
  }
  void* const block = segment_;
  segment_ += class_bytes;
  segment_bytes_ -= class_bytes;
  cached_ -= class_bytes;
  return block;
}

void* GpuMemory::ask_driver(std::size_t bytes) {
  if (void* const block = try_driver(bytes)) return block;
  trim();
  if (is_beyond_budget(bytes)) fail(bytes, "it is beyond the budget");
  void* const block = try_driver(bytes);
  if (block == nullptr) fail(bytes, "the device has no more");
  return block;
}

void* GpuMemory::try_driver(std::size_t bytes) {
  if (is_beyond_budget(bytes)) return nullptr;
  Driver::Address address = 0;
  const int result = driver().cuMemAlloc_v2(&address, bytes);
  if (result == out_of_memory) return nullptr;
  gpu_.check(result, "allocating memory");
  ++system_allocations_;
  return reinterpret_cast<void*>(address);  // NOLINT: an address of the device
}

void GpuMemory::give(void* block, std::size_t class_bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto found = uploaded_.find(block); found != uploaded_.end())
    found->second.use = recorded_now(found->second.event) ? Use::recorded : Use::unknown;
  free_[class_bytes].push_back(block);
  in_use_ -= class_bytes;
  cached_ += class_bytes;
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
  driver().cuStreamSynchronize(gpu_.stream());  // what was released may still be used there
  for (auto& [class_bytes, blocks] : free_) {
    if (class_bytes <= most_small) continue;
    // What the driver does not take back can still be used.
    cached_ -= class_bytes * std::erase_if(blocks, [&](void* block) {
                 if (driver().cuMemFree_v2(reinterpret_cast<Driver::Address>(block)) != 0)
                   return false;
                 forget(block);
                 return true;
               });
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
  const Entered entered = gpu_.enter();
  const std::lock_guard lock(mutex_);
  trim();
}

void GpuMemory::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = in_use_;
}

}  // namespace nitinol::cuda
