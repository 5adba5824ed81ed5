// What a recorded call means for its signature: trusted, compiled, given up, or one of several.
#include "core/backend.h"
#include "core/error.h"
#include "core/interpreter.h"
#include "core/log.h"
#include "core/profiling.h"
#include "core/stack.h"
#include "jit/clock.h"
#include "jit/dispatcher.h"
#include "tracer/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <optional>

namespace nitinol::jit {
namespace {

/// Disagreements between recordings before a signature is given up: the first call may initialise
/// something.
constexpr int most_disagreements = 2;

/// Ends an entry's time as the one being recorded, however that ends.
class RecordingMark {
 public:
  RecordingMark(ForkSafeMutex& mutex, OfProcess& mark) : mutex_(mutex), mark_(mark) {}
  RecordingMark(const RecordingMark&) = delete;
  RecordingMark& operator=(const RecordingMark&) = delete;
  ~RecordingMark() {
    const std::lock_guard lock(mutex_);
    mark_ = false;
  }

 private:
  ForkSafeMutex& mutex_;
  OfProcess& mark_;
};

/// An argument that is returned is the same handle: the caller's own replaces its stand-in.
void put_arguments_back(const Leaves& leaves, const std::vector<Tensor>& given, Caller& caller) {
  caller.change_result([&](Tensor& tensor) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (tensor.handle() == given[i].handle()) {
        tensor = *leaves.tensors[i];
        return;
      }
    }
  });
}

}  // namespace

void Dispatcher::record(const Decision& decision, const Leaves& leaves, Caller& caller) {
  const RecordingMark mark(mutex_, decision.entry->is_recording);
  tracer::Trace trace;
  Leaves result;
  Recording recording;
  {
    const std::vector<Tensor> scalars = scalar_tensors(leaves);
    const std::vector<Tensor> tensors = stand_ins(leaves);
    // Those of the first calls are known where this one only checks.
    using Places = tracer::Recorder::Places;
    tracer::Recorder recorder(decision.now->plan ? Places::ignored : Places::noted);
    order(recorder, leaves);
    std::unique_lock<std::recursive_mutex> running(running_, std::defer_lock);
    if (!is_const_) running.lock();
    recorder.declare_arguments(tensors, leaves.variables, scalars);
    const double start = call_now();
    {
      const profiling::Span span(EventKind::record, options_.name);
      const InterpreterScope scope(recorder);
      caller.run_on(tensors, scalars);
    }
    recording.seconds = call_now() - start;
    caller.result_leaves(result);
    if (autograd::is_enabled() && !recorder.is_obstructed())
      record_backward(recorder, result.tensors, tensors);
    trace = recorder.finish(result.tensors);
    trace.spent = spent_results(result.tensors, tensors);
    put_arguments_back(leaves, tensors, caller);
    note_assigned(recorder, leaves);
    recorder.commit();
  }
  // The call has been committed: what follows must not make it fail.
  try {
    accept(decision, leaves, result, std::move(trace), std::move(recording), caller);
  } catch (const std::bad_alloc&) {
    const Section section(*this);  // as if the call had not been recorded
  }
}

void Dispatcher::accept(const Decision& decision, const Leaves& leaves, const Leaves& result,
                        tracer::Trace trace, Recording recording, Caller& caller) {
  if (!trace.obstacle && (result.variables.size() > 0 || result.scalars.size() > 0)) {
    trace.obstacle =
        tracer::Obstacle{"the function returns a Variable or a Scalar; return a Tensor", ""};
  }
  recording.fixed = result.fixed_parts();
  if (!trace.obstacle) recording.form = caller.result_form();
  recording.trace = std::make_shared<const tracer::Trace>(std::move(trace));
  {
    const Section section(*this);
    if (!accept_locked(decision, leaves, recording)) return;
    decision.entry->is_queued = options_.in_background;
  }
  if (options_.in_background) return build_later([this, entry = decision.entry] { build(entry); });
  if (!is_stack_short_of(stack_of_compiler)) return build(decision.entry);
  const std::jthread with_more([&] { build(decision.entry); });
}

