// What a Program is made of, for explain().
#pragma once

#include "core/step_report.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::program {

using nitinol::StepReport;

struct Program;

/// Something in memory that steps read or write.
struct ValueReport {
  enum class Kind : uint8_t { input, constant, temporary, output };
  Kind kind = Kind::temporary;
  std::size_t number = 0;  ///< input, output: of these
  std::string name;        ///< "argument 1", "result 0", "constant"; empty: a temporary
  std::string type;        ///< "float32[3, 4]", "packed"
  std::size_t bytes = 0;
  std::size_t offset = 0;                     ///< temporary: its place in the memory of all of them
  std::size_t first_step = 0, last_step = 0;  ///< that touch it, from 0 on
  /// Stored where something has lain that nobody needs any more; a temporary by the step that was
  /// the last to read it.
  bool is_in_place = false;
};

/// Of runs as one launch (program/replays.h).
struct ReplayReport {
  uint64_t replays = 0;  ///< runs that were
  uint64_t made = 0;     ///< of what is replayed
  uint64_t updated = 0;  ///< times that steps of one were noted anew
  std::string why_not;   ///< why none is made, or no more; empty where a device runs at once
};

struct Report {
  std::vector<StepReport> steps;
  std::vector<ValueReport> values = {};  ///< by explain()
  double fusion_s = 0;
  std::size_t arena_bytes = 0;     ///< temporaries of one run
  std::size_t result_bytes = 0;    ///< outputs, in memory of their own
  std::size_t in_place_bytes = 0;  ///< outputs that go where something else has lain
  std::size_t kept_bytes = 0;      ///< packed operands that stay from run to run, if all do
  std::size_t kernels_generated = 0;
  ReplayReport replays = {};
  std::shared_ptr<const Program> program = {};  ///< by explain(): what texts are written from
  /// The most memory that a run takes beside its inputs and kept_bytes.
  [[nodiscard]] std::size_t peak_bytes() const { return arena_bytes + result_bytes; }
};

}  // namespace nitinol::program

#pragma GCC visibility pop
