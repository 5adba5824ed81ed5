// What a Program is made of, for explain().
#pragma once

#include "core/step_report.h"

#include <cstddef>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::program {

using nitinol::StepReport;

struct Report {
  std::vector<StepReport> steps;
  double fusion_s = 0;
  std::size_t arena_bytes = 0;     ///< temporaries of one run
  std::size_t result_bytes = 0;    ///< outputs, in memory of their own
  std::size_t in_place_bytes = 0;  ///< outputs that go where something else has lain
  std::size_t kept_bytes = 0;      ///< packed operands that stay from run to run, if all do
  std::size_t kernels_generated = 0;
  /// The most memory that a run takes beside its inputs and kept_bytes.
  [[nodiscard]] std::size_t peak_bytes() const { return arena_bytes + result_bytes; }
};

}  // namespace nitinol::program

#pragma GCC visibility pop