/// Whether a Plan is to be made. What it does not take out of `recording` the caller destroys when
/// the mutex is free, as the call's own `decision` keeps what is replaced.
bool Dispatcher::accept_locked(const Decision& decision, const Leaves& leaves,
                               Recording& recording) {
  Entry& entry = *decision.entry;
  ++entry.recorded_calls;
  entry.last_check = coarse_now();
  entry.checked_plan_calls = entry.plan_calls;
  entry.recording_s = std::min(entry.recording_s, recording.seconds);
  if (entry.now != decision.now) return false;  // another call has changed it meanwhile
  const std::optional<tracer::Obstacle>& obstacle = recording.trace->obstacle;
  if (obstacle) {
    give_up(entry, obstacle->reason, obstacle->place);
    return false;
  }
  if (recording.trace->backward && looks_at_elements(result_check_of(entry.key))) {
    give_up(entry, Tier::eager,
            "its results track gradients, and the way back is looked through for NaN op by op", "");
    return false;
  }
  bool is_enough = false;
  if (entry.now->trace) {
    std::optional<std::string> difference =
        tracer::first_difference(*entry.now->trace, *recording.trace);
    if (!difference && recording.fixed != entry.now->result_fixed)
      difference = "a number in the result differs, or whether a tensor is defined";
    if (difference) {
      disagree(decision, leaves, *difference, recording);
      return false;
    }
    if (entry.now->plan) {
      accept_again(entry, leaves, recording);
      return false;
    }
    is_enough = true;
  } else {
    is_enough = entries_.has_trusted_sibling(entry, *recording.trace) ||
                entries_.confirms_sibling(entry, *recording.trace);
  }
  const Guards guards =
      entry.now->trace ? entry.now->guards->widened(leaves) : Guards(*recording.trace, leaves);
  replace(entry, [&](Snapshot& next) {
    next.trace = std::move(recording.trace);
    next.guards = std::make_shared<const Guards>(guards);
    next.result_fixed = std::move(recording.fixed);
    next.form = std::move(recording.form);
  });
  if (!is_enough) return false;
  if (ledger_.repays(entry.calls, entry.recording_s)) return true;
  wait_to_repay(entry);
  return false;
}

/// A trusted trace has been confirmed.
void Dispatcher::accept_again(Entry& entry, const Leaves& leaves, const Recording& recording) {
  const double plan_s = std::exchange(entry.timed_plan, 0);
  if (options_.check == Check::scheduled && plan_s > 0)
    entry.race.add_recording(plan_s, recording.seconds);
  const Guards wider = entry.now->guards->widened(leaves);
  if (wider.match(leaves) != entry.now->guards->match(leaves))
    replace(entry, [&](Snapshot& next) { next.guards = std::make_shared<const Guards>(wider); });
}

/// The call of a signature whose recording is trusted: the Plan is made, and runs.
void Dispatcher::build_and_call(Decision decision, const Leaves& leaves, Caller& caller) {
  {
    const RecordingMark mark(mutex_, decision.entry->is_recording);
    {
      const std::lock_guard lock(mutex_);
      decision.entry->is_queued = options_.in_background;
    }
    options_.in_background ? build_later([this, entry = decision.entry] { build(entry); })
                           : build(decision.entry);
  }
  {
    const std::lock_guard lock(mutex_);
    decision.now = decision.entry->now;
    if (decision.now->plan) {
      ++decision.entry->plan_calls;
      ledger_.plan_runs();
    }
  }
  decision.now->plan ? run_plan(decision, leaves, caller) : run_eagerly(decision, leaves, caller);
}

/// The signature waits, trusted but without a Plan.
void Dispatcher::wait_to_repay(Entry& entry) {
  entry.is_waiting = true;
  warn_once(has_warned_unrepaid_,
            fmt::format("{} signatures were compiled in {:.3g} ms and called {} times since: a "
                        "further one is compiled when it has been called often enough to repay; if "
                        "sizes keep changing, pad them to a few, or call eager()",
                        ledger_.plans(), ledger_.spent_s() * 1e3, ledger_.plan_calls()));
}

void Dispatcher::warn(const std::string& text) {
  warnings_.push_back(fmt::format("{}: {}", options_.name, text));
}

void Dispatcher::warn_once(bool& has_warned, const std::string& text) {
  if (!std::exchange(has_warned, true)) warn(text);
}

Dispatcher::Section::~Section() {
  const std::vector<std::string> warnings = std::move(dispatcher_.warnings_);
  dispatcher_.warnings_.clear();
  const std::shared_ptr<Entry> dropped = dispatcher_.entries_.take_dropped();
  lock_.unlock();
  for (const std::string& warning : warnings) log(LogLevel::warning, warning);
}

/// The function cannot be one Plan. Between its looks at data it is compiled all the same, if its
/// device can.
void Dispatcher::give_up(Entry& entry, std::string reason, std::string place) {
  const Tier tier =
      backend(default_device_of(entry.key)).can_generate_code() ? Tier::deferred : Tier::eager;
  give_up(entry, tier, std::move(reason), std::move(place));
}

void Dispatcher::give_up(Entry& entry, Tier tier, std::string reason, std::string place) {
  const bool is_deferred = tier == Tier::deferred;
  warn(fmt::format("runs {} for ({}): {}{}", is_deferred ? "in segments" : "eagerly",
                   join(entry.words), reason, place.empty() ? "" : " at " + place));
  auto next = std::make_shared<Snapshot>();
  next->tier = tier;
  next->guards = entry.now->guards;
  if (is_deferred) {
    next->segments_because = reason;
    entry.race = {};
    entry.timed_plan = 0;
    entry.next_check = entry.calls + 8;
  }
  next->reason = std::move(reason);
  next->place = std::move(place);
  entry.now = std::move(next);
}

