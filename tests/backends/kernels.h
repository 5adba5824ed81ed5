// Kernels made by hand, and launches of them on plain vectors, for tests of the backends.
#pragma once

#include "core/backend.h"
#include "core/executables.h"
#include "core/kernel.h"
#include "core/op.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nitinol::test {

/// Reads operand 0 at each point, accumulates it, stores the result in operand 1.
Kernel reduction(Combine combine, DType input, DType output, Order order,
                 StrideClass inner = StrideClass::one, StrideClass outer = StrideClass::one);

/// One elementwise op, as eager runs it, on operands of these roles, dtypes and classes.
Kernel elementwise(const Op& op, std::span<const Operand> operands);

/// Looks up. Operands: indices, how many there are to choose from and their distance (scalars),
/// what is chosen from, the result.
Kernel lookup(std::span<const Operand> operands);

/// What Launch borrows, owned. Strides are [operand][dimension], in elements.
struct Call {
  std::vector<void*> buffers;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::vector<int64_t> offsets = {};
  std::vector<uint64_t> scalars = {};
  int threads = 1;
  bool is_specialised = false;  ///< launched as a Plan would, by what is made for these sizes

  [[nodiscard]] Launch launch(Status* status = nullptr) const {
    return {.buffers = buffers,
            .sizes = sizes,
            .strides = strides,
            .offsets = offsets,
            .scalars = scalars,
            .status = status,
            .threads = threads};
  }
  /// Prepares the step on the device and launches it.
  void run(const Step& step, Device::Kind kind = Device::Kind::cpu, Status* status = nullptr) const;
};

/// A reproducible stream of numbers.
class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : state_(seed * 2654435761 + 1) {}
  uint32_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<uint32_t>(state_ >> 33);
  }
  int64_t below(int64_t limit) { return next() % limit; }
  /// Magnitudes from 2^-8 to 2^8 and both signs: sums round at every step.
  double real() {
    const double magnitude = static_cast<double>(next() % 65536 + 1) / 256.0;
    return (next() & 1) != 0 ? magnitude : -1.0 / magnitude;
  }
  template <class T>
  std::vector<T> reals(int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) value = static_cast<T>(real());
    return values;
  }

 private:
  uint64_t state_;
};

}  // namespace nitinol::test
