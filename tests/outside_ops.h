// Ops that exist in tests alone: one that acts on the outside, and one of two results.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace nitinol::test {

/// What noted() has written down: its attribute, and a hash of the operand's elements, of which any
/// NaN counts as any other.
struct Note {
  int64_t number = 0;
  uint64_t hash = 0;
  friend bool operator==(const Note&, const Note&) = default;
};

/// What has been written down on this thread since the last call of this. Waits for all devices.
[[nodiscard]] std::vector<Note> take_notes();

/// Whether what noted() writes down on this thread arrives; else its routine throws Error(io).
void listen(bool listens);

/// Gives its operand and writes it down (take_notes()), with the attribute `number`:
/// Effect::ordered. Gradients go back by noted() with 1000 more.
[[nodiscard]] const Op& noted_op();
[[nodiscard]] Tensor noted(const Tensor& x, int64_t number);

/// Two results: the elements of x in row-major order, backwards, and x. Both pass gradients.
[[nodiscard]] const Op& turned_op();
[[nodiscard]] std::pair<Tensor, Tensor> turned(const Tensor& x);

/// The vocabulary and these.
[[nodiscard]] std::span<const Op* const> ops_with_outside();

}  // namespace nitinol::test
