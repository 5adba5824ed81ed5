#include "program/kept_blocks.h"

#include "core/error.h"

#include <numeric>
#include <utility>

namespace nitinol::program {
namespace {

/// Of all Programs. Larger results take what the allocator gives.
constexpr std::size_t most_bytes = std::size_t{256} << 20;
constinit std::atomic<std::size_t> kept_bytes = 0;

}  // namespace

/// The block as the storage of one result.
struct KeptBlocks::Lent : Storage {
  StorageHandle block;
  std::shared_ptr<KeptBlocks> from;

  static void give_back(Storage* storage) noexcept {
    const std::unique_ptr<Lent> lent(static_cast<Lent*>(storage));
    lent->block = nullptr;  // before it is free again
    lent->from->lent_.fetch_sub(1, std::memory_order_release);
  }
};

std::shared_ptr<KeptBlocks> KeptBlocks::make(Backend& device, std::span<const std::size_t> sizes) {
  const std::size_t bytes = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  if (kept_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes > most_bytes) {
    kept_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return nullptr;
  }
  std::shared_ptr<KeptBlocks> made(new KeptBlocks(bytes));
  try {
    for (const std::size_t size : sizes)
      made->blocks_.push_back(size > 0 ? device.allocate(size) : nullptr);
  } catch (const Error&) {
    return nullptr;  // whoever needs memory in any case will say so
  }
  return made;
}

KeptBlocks::~KeptBlocks() {
  kept_bytes.fetch_sub(bytes_, std::memory_order_relaxed);
}

std::vector<StorageHandle> KeptBlocks::lend() {
  std::vector<StorageHandle> storages;
  storages.reserve(blocks_.size());
  for (const StorageHandle& block : blocks_) {
    if (!block) {
      storages.emplace_back();
      continue;
    }
    auto lent = std::make_unique<Lent>();
    lent->data = block->data;
    lent->bytes = block->bytes;
    lent->backend = block->backend;
    lent->release = Lent::give_back;
    lent->block = block;
    lent->from = shared_from_this();
    lent_.fetch_add(1, std::memory_order_relaxed);
    storages.emplace_back(lent.release(), false);
  }
  return storages;
}

}  // namespace nitinol::program
