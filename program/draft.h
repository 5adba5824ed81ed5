// ProgramDraft: a Program in the making. program.cpp says in which order its parts are made.
#pragma once

#include "core/kernel.h"
#include "core/library.h"
#include "fusion/fuse.h"
#include "program/program.h"

#include <optional>
#include <vector>

namespace nitinol::program {

struct StepDraft {
  ProgramStep out = {};
  std::optional<Kernel> kernel = {};  ///< until it is prepared; library calls are from the start
  std::optional<LibraryCall> product = {};  ///< a matmul, or a conv2d
  bool waits_for_others = false;            ///< a collective: it may go on beside other steps
  bool is_copy = false;                     ///< a kernel that stores what it reads
  bool updates_first = false;      ///< a library call that may store where its first operand lies:
  std::size_t arriving_bytes = 0;  ///< then it writes so many
  StepReport report = {};
};

struct ProgramDraft {
  Backend& device;
  const Options& options;
  Report& report;  ///< but for its steps
  Graph graph;
  const DeviceLimits limits = device.limits();
  fusion::Fusion fusion = {};
  std::vector<StepDraft> steps = {};
  /// Per value: the temporary whose place it takes over, or itself.
  std::vector<Value> place_of = {};
  Program out = {};  ///< but for its graph and steps

  [[nodiscard]] Place& place(Value v) { return out.places[v]; }
};

}  // namespace nitinol::program
