// Shadow: compiled calls that also run op by op, and whether the bits are the same.
//
//     NITINOL_CHECK=shadow ./train                          // every compiled call of a process
//     const ResultCheckScope scope(ResultCheck::shadow);    // of this thread
//     compile(f, {.shadow = true});                         // of a function
//
// A difference is a mistake of this library (or of a machine), never of the user's program. The
// Error says what differs and what causes it, and names a folder with a program that shows it.
#pragma once

#include "core/tensor.h"

#include <span>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace nitinol {

/// Computes a graph, given as text (as explain() and such a folder show it), compiled and op by op.
/// `inputs`: one for each input of the graph, with its shape and dtype (f32 stands for bf16, which
/// .npy files cannot hold); device and strides are the graph's. Returns the first difference as a
/// sentence, or nothing at all. Throws Error(value) if the text is no graph, or inputs do not fit.
[[nodiscard]] std::string shadow_difference(std::string_view graph, std::span<const Tensor> inputs);

}  // namespace nitinol

#pragma GCC visibility pop
