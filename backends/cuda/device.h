// The GPUs of this machine.
#pragma once

#include "core/backend.h"

#include <string>
#include <vector>

namespace nitinol::cuda {

/// The backend of the GPU of that number, or null if there is none or it cannot be used. Opens the
/// driver at the first call. Never destroyed; thread-safe.
[[nodiscard]] Backend* device(int number);

/// Why device() is null: what is missing, with the places where it was looked for.
[[nodiscard]] std::string missing(int number);

/// All that the driver sees, without making use of them; without a driver the first, and why it
/// cannot be used.
[[nodiscard]] std::vector<DeviceInfo> infos();

/// Of every GPU.
[[nodiscard]] DeviceLimits limits();

}  // namespace nitinol::cuda