void Dispatcher::disagree(const Decision& decision, const Leaves& leaves,
                          const std::string& difference, Recording& recording) {
  Entry& entry = *decision.entry;
  if (decision.match == Guards::Match::unproven && split(entry, leaves, recording)) return;
  const bool was_trusted = entry.now->plan != nullptr;
  const std::string since = was_trusted ? fmt::format(" (a Plan ran {} calls since call {})",
                                                      entry.plan_calls, entry.trusted_since)
                                        : "";
  if (was_trusted || ++entry.disagreements > most_disagreements) {
    return give_up(
        entry,
        fmt::format("the function does not do the same at each call: {}{}", difference, since), "");
  }
  replace(entry, [&](Snapshot& next) {
    next.guards = std::make_shared<const Guards>(*recording.trace, leaves);
    next.trace = std::move(recording.trace);
    next.result_fixed = std::move(recording.fixed);
    next.form = std::move(recording.form);
  });
}

/// With other Variables the function does something else: it has captured one of those it was given
/// before, or is given one that it captures. Each case is a signature of its own.
bool Dispatcher::split(Entry& entry, const Leaves& leaves, const Recording& recording) {
  if (entries_.with_key(entry.key).size() >= Entries::most_variants) return false;
  const std::shared_ptr<Entry> other =
      entries_.add(entry, "a Variable is both an argument and captured, or no longer is");
  if (!other) return false;
  replace(entry, [&](Snapshot& next) {
    next.guards = std::make_shared<const Guards>(entry.now->guards->bound());
  });
  entries_.touch(other);
  // The call that was recorded moves with its recording.
  --entry.calls;
  --entry.recorded_calls;
  other->calls = other->recorded_calls = 1;
  replace(*other, [&](Snapshot& next) {
    next.trace = recording.trace;
    next.guards = std::make_shared<const Guards>(*recording.trace, leaves);
    next.result_fixed = recording.fixed;
    next.form = recording.form;
  });
  return true;
}

// ---- Plans

void Dispatcher::build(const std::shared_ptr<Entry>& entry) {
  std::shared_ptr<const Snapshot> from;
  {
    const std::lock_guard lock(mutex_);
    from = entry->now;
  }
  const double start = precise_now(), own_start = own_now();
  std::optional<profiling::Span> span(std::in_place, EventKind::compile, options_.name);
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const Derivative> derivative;
  std::string failure;
  try {
    const Plan::Options options = {.threads = threads_of(entry->key),
                                   .quick_code = options_.quick_code,
                                   .check = result_check_of(entry->key),
                                   .name = options_.name};
    if (from->trace->backward) {
      derivative = std::make_shared<const Derivative>(*from->trace, options);
      plan = std::make_shared<const Plan>(derivative->forward(), options);
    } else {
      plan = std::make_shared<const Plan>(*from->trace, options);
    }
  } catch (const std::exception& error) {  // an Error, or out of memory
    failure = error.what();
    plan = nullptr;
  }
  span.reset();
  const double took = precise_now() - start, own = own_now() - own_start;
  if (plan && is_logged(LogLevel::info)) {
    const PlanReport& report = plan->report();
    log(LogLevel::info,
        fmt::format("{}: compiled for ({}) in {:.3g} ms: {} steps, {} kernels generated",
                    options_.name, join(entry->words), took * 1e3, report.steps.size(),
                    report.kernels_generated));
  }
  const Section section(*this);
  entry->is_queued = false;
  entry->is_waiting = false;
  if (entry->now != from) return;
  if (!plan) return give_up(*entry, Tier::eager, "compilation failed: " + failure, "");
  ledger_.compiled(std::min(took, own));
  entry->trusted_since = entry->calls;
  entry->last_check = coarse_now();
  replace(*entry, [&](Snapshot& next) {
    next.tier = Tier::traced;
    next.plan = std::move(plan);
    next.derivative = std::move(derivative);
    next.compile_s = took;
  });
}

void Dispatcher::build_later(std::function<void()> build) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(build));
  if (is_building_) return;
  is_building_ = true;
  builder_ = std::jthread([this] { build_all_queued(); });  // the one before has nothing left to do
}

void Dispatcher::build_all_queued() {
  for (;;) {
    std::function<void()> build;
    {
      const std::lock_guard lock(mutex_);
      is_building_ = !queue_.empty();
      if (!is_building_) return;
      build = std::move(queue_.front());
      queue_.pop_front();
    }
    build();
  }
}

}  // namespace nitinol::jit
