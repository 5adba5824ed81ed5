// Resources: what the kernels of the rows take of a GPU, against a table.
#pragma once

namespace nitinol::test {

/// Compiles the rows for sm_90, prints what they take and how that differs from the table:
/// registers at most as many, no memory for a thread's variables, wide loads where there were,
/// instructions within a tenth. Returns how many differ. If nvdisasm is found, it also prints what
/// the launches of a row load, store and issue, and which share of a copy's speed that allows.
[[nodiscard]] int check_resources();

/// Prints what compiling the kernels of each row takes, and of a training step: CPU time on one
/// thread, the fastest of three.
void print_compile_times();

}  // namespace nitinol::test
