// Lowering: a group of nodes becomes a Kernel, and a description of the arguments to launch it
// with.
#pragma once

#include "core/device_limits.h"
#include "core/graph.h"
#include "core/kernel.h"
#include "fusion/fuse.h"

#include <cstdint>
#include <vector>

namespace nitinol::fusion {

/// Where an operand of a lowered kernel comes from at each call.
struct OperandOrigin {
  enum class Kind : uint8_t {
    memory,    ///< the buffer of `value`, from element `offset` on
    constant,  ///< the number `bits`
    scalar,    ///< the Scalar argument that graph input `value` stands for
    position,  ///< the index itself, from `offset` on
    scratch,   ///< nowhere: the kernel's own
  };
  Kind kind = Kind::memory;
  Value value = 0;
  int64_t offset = 0;
  uint64_t bits = 0;
};

/// A kernel with everything that launches need but addresses and run-time scalars.
struct Lowered {
  Kernel kernel;
  std::vector<OperandOrigin> origins;  ///< per operand
  std::vector<int64_t> sizes;          ///< per loop dimension
  std::vector<int64_t> strides;        ///< [operand][dimension], in elements
  std::vector<int64_t> offsets;        ///< per operand: first value of a position
};

/// A strided region of one value's memory, copied to one of another's. Strides and offsets in
/// elements.
struct Copy {
  Shape shape;
  Value from = 0;
  Strides from_strides;
  int64_t from_offset = 0;
  Value to = 0;
  Strides to_strides;
  int64_t to_offset = 0;
};

/// The kernel of a copy.
[[nodiscard]] Lowered lower_copy(DType dtype, const Copy& copy);

/// False for dead code: no step reads what the group makes, and it checks nothing.
[[nodiscard]] bool is_needed(const Graph& graph, const Fusion& fusion, const Group& group);

/// The kernel that computes the members of `group` and stores those that must be in memory, for a
/// device of these limits.
[[nodiscard]] Lowered lower(const Graph& graph, const Fusion& fusion, const Group& group,
                            const DeviceLimits& limits);

}  // namespace nitinol::fusion
