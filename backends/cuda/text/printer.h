// Printer: a Kernel as CUDA C.
#pragma once

#include "backends/cuda/text/schedule.h"

#include <cstddef>
#include <string>

namespace nitinol::cuda {

/// Raised whenever the text of a kernel changes: what was compiled before is not looked up any
/// more.
inline constexpr int printer_version = 3;

/// The text of `kernel` by `schedule`, to be put behind that of prelude.h. It defines the struct
/// `Arguments`, which Call (call.h) fills, and the functions `entry0`, `entry1`, ... of
/// entry_count(), run one after another.
[[nodiscard]] std::string print(const Kernel& kernel, const Schedule& schedule);

/// One, or as many as a split schedule launches.
[[nodiscard]] std::size_t entry_count(const Kernel& kernel, const Schedule& schedule);

}  // namespace nitinol::cuda
