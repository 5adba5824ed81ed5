// The cpu device: prebuilt loops for single ops, generated code for fused kernels, oneDNN for
// library calls.
#pragma once

#include "core/backend.h"

namespace nitinol::cpu {

/// The backend of Device::Kind::cpu. Never destroyed; thread-safe.
[[nodiscard]] Backend& device();

}  // namespace nitinol::cpu
