// The parts of a Plan: shared by the planner, which makes them, and Plan::run, which follows them.
#pragma once

#include "jit/plan.h"
#include "jit/shadow_call.h"
#include "program/program.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace nitinol::jit {

/// The new value of a Variable.
struct Update {
  tracer::TraceInput variable;
  std::size_t output = 0;  ///< the program's
};

/// A Program, and how calls are bound to it.
struct PlanImpl {
  std::shared_ptr<const program::Program> program;
  std::vector<tracer::TraceInput> inputs;  ///< the program's
  std::vector<uint8_t> is_argument;  ///< per result: the very argument, with all that hangs on it
  std::vector<Update> updates;       ///< each may donate its Variable's buffer
  std::vector<tracer::TraceInput> empty, cleared;  ///< see tracer::Trace
  std::vector<tracer::TraceInput> read;            ///< Variables whose values a call reads
  bool has_updates = false;                        ///< of Variables: a call ends by a commit
  bool is_plain = true;  ///< nothing is kept, and no call goes on when it has returned
  ResultCheck check = ResultCheck::none;
  std::unique_ptr<const Shadow> shadow;  ///< ResultCheck::shadow
  bool may_defer = false;                ///< a call may return before its checks are made
  bool may_follow = false;  ///< without checks: what it gives fails if what it takes has failed
};

}  // namespace nitinol::jit
