// Compiled steps of training: what nitinol_warm runs on the processor.
#pragma once

#include "tools/task.h"
#include <nitinol/nitinol.h>

/// Networks of each layer and the examples' own, by each loss and optimizer, and what they give by
/// themselves. Kernels of the processor fit all sizes, so the sizes are small; but for rows that
/// are shared by threads, which long ones are.
[[nodiscard]] Tasks training_tasks(nitinol::DType dtype);
