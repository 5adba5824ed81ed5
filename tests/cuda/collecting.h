// A device that writes down what kernels do.
#pragma once

#include "core/device.h"

namespace nitinol::test {

/// The processor, with the cpu's executables. Each launch of a kernel is appended as a case
/// (tests/cuda/case.h) to a file in the folder NITINOL_CASES, unless there are enough like it; the
/// text that a GPU has of a library call to another.
inline constexpr Device collecting_device = {.kind = Device::Kind::reference, .index = 2};

/// Makes it known and the default one, if NITINOL_CASES names a folder.
void collect_if_asked();

}  // namespace nitinol::test
