// What a GPU does at most.
#pragma once

#include "backends/cuda/runtime/gpu.h"
#include "core/device_rates.h"

namespace nitinol::cuda {

/// Copies within its memory are timed, which takes a few milliseconds and, for that time, up to 256
/// MiB of it; operations are those of its f32 lanes at their highest clock: products of 16 bits by
/// tensor cores are faster. Behind all that was asked for. Empty
/// if there is not so much memory, or the device is lost.
[[nodiscard]] DeviceRates measured_rates(Gpu& gpu);

}  // namespace nitinol::cuda
