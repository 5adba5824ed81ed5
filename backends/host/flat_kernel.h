// Launches of one loop, prepared: what is known when a Plan is made is not found again at each
// call.
#pragma once

#include "backends/host/stage.h"
#include "core/executable.h"

#include <memory>

namespace nitinol::host {

/// What launches of `kernel` that differ from `example` in buffers and scalars alone are run by, if
/// they are one loop and elementwise; else null. `code` is the kernel's only stage; `whole` runs
/// what is worth several threads, and all that is wrong.
[[nodiscard]] std::unique_ptr<const Executable> flat_kernel(const Kernel& kernel,
                                                            const StageCode& code,
                                                            const Executable& whole,
                                                            const Launch& example);

}  // namespace nitinol::host
