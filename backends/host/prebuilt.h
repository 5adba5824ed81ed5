// Stage code without code generation: native loops for kernels made from one op.
#pragma once

#include "core/executable.h"
#include "core/kernel.h"

#include <memory>

namespace nitinol::host {

/// An Executable of native loops, or null if the kernel is not of a kind that has them:
/// - Order::none with kernel.prebuilt.loops: one element stage whose arguments are its operands, in
/// order, and which
///   stores its last value into one output (rounding to f16 and bf16 happens in the store);
/// - Order::none whose program stores its only argument: a copy, any strides;
/// - a lookup (Op::lookup) by itself;
/// - reductions whose element stage accumulates its argument, perhaps converted, and whose row
/// stage stores it.
/// Loops of the first kind heed Kernel::stores.
[[nodiscard]] std::unique_ptr<Executable> make_prebuilt(const Kernel& kernel);

}  // namespace nitinol::host
