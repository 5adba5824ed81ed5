// Running one op now: loops over its operands, a prepared kernel, a launch.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <cstdint>
#include <span>

namespace nitinol {
struct Kernel;
struct Status;
}  // namespace nitinol

namespace nitinol::eager {

/// Stores the result of the op's formula into the memory that `out` views. Inputs broadcast to
/// out's shape and overlap it nowhere. `status`: of an op with a check.
void compute_into(const Op& op, Inputs inputs, const Tensor& out, Status* status = nullptr);

/// The same for an op with a check. Throws its error if that fails.
void compute_checked(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& out);

/// The elementwise op's result, for operands that nobody watches: one shape, dtype and device,
/// row-major without gaps, or numbers. An undefined tensor for all others.
[[nodiscard]] Tensor compute_alike(const Op& op, Inputs inputs);

/// Stores the reduction of `x` over `axes` (normalised) into `out`, contiguous; x has elements.
void reduce_into(const Op& op, const Tensor& x, const Dims& axes, const Tensor& out);

/// Stores the elements that an index op looks up into `out`, contiguous and not empty. Throws
/// Error(value) for an index that names none.
void look_up_into(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& out);

/// Calls the backend's routine that a library or index op names. Throws Error(value) if a check
/// inside fails.
void call_into(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& out);
/// The same of an op of several results.
void call_into(const Op& op, Inputs inputs, const Attrs& attrs, std::span<const Tensor> results);

/// A number as a tensor in memory of `device`; other tensors as they are.
[[nodiscard]] Tensor in_memory(const Tensor& x, Device device);

/// The same elements in fresh memory of spec.device; the spec is x's else, weak or not.
[[nodiscard]] Tensor transferred(const Tensor& x, const Spec& spec);

/// The element that a reduction of no elements gives, or a matrix product over an inner size of 0.
/// (Reductions that have none are rejected by their inference.)
[[nodiscard]] uint64_t bits_of_nothing(const Op& op, DType dtype);

/// Stores the element `bits` everywhere in `out`, contiguous.
void fill(const Tensor& out, uint64_t bits);

/// Stores `from`, broadcast, into the memory that `out` views.
void copy_into(const Tensor& from, const Tensor& out);

/// The same elements in row-major order; `x` itself if they are.
[[nodiscard]] Tensor contiguous(const Tensor& x);

}  // namespace nitinol::eager
