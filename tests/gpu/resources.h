// Resources: what the kernels of the rows take of a GPU, against a table.
#pragma once

#include <string>
#include <vector>

namespace nitinol::test {

/// Compiles the rows whose names begin so, all if none is named, for sm_90, and prints what they
/// take and how that differs from the table: registers at most as many, no memory for a thread's
/// variables, wide loads where there were, instructions within a tenth. Returns how many differ. If
/// nvdisasm is found, it also prints what the launches of a row load, store and issue, and which
/// share of a copy's speed that allows.
[[nodiscard]] int check_resources(const std::vector<std::string>& names);

/// Prints what compiling the kernels of each row takes, and of a training step: CPU time on one
/// thread, the fastest of three.
void print_compile_times();

}  // namespace nitinol::test
