// What this processor does at most.
#pragma once

#include "core/device_rates.h"

namespace nitinol::cpu {

/// On so many threads. Measured in a quarter of a second, unless the store on disk has what another
/// process of this machine has measured. Thread-safe.
[[nodiscard]] DeviceRates rates(int threads);

}  // namespace nitinol::cpu
