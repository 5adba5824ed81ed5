// Calls that run in segments: Plans of what lies between two looks at data.
#include "core/error.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/profiling.h"
#include "core/stack.h"
#include "jit/dispatcher.h"
#include "tracer/deferred.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

namespace nitinol::jit {
namespace {

/// A Plan of a segment.
class PlanOfCut final : public tracer::CutProgram {
 public:
  PlanOfCut(const tracer::Trace& trace, const Plan::Options& options) : plan_(trace, options) {}
  bool run(const Inputs& given, std::span<Tensor> results) const override {
    const CallInputs inputs = {.tensors = given.imports,
                               .variables = {},
                               .scalars = {},
                               .number_bits = given.numbers,
                               .lent = given.lent,
                               .value_of = given.value_of};
    return plan_.run(inputs, results) == Plan::Outcome::done;
  }

 private:
  Plan plan_;
};

std::shared_ptr<const tracer::CutProgram> plan_of(const tracer::Trace& trace,
                                                  const tracer::Segments& segments,
                                                  const CompileOptions& options) {
  try {
    const profiling::Span span(EventKind::compile, options.name);
    return std::make_shared<const PlanOfCut>(trace, Plan::Options{.threads = segments.threads(),
                                                                  .quick_code = options.quick_code,
                                                                  .check = segments.result_check(),
                                                                  .name = options.name});
  } catch (const std::exception& error) {  // an Error, or out of memory
    log(LogLevel::warning,
        fmt::format("{}: a segment runs eagerly: {}", options.name, error.what()));
    return nullptr;
  }
}

/// Under Stance::fail_on_recompile.
[[noreturn]] void throw_needs_plan(const tracer::Trace& trace, const CompileOptions& options) {
  throw Error(ErrorKind::compile,
              {.where = options.name,
               .what = fmt::format("the call needs another Plan, of {} ops between two looks",
                                   trace.places->size()),
               .expected = "segments that earlier calls have run (stance fail_on_recompile)",
               .got = "one that came for the second time, or of whose values others are needed",
               .fix = "Call with all that may happen before, or lift the stance."});
}

}  // namespace

std::shared_ptr<tracer::Segments> Dispatcher::segments_for(int threads, ResultCheck check) {
  const std::lock_guard lock(mutex_);
  for (std::shared_ptr<tracer::Segments>& segments : segments_) {
    if (segments->threads() != threads || segments->result_check() != check) continue;
    if (segments->is_outlived()) segments = std::make_shared<tracer::Segments>(segments.get());
    return segments;
  }
  return segments_.emplace_back(std::make_shared<tracer::Segments>(threads, check));
}

/// Runs the function as written; what it does between looks at data runs by Plans.
void Dispatcher::defer(const Decision& decision, const Leaves& leaves, Caller& caller,
                       Stance stance) {
  const std::shared_ptr<tracer::Segments> segments =
      segments_for(num_threads(), result_check_of(decision.entry->key));
  const auto compile = [&](tracer::Trace trace, tracer::CutProgramTaker done) {
    if (stance == Stance::fail_on_recompile) throw_needs_plan(trace, options_);
    if (options_.in_background) {
      return build_later([this, segments, trace = std::move(trace), done = std::move(done)] {
        done(plan_of(trace, *segments, options_));
      });
    }
    if (!is_stack_short_of(stack_of_compiler)) return done(plan_of(trace, *segments, options_));
    const std::jthread with_more([&] { done(plan_of(trace, *segments, options_)); });
  };
  tracer::Deferred call(segments, compile);
  const double took = compute_by(call, leaves, caller, decision.is_timed, &call);
  if (!decision.is_timed) return;
  const std::lock_guard lock(mutex_);
  if (decision.entry->now == decision.now) decision.entry->timed_plan = took;
}

/// In segments, unless that is measured to be slower than eagerly: now and then a call of each kind
/// is timed.
Dispatcher::Action Dispatcher::choose_segments(Decision& decision, Stance stance) {
  Entry& entry = *decision.entry;
  if (entry.calls >= entry.next_check)
    entry.next_check = entry.calls + std::min(entry.calls, Entry::largest_check_interval);
  const bool has_lost = entry.now->tier == Tier::eager;
  const bool is_compared = may_compare(entry, stance);
  const bool is_second = entry.timed_plan > 0 && is_compared;
  const bool is_first = entry.calls + 1 == entry.next_check || entry.race.wants_pair();
  decision.is_timed = is_first || is_second;
  if (is_second && !has_lost) decision.why = Eagerly::compared;
  if (is_second) return Action::run_eagerly;
  return !has_lost || is_first || !is_compared ? Action::defer : Action::run_eagerly;
}

}  // namespace nitinol::jit
