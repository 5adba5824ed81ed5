// KeptBlocks: memory for the outputs of a run that comes back for a later one.
//
// Results live as long as somebody holds them. Blocks of the allocator's that several results share
// come back in another order at each run; these come back together, each for the output it was for.
#pragma once

#include "core/backend.h"
#include "core/storage.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace nitinol::program {

/// A block per output, for one run at a time. Any thread may release what has been lent.
class KeptBlocks : public std::enable_shared_from_this<KeptBlocks> {
 public:
  /// One of each size; 0: none. Null if all that is kept so, of all Programs, were too much.
  [[nodiscard]] static std::shared_ptr<KeptBlocks> make(Backend& device,
                                                        std::span<const std::size_t> sizes);
  ~KeptBlocks();
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;

  /// Whether all that was lent has come back. Only who asks may lend() then.
  [[nodiscard]] bool is_free() const { return lent_.load(std::memory_order_acquire) == 0; }
  /// A storage for each block; a null one where there is none.
  [[nodiscard]] std::vector<StorageHandle> lend();
  /// Lets go what is not lent, and the rest when it comes back.
  void close() { blocks_.clear(); }

 private:
  struct Lent;
  explicit KeptBlocks(std::size_t bytes) : bytes_(bytes) {}

  const std::size_t bytes_;
  std::vector<StorageHandle> blocks_;
  std::atomic<std::size_t> lent_ = 0;
};

}  // namespace nitinol::program
