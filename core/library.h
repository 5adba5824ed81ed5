// LibraryCall: the closed list of work that backends know by name rather than as scalar
// instructions.
#pragma once

#include "core/dtype.h"
#include "core/shape.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace nitinol {

/// Shape, strides (in elements) and dtype of one operand, exactly as the call will get it.
struct OperandLayout {
  DType dtype = f32;
  Shape shape;
  Strides strides;
  friend bool operator==(const OperandLayout&, const OperandLayout&) = default;
};

/// One call into a vendor library, or a prebuilt routine of the backend. The whole struct is its
/// key.
struct LibraryCall {
  enum class Kind : uint8_t {
    matmul,  ///< operands a[..., m, k], b[..., k, n] (batch dims broadcast by stride 0) -> c[...,
             ///< m, n]
    take,    ///< operands table[rows, ...], indices i64 -> out; checks -rows <= index < rows
             ///< (status: index); negative ones count from the end
    scatter_add,  ///< operands values, indices i64 -> out[rows, ...], the opposite of take; checks
                  ///< and negative indices likewise
    check_nonzero,  ///< operands in -> out, an equal integer tensor; checks that no element is 0
                    ///< (status: division)
  };
  Kind kind = Kind::matmul;
  std::vector<OperandLayout> operands;  ///< inputs, then the output
  int threads = 0;  ///< the thread count it was made for; results may depend on it
  friend bool operator==(const LibraryCall&, const LibraryCall&) = default;
};

[[nodiscard]] std::string_view name_of(LibraryCall::Kind kind);

}  // namespace nitinol
