// KeptPacking: an operand of matrix products or convolutions that stays packed from call to call.
#pragma once

#include "core/backend.h"
#include "core/fork.h"
#include "core/graph.h"
#include "core/storage.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace nitinol::program {

/// Operand of a step: an offset into the memory of a value.
struct StepOperand {
  int64_t value = -1;  ///< -1: no memory
  int64_t byte_offset = 0;
};

/// Most bytes that are kept packed in the process; what does not fit is not packed.
inline constexpr std::size_t most_kept_bytes = std::size_t{256} << 20;

/// A constant or a Variable's value in packed form, kept while it stays what it is. Functions that
/// are const may be called by any thread.
class KeptPacking {
 public:
  /// `executable` packs `operand` into `bytes` bytes, the value `packed` of the Program.
  KeptPacking(StepOperand operand, Value packed, std::shared_ptr<const Executable> executable,
              std::size_t bytes)
      : operand_(operand),
        packed_value_(packed),
        executable_(std::move(executable)),
        bytes_(bytes) {}
  KeptPacking(const KeptPacking&) = delete;
  KeptPacking& operator=(const KeptPacking&) = delete;
  ~KeptPacking();

  /// The value whose memory it is in.
  [[nodiscard]] Value operand() const { return static_cast<Value>(operand_.value); }
  [[nodiscard]] Value packed() const { return packed_value_; }

  /// The packed form of these contents, which the operand's value at `memory` has; in memory of
  /// `device`. Null at their first call, while another thread packs them, and if there is no
  /// memory.
  [[nodiscard]] StorageHandle find(const ValueId& contents, std::byte* memory, Backend& device,
                                   int threads) const;

 private:
  [[nodiscard]] StorageHandle pack(std::byte* memory, Backend& device, int threads) const;
  [[nodiscard]] bool reserve() const;

  const StepOperand operand_;
  const Value packed_value_;
  const std::shared_ptr<const Executable> executable_;
  const std::size_t bytes_;

  mutable ForkSafeMutex mutex_;  ///< of all below
  mutable ValueId contents_;
  mutable bool is_known_ = false;    ///< contents_ are those of a call
  mutable bool is_packing_ = false;  ///< a thread is at it
  mutable bool is_reserved_ = false;
  mutable StorageHandle packed_;  ///< contents_, or null
};

}  // namespace nitinol::program
