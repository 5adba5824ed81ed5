// Case: one launch of a kernel with the memory it reads and what it leaves there, to be repeated
// elsewhere.
#pragma once

#include "backends/cuda/text/schedule.h"
#include "core/function_ref.h"
#include "core/kernel.h"
#include "core/launch.h"

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace nitinol::test {

/// The memory of one operand: from the lowest to the highest element that its strides reach.
struct CaseMemory {
  int32_t same_as = -1;  ///< an earlier operand with the same first element, whose memory it is
  int64_t first = 0;     ///< bytes from the lowest element to that at index 0
  uint32_t misalignment = 0;  ///< of the element at index 0: its address modulo 64
  /// Inputs: `after` is empty. What lies between the elements is the same in both: it may be of
  /// another output, as of two pieces of one tensor.
  std::vector<std::byte> before, after;
};

struct Case {
  Kernel kernel;
  std::vector<int64_t> sizes, strides, offsets;
  std::vector<uint64_t> scalars;
  std::vector<CaseMemory> memory;  ///< per operand; empty for those without memory of the caller's
  uint32_t status = 0;             ///< what the checks came to

  /// The launch with these addresses, one an operand.
  [[nodiscard]] Launch launch(const std::vector<void*>& buffers, Status* status = nullptr) const;
};

/// The bytes that operand k of a launch reaches, from its first element: lowest and one past the
/// highest. Nothing if the launch is empty.
struct Reach {
  int64_t low, high;
};
[[nodiscard]] Reach reach_of(const Kernel& kernel, const Launch& launch, std::size_t k);

/// Calls take(offset in elements) for each point of operand k.
void for_each_element(const Case& value, std::size_t k, FunctionRef<void(int64_t offset)> take);

/// The schedule of a case; addresses matter by their remainders alone.
[[nodiscard]] cuda::Schedule schedule_of(const Case& value);

void write(std::ostream& out, const Case& value);
/// The next case, or nothing at the end. Throws Error(io) for what write() has not written.
[[nodiscard]] std::optional<Case> read_case(std::istream& in);

/// What differs between the results of `operand`, at `at`, and what the case expects there:
/// nothing, or a text. NaN equals NaN.
[[nodiscard]] std::string difference(const Case& value, std::size_t operand, const std::byte* at);

}  // namespace nitinol::test
