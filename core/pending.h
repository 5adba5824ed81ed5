// Pending tensors: results of ops that have been applied but not computed. Only a call of a
// compiled function that looks at data has them (tracer/deferred.h), and none outlives it.
#pragma once

#include "core/interpreter.h"
#include "core/op.h"
#include "core/tensor.h"

#include <cstdint>

namespace nitinol {

/// The call that keeps what it is asked for to itself until somebody looks.
class PendingCall {
 public:
  PendingCall() = default;
  virtual ~PendingCall() = default;
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;

  /// The pending result of `op`; undefined if the op is to be run as always.
  virtual Tensor match(const Op& op, Inputs inputs, const Attrs& attrs) = 0;
  /// The same of an op whose operand that is null is a host number, of this spec and bits.
  virtual Tensor match(const Op& op, Inputs inputs, const Spec& number, uint64_t bits) = 0;
  /// A tensor with the same elements, but without a tape: bare_copy() of a pending one of its own.
  virtual Tensor copy(const Tensor& tensor) = 0;
  /// Whether it has made this tensor.
  [[nodiscard]] virtual bool owns(const TensorData& data) const = 0;
  /// Computes this one, at least; on its own thread.
  virtual void compute(const TensorData& data) = 0;
  /// Computes this one; on another thread, while its own goes on.
  virtual void compute_elsewhere(const TensorData& data) = 0;
};

/// Whether the elements are not there yet.
[[nodiscard]] inline bool is_pending(const TensorData& data) {
  return data.memory.load(std::memory_order_acquire) == TensorData::Memory::pending;
}

/// The only way from pending to memory: afterwards the elements are there, unless computing them
/// has failed before. Does nothing to other tensors. Throws what computing them throws.
void materialise(const TensorData& data);

/// While it lives, other threads find the call by the `trace` of its tensors. Its end waits for
/// those that compute.
class PendingCallEntry {
 public:
  PendingCallEntry(uint64_t trace, PendingCall& call);
  ~PendingCallEntry();
  PendingCallEntry(const PendingCallEntry&) = delete;
  PendingCallEntry& operator=(const PendingCallEntry&) = delete;

 private:
  uint64_t trace_;
};

}  // namespace nitinol
