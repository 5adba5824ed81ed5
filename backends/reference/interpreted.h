// Stage code that interprets: for kernels without machine code, and the oracle of the others.
#pragma once

#include "core/backend.h"
#include "core/kernel.h"

#include <memory>

namespace nitinol::reference {

/// An Executable that evaluates the kernel's programs one point at a time.
[[nodiscard]] std::unique_ptr<Executable> make_interpreted(const Kernel& kernel);

}  // namespace nitinol::reference
