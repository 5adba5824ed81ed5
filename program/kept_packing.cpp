// Packing costs as much as it saves in some calls, so that only contents are packed which a second
// call meets. One thread packs them; others that ask meanwhile run without.
#include "program/kept_packing.h"

#include "core/error.h"
#include "core/launch.h"

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

namespace nitinol::program {
namespace {

std::atomic<std::size_t> reserved_bytes = 0;

}  // namespace

KeptPacking::~KeptPacking() {
  if (is_reserved_) reserved_bytes -= bytes_;
}

StorageHandle KeptPacking::find(const ValueId& contents, std::byte* memory, Backend& device,
                                int threads) const {
  StorageHandle old;  // released after the lock
  {
    const std::lock_guard lock(mutex_);
    if (!is_known_ || contents_ != contents) {
      contents_ = contents;
      is_known_ = true;
      std::swap(old, packed_);
      return {};
    }
    if (packed_ || is_packing_ || !reserve()) return packed_;
    is_packing_ = true;
  }
  StorageHandle packed = pack(memory, device, threads);
  const std::lock_guard lock(mutex_);
  is_packing_ = false;
  if (contents_ == contents) packed_ = packed;
  return packed;
}

/// Null if there is no memory: it runs as well without.
StorageHandle KeptPacking::pack(std::byte* memory, Backend& device, int threads) const {
  try {
    StorageHandle packed = device.allocate(bytes_);
    const std::array<void*, 2> buffers = {memory + operand_.byte_offset, packed->data};
    Launch launch;
    launch.buffers = buffers;
    launch.threads = threads;
    executable_->launch(launch);
    return packed;
  } catch (const Error&) {
    return {};
  }
}

bool KeptPacking::reserve() const {
  if (is_reserved_) return true;
  is_reserved_ = reserved_bytes.fetch_add(bytes_) + bytes_ <= most_kept_bytes;
  if (!is_reserved_) reserved_bytes -= bytes_;
  return is_reserved_;
}

}  // namespace nitinol::program
