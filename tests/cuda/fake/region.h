// Region: the device memory of the fake driver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <sys/mman.h>

namespace nitinol::test {

inline constexpr std::size_t region_bytes = std::size_t{8} << 30, block_alignment = 512;
inline constexpr std::size_t large = std::size_t{1} << 20;
/// A number of the environment's.
inline std::size_t number_of(const char* name, std::size_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Addresses at which only the device's own work may read and write.
class Region {
 public:
  Region() {
    void* const at = ::mmap(nullptr, region_bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) std::abort();
    // Changing the protection costs by the number of pages that are there.
    ::madvise(at, region_bytes, MADV_HUGEPAGE);
    base_ = static_cast<std::byte*>(at);
    key_ = ::pkey_alloc(0, PKEY_DISABLE_ACCESS);
    if (key_ >= 0 && ::pkey_mprotect(at, region_bytes, PROT_READ | PROT_WRITE, key_) != 0)
      std::abort();
    free_[0] = region_bytes;
  }
  /// By a protection key where the processor has them: for the calling thread alone, and a
  /// thousand times faster than changing the pages.
  void open(bool is_open) const {
    if (key_ >= 0) {
      if (::pkey_set(key_, is_open ? 0 : PKEY_DISABLE_ACCESS) != 0) std::abort();
      return;
    }
    if (::mprotect(base_, region_bytes, is_open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
      std::abort();
  }
  uint64_t allocate(std::size_t bytes) {
    const std::size_t size = (bytes + block_alignment - 1) / block_alignment * block_alignment;
    if (used_ + size > budget()) return 0;
    const auto found =
        std::ranges::find_if(free_, [&](const auto& piece) { return piece.second >= size; });
    if (found == free_.end()) return 0;
    const auto [offset, room] = *found;
    free_.erase(found);
    if (room > size) free_[offset + size] = room - size;
    used_ += size;
    live_[offset] = bytes;
    return reinterpret_cast<uint64_t>(base_ + offset);
  }
  bool release(uint64_t address) {
    const auto found = live_.find(address - reinterpret_cast<uint64_t>(base_));
    if (found == live_.end()) return false;
    const std::size_t size =
        (found->second + block_alignment - 1) / block_alignment * block_alignment;
    used_ -= size;
    if (size >= large) forget(found->first, found->first + size);
    auto piece = free_.emplace(found->first, size).first;
    live_.erase(found);
    if (const auto next = std::next(piece);
        next != free_.end() && piece->first + piece->second == next->first) {
      piece->second += next->second;
      free_.erase(next);
    }
    if (piece != free_.begin()) {
      if (const auto before = std::prev(piece); before->first + before->second == piece->first) {
        before->second += piece->second;
        free_.erase(piece);
      }
    }
    return true;
  }
  /// Whether the range lies in one allocation.
  [[nodiscard]] bool holds(uint64_t address, std::size_t bytes) const {
    const uint64_t offset = address - reinterpret_cast<uint64_t>(base_);
    auto found = live_.upper_bound(offset);
    if (found == live_.begin()) return false;
    --found;
    const std::size_t before = offset - found->first;
    return before <= found->second && bytes <= found->second - before;
  }
  [[nodiscard]] std::size_t live() const { return live_.size(); }
  /// The memory that a device has: NITINOL_FAKE_MEMORY.
  [[nodiscard]] static std::size_t budget() {
    return std::min(number_of("NITINOL_FAKE_MEMORY", region_bytes), region_bytes);
  }

 private:
  /// Gives back the pages that lie between two offsets.
  void forget(std::size_t first, std::size_t last) const {
    constexpr std::size_t page = 4096;
    const std::size_t begin = (first + page - 1) / page * page, end = last / page * page;
    ::madvise(base_ + begin, end - begin, MADV_DONTNEED);
  }

  std::byte* base_ = nullptr;
  int key_ = -1;
  std::size_t used_ = 0;
  std::map<std::size_t, std::size_t> live_, free_;  ///< offset to bytes
};

}  // namespace nitinol::test
