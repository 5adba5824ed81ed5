#include "dist/shared_memory.h"

#include "core/descriptor.h"
#include "core/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace nitinol::dist {
namespace {

/// At the beginning of the memory, so that members know that theirs is the same: where processes
/// are numbered apart, as in containers, another one may have the number.
using Mark = std::array<std::byte, 16>;
/// Before the slots.
constexpr std::size_t head_bytes = 4096;

/// How a process finds the memory of member 0.
struct Place {
  int64_t process = 0, file = -1;
  Mark mark = {};
};

std::string failure_text(const char* what) {
  return fmt::format("{}: {}", what, std::strerror(errno));
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return {reinterpret_cast<const std::byte*>(&value), sizeof(value)};
}

/// Memory without a name. What nobody writes to takes none.
Descriptor made(std::size_t bytes, std::string& reason) {
  Descriptor file(::memfd_create("nitinol dist", MFD_CLOEXEC));
  if (!file.is_open() || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    reason = failure_text("making memory to share");
    return {};
  }
  return file;
}

/// That of another process of this user's.
Descriptor found(const Place& place, std::size_t bytes, std::string& reason) {
  if (place.file < 0) return {};
  const std::string path = fmt::format("/proc/{}/fd/{}", place.process, place.file);
  Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status = {};
  if (!file.is_open()) {
    reason = failure_text(path.c_str());
  } else if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
             status.st_size != static_cast<off_t>(bytes)) {
    reason = path + " is something else";
    return {};
  }
  return file;
}

std::span<std::byte> mapped(const Descriptor& file, std::size_t bytes, std::string& reason) {
  if (!file.is_open()) return {};
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at != MAP_FAILED) return {static_cast<std::byte*>(at), bytes};
  reason = failure_text("mapping memory that is shared");
  return {};
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::open(int rank, int size, Gather gather,
                                                 std::string& reason) {
  const std::size_t bytes = head_bytes + 2 * slot_bytes * static_cast<std::size_t>(size);
  Descriptor file;
  std::span<std::byte> memory;
  Place place;
  if (rank == 0 && reason.empty()) {
    file = made(bytes, reason);
    memory = mapped(file, bytes, reason);
    if (!memory.empty() && ::getrandom(&place.mark, sizeof(place.mark), 0) ==
                               static_cast<ssize_t>(sizeof(place.mark))) {
      place.process = ::getpid();
      place.file = file.get();
      std::memcpy(memory.data(), &place.mark, sizeof(place.mark));
    }
  }
  const std::vector<std::byte> places = gather(bytes_of(place));
  std::memcpy(&place, places.data(), sizeof(place));
  if (rank != 0 && reason.empty()) memory = mapped(found(place, bytes, reason), bytes, reason);
  std::unique_ptr<SharedMemory> result(new SharedMemory(memory, rank));
  const bool is_it = !memory.empty() && std::memcmp(memory.data(), &place.mark, sizeof(Mark)) == 0;
  if (!memory.empty() && !is_it) reason = "another process has the number of rank 0";
  const std::vector<std::byte> all = gather(bytes_of(is_it));
  const auto has_it = [](std::byte answer) { return answer != std::byte{0}; };
  return std::ranges::all_of(all, has_it) ? std::move(result) : nullptr;
}

SharedMemory::~SharedMemory() {
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

std::size_t SharedMemory::begin_of(int member) const {
  return head_bytes + (2 * static_cast<std::size_t>(member) + turn_) * slot_bytes;
}

// Where two cores have no cache in common, a store to what the other has read waits until that
// lets go of it: 2 to 4 GB/s, where stores that go past the caches take 6 to 12 (near cores: 10 to
// 40). Which it is changes as threads are moved, so the end of each part is stored as usual, and
// looked at.
void SharedMemory::put(std::size_t place, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t sample = 4096;
  constexpr double slow = 5e9;  // bytes a second
  std::byte* const to = memory_.data() + begin_of(rank_) + place;
  const std::size_t first = bytes > sample ? bytes - sample : 0;
  if (slow_stores_ > most_slow_stores / 2) {
    stream(to, from, first);
    finish_streams();
  } else if (first > 0) {
    std::memcpy(to, from, first);
  }
  const auto began = std::chrono::steady_clock::now();
  if (bytes > first) std::memcpy(to + first, from + first, bytes - first);
  std::atomic_thread_fence(std::memory_order_release);
  if (first == 0) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const bool is_slow = static_cast<double>(sample) < slow * took.count();
  slow_stores_ = std::clamp(slow_stores_ + (is_slow ? 1 : -1), 0, most_slow_stores);
}

}  // namespace nitinol::dist
