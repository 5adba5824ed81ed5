// Mark: an event of the driver's with a time, behind what was asked of a device.
#pragma once

#include "backends/cuda/runtime/gpu.h"
#include "core/device_mark.h"

#include <memory>

namespace nitinol::cuda {

/// Throws Error(device) if the device is lost.
[[nodiscard]] std::unique_ptr<DeviceMark> make_mark(Gpu& gpu);

}  // namespace nitinol::cuda
