// Whether this process is looked at by tools that show machine code.
#pragma once

namespace nitinol {

/// NITINOL_PERF=1: kernels tell profilers what they are, and where in the user's code.
[[nodiscard]] bool tells_perf();

}  // namespace nitinol
