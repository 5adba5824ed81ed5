// Batch: some printed kernels, compiled by the host's compiler as one file, and the cases they run.
#pragma once

#include "backends/cuda/text/schedule.h"
#include "tests/cuda/case.h"

#include <string>
#include <vector>

namespace nitinol::test {

/// A text with the launches it is for.
struct Printed {
  std::string text;
  cuda::Schedule schedule;
  std::vector<Case> cases;  ///< none of a library call's text
};

/// The file that the compiler is given. Kernel number i is `run<i>(arguments, entry)` in it.
[[nodiscard]] std::string source_of(const std::vector<Printed>& batch, const std::string& shim);

struct BatchResult {
  int cases = 0;
  std::vector<std::string> failures;
  std::vector<bool> has_failed;  ///< of each kernel; all, if they do not compile
};

/// Compiles the batch to `<path>.cpp`, `<path>.so` with `compiler` and runs it in child processes.
/// `<path>.so` stays.
[[nodiscard]] BatchResult run_batch(const std::vector<Printed>& batch, const std::string& shim,
                                    const std::string& compiler, const std::string& path);

}  // namespace nitinol::test
