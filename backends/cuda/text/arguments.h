// Fields: what the struct `Arguments` of a printed kernel consists of, in order.
#pragma once

#include "backends/cuda/text/schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nitinol::cuda {

struct Field {
  enum class Kind : uint8_t {
    gate,        ///< const u32*
    status,      ///< u32*
    counters,    ///< u32*
    workspace,   ///< u8*: where parts of results are
    results,     ///< u8*: where results of stages are
    memory,      ///< void*: the first element of an operand
    scalar,      ///< u64: its bits
    offset,      ///< i64: the first value of a position
    step,        ///< i64: of a position along a loop
    rows,        ///< Index: how many rows there are
    size,        ///< Index: of a loop
    stride,      ///< Index: of an operand along a loop, in elements
    groups,      ///< u32: parts of a row, split
    group_size,  ///< u32: rounds in a part, a power of two
  };
  Kind kind;
  uint16_t operand = 0;
  uint8_t loop = 0;
};

/// How many elements the last loop moves an operand in memory, 0 or 1, if the text says so itself.
/// An optimizer's updates are more at once for each number that is not passed.
[[nodiscard]] std::optional<int> known_stride(const Kernel& kernel, const Schedule& schedule,
                                              std::size_t operand);

/// The fields of eight bytes come first, so that there is no gap.
[[nodiscard]] std::vector<Field> fields_of(const Kernel& kernel, const Schedule& schedule);

/// How many ends of parts are passed: a power of two, so that a block of threads finds its part in
/// so many steps.
[[nodiscard]] std::size_t ends_of(std::size_t parts);

/// Bytes of the arguments of `parts` launches made as one: their ends, unless it is one, and the
/// fields of each, padded to eight bytes.
[[nodiscard]] std::size_t argument_bytes(const std::vector<Field>& fields, const Schedule& schedule,
                                         std::size_t parts);

/// How the text calls a field; `a.` stands before it.
[[nodiscard]] std::string name_of(const Field& field);

}  // namespace nitinol::cuda
