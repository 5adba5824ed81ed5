// Launch: what a step is run on.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace nitinol {

/// Where in-kernel checks report. Nonzero means failed; the results must be discarded.
struct Status {
  enum Code : uint32_t {
    ok = 0,
    index_out_of_range = 1,
    division_by_zero = 2,
    number_out_of_range = 3
  };
  std::atomic<uint32_t> code = ok;
};

/// What some launches leave in their Status, on its way to the host.
class PostedStatus {
 public:
  virtual ~PostedStatus() = default;
  /// Whether it has arrived.
  [[nodiscard]] virtual bool is_there() = 0;
  /// Waits for it. Throws what the device has failed with.
  virtual Status::Code wait() = 0;
};

/// All that varies from launch to launch; everything else is in the Executable.
/// For a LibraryCall only buffers, scratch, status and threads are used.
struct Launch {
  std::span<void* const> buffers;  ///< per operand: its first element; null for scalar and position
  std::span<const int64_t> sizes;  ///< per loop, outermost first, simplified (core/loop_nest.h)
  std::span<const int64_t> strides;  ///< [operand][dimension], in elements
  std::span<const int64_t>
      offsets;  ///< per operand: first value of a position; may be empty if there is none
  std::span<const uint64_t>
      scalars;  ///< per operand: bits of a scalar, in its dtype, in the low bytes
  Status* status = nullptr;
  /// On an asynchronous device: a Kernel does nothing if `status` is not ok when it runs. Library
  /// calls need not heed it.
  bool is_gated = false;
  int threads = 1;
};

}  // namespace nitinol
