// What a Program is made of, for explain().
#pragma once

#include "core/build_report.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::program {

/// One launch as explain() shows it.
struct StepReport {
  std::string kind;                               ///< "kernel" or "library"
  std::vector<std::string> ops;                   ///< names of the operations it does
  std::vector<uint32_t> origins;                  ///< Node::origin of these, each once, in order
  std::vector<std::string> places = {};           ///< by explain(): "model.cpp:42", each once
  std::size_t launches = 1;                       ///< how many times it is run side by side
  std::size_t bytes_read = 0, bytes_written = 0;  ///< at these sizes, each operand once
  BuildReport build = {};
  bool was_cached = false;  ///< a kernel of this structure existed already
  bool is_ordered = false;  ///< acts on the outside: at its place, when all checks have passed
  std::string how = {};     ///< Executable::describe()
};

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
