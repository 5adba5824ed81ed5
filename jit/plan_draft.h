// PlanDraft: a Plan in the making. planner.cpp says in which order its parts are made.
#pragma once

#include "core/backend.h"
#include "core/kernel.h"
#include "core/library.h"
#include "fusion/fuse.h"
#include "jit/plan_impl.h"

#include <optional>
#include <vector>

namespace nitinol::jit {

struct StepDraft {
  StepPlan plan = {};
  std::optional<Kernel> kernel = {};  ///< until it is prepared; library calls are from the start
  std::optional<LibraryCall> product = {};  ///< of a matmul
  StepReport report = {};
};

struct PlanDraft {
  const tracer::Trace& trace;
  Backend& device;
  const DeviceLimits limits = device.limits();
  Graph graph = {};  ///< after the passes
  fusion::Fusion fusion = {};
  std::vector<StepDraft> steps = {};
  std::vector<std::size_t> packed_bytes = {};  ///< of the values beyond the graph's
  PlanImpl impl = {};                          ///< but for its steps
  PlanReport report = {};                      ///< but for its steps

  [[nodiscard]] BufferPlan& buffer(Value v) { return impl.buffers[v]; }
};

}  // namespace nitinol::jit
