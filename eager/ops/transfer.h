// Between devices.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// The same elements in memory of `device`; `x` itself if it lies there. Gradients flow back to
/// where x lies. Throws Error(device), with the reason, if the device cannot be used. A compiled
/// function that moves tensors runs in segments: move them before.
[[nodiscard]] Tensor to(const Tensor& x, Device device);

[[nodiscard]] std::span<const Op> transfer_ops();

}  // namespace nitinol

#pragma GCC visibility pop
