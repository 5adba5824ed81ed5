// Collectives: what the processes of a group compute together (dist/group.h).
//
// All members of a group call the same functions in the same order, on tensors of one shape and
// dtype; who does something else is told so, on every rank. Eager, recorded and compiled calls send
// the same messages, and the results have the same bits: sums are formed in the order of ranks, as
// sum(all_gather(x), 0) forms them, whatever the size, the MPI and the tier. They act on the
// outside: a compiled function runs them once a call, in the program's order, and only when nothing
// can fail any more.
//
// A gradient is that of the sum over all ranks of what each calls backward() on: every rank has to
// call it. Of a group of one, each gives its operand.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "dist/group.h"
#include "eager/argument.h"

#include <cstdint>
#include <source_location>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::dist {

/// How elements of all ranks are joined.
enum class Reduce : uint8_t { sum, mean, max, min, prod };

/// The ranks' tensors joined element by element, on all of them. Shape of x; its dtype, but that a
/// mean of integers and booleans is floating, and their sum or product is that of integers as
/// sum() says for booleans. The gradient of sum and mean is the all_reduce of the gradients.
/// Throws Error(io) when a member does something else, or does not come in time; so do the others.
[[nodiscard]] Tensor all_reduce(const Tensor& x, Reduce how = Reduce::sum,
                                const Group& group = world(),
                                std::source_location place = std::source_location::current());
/// The same of each of several tensors. What one of them waits for in a compiled function is on its
/// way while others are computed.
[[nodiscard]] std::vector<Tensor> all_reduce(
    std::span<const Tensor> list, Reduce how = Reduce::sum, const Group& group = world(),
    std::source_location place = std::source_location::current());
/// The ranks' tensors one after another along an axis, [n * x.shape[axis], ...]; of 0-d ones, a
/// line. Its gradient is a reduce_scatter.
[[nodiscard]] Tensor all_gather(const Tensor& x, Integer axis = 0, const Group& group = world(),
                                std::source_location place = std::source_location::current());
/// The part of all_reduce() that has this rank's number, of n equal ones along an axis. Its
/// gradient is an all_gather.
/// Throws Error(shape) unless n divides the axis's size.
[[nodiscard]] Tensor reduce_scatter(const Tensor& x, Reduce how = Reduce::sum, Integer axis = 0,
                                    const Group& group = world(),
                                    std::source_location place = std::source_location::current());
/// The tensor of rank `root`, whose gradient is the sum over all ranks.
/// Throws Error(value) unless 0 <= root < n.
[[nodiscard]] Tensor broadcast(const Tensor& x, Integer root = 0, const Group& group = world(),
                               std::source_location place = std::source_location::current());
/// Of n equal parts along an axis, part r goes to rank r, and those that come are joined in the
/// order of ranks: shape of x. Its gradient is an all_to_all.
/// Throws Error(shape) unless n divides the axis's size.
[[nodiscard]] Tensor all_to_all(const Tensor& x, Integer axis = 0, const Group& group = world(),
                                std::source_location place = std::source_location::current());
/// The tensor of the rank `shift` before this one, in a ring: x goes to rank (r + shift) mod n.
[[nodiscard]] Tensor permute(const Tensor& x, Integer shift = 1, const Group& group = world(),
                             std::source_location place = std::source_location::current());
/// Waits until all members are here.
void barrier(const Group& group = world(),
             std::source_location place = std::source_location::current());

}  // namespace nitinol::dist

namespace nitinol {
[[nodiscard]] std::span<const Op> collectives_ops();
}  // namespace nitinol

#pragma GCC visibility pop
