// The reference device: runs every kernel by interpretation, slowly; the oracle of tests.
#pragma once

#include "core/backend.h"

namespace nitinol::reference {

/// The backend of Device::Kind::reference. Its memory is the host's. Never destroyed; thread-safe.
[[nodiscard]] Backend& device();

}  // namespace nitinol::reference
