// The life of a signature.
//
//   call 1    recorded: eager's results, and a Trace
//   call 2    recorded; if both traces agree (or a signature that differs only in sizes, and in how
//             often parts are repeated, is trusted already, after call 1) the trace is compiled
//             into a Plan, if that will repay
//   later     the Plan runs; at calls 4, 8, 16 … and every few milliseconds the call is recorded
//             again instead and compared
//
// A trace that cannot stand for the function, or two that disagree, leave the signature eager, with
// the reason. User code runs without any lock of ours, with two exceptions: a function with state
// of its own is never run by two threads at once, and calls that assign the same Variables run one
// after the other (core/call_order.h).
#include "jit/dispatcher.h"

#include "core/autocast.h"
#include "core/error.h"
#include "core/interpreter.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/profiling.h"
#include "core/short_array.h"
#include "core/stack.h"
#include "jit/clock.h"
#include "jit/deferred_call.h"
#include "tracer/deferred.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace nitinol::jit {
namespace {

/// Checks by time may cost one part in so many.
constexpr double check_share = 100;
/// How often a Plan is timed to know what it saves.
constexpr int plan_timings = 3;

CompileOptions checked(CompileOptions options) {
  const auto refuse = [](const char* what, const char* expected, int64_t got) {
    throw Error(ErrorKind::value, {.where = "compile",
                                   .what = fmt::format("the option `{}`", what),
                                   .expected = expected,
                                   .got = std::to_string(got)});
  };
  if (options.check > Check::never)
    refuse("check", "Check::scheduled, always or never", static_cast<int64_t>(options.check));
  if (options.check_interval.count() < 0)
    refuse("check_interval", "0 ms or more", options.check_interval.count());
  if (options.autocast && !is_cast_freely(*options.autocast)) {
    throw Error(ErrorKind::dtype, {.where = "compile",
                                   .what = "the option `autocast`",
                                   .expected = "bfloat16, float16 or float32",
                                   .got = std::string(name_of(*options.autocast))});
  }
  return options;
}

}  // namespace

Dispatcher::Dispatcher(CompileOptions options, bool is_const)
    : options_(checked(std::move(options))),
      is_const_(is_const),
      entries_(options_.signature_limit) {
  if (options_.name.empty()) options_.name = "function";
}

Dispatcher::~Dispatcher() {
  std::deque<std::function<void()>> queue;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  queue.swap(queue_);
}

// ---- what a call does

void Dispatcher::call(const Leaves& leaves, Caller& caller) {
  check_stack("a call of a compiled function", stack_of_call);
  autograd::note_use(leaves.tensors);
  if (has_deferred_.load(std::memory_order_relaxed)) [[unlikely]]
    look_at_deferred();
  const int own = stance_.load(std::memory_order_relaxed);
  const Stance stance = own >= 0 ? static_cast<Stance>(own) : current_stance();
  if (stance == Stance::eager) return call_eagerly(leaves, caller);
  const Decision decision = decide(leaves, caller, stance);
  if (profiling::is_on()) [[unlikely]]
    return act_noted(decision, leaves, caller, stance);
  act(decision, leaves, caller, stance);
}

[[gnu::always_inline]] inline void Dispatcher::act(const Decision& decision, const Leaves& leaves,
                                                   Caller& caller, Stance stance) {
  switch (decision.action) {
    case Action::run_plan:
      return run_plan(decision, leaves, caller);
    case Action::record:
      return record(decision, leaves, caller);
    case Action::build:
      return build_and_call(decision, leaves, caller);
    case Action::defer:
      return defer(decision, leaves, caller, stance);
    case Action::run_eagerly:
      break;
  }
  if (stance == Stance::fail_on_fallback && decision.now && decision.now->tier == Tier::eager) {
    throw Error(ErrorKind::compile,
                {.where = options_.name,
                 .what = "the call would run eagerly: " + decision.now->reason,
                 .expected = "a function that can be compiled (stance fail_on_fallback)",
                 .got = decision.now->place.empty() ? "eager execution"
                                                    : "a fallback at " + decision.now->place,
                 .fix = "Move what prevents it out of the function, or lift the stance."});
  }
  run_eagerly(decision, leaves, caller);
}

/// act(), while a Profile is open.
[[gnu::noinline]] void Dispatcher::act_noted(const Decision& decision, const Leaves& leaves,
                                             Caller& caller, Stance stance) {
  constexpr std::string_view tiers[] = {"compiled", "recorded", "compiled", "in segments", "eager"};
  profiling::Span span(EventKind::call, options_.name);
  span.set_detail(tiers[static_cast<std::size_t>(decision.action)]);
  act(decision, leaves, caller, stance);
}

Dispatcher::Decision Dispatcher::decide(const Leaves& leaves, Caller& caller, Stance stance) {
  {
    const std::lock_guard lock(mutex_);
    if (entries_.is_latest(leaves))
      return decide_for({entries_.latest(), Guards::Match::yes}, stance);
  }
  return decide_by_key(leaves, caller, stance);
}

Dispatcher::Decision Dispatcher::decide_by_key(const Leaves& leaves, Caller& caller,
                                               Stance stance) {
  Key key;
  make_key(leaves, key);
  {
    const std::lock_guard lock(mutex_);
    Entries::Found found = entries_.find(leaves, key);
    if (found.entry) return decide_for(std::move(found), stance);
  }
  // Described without the lock, by code that may be the user's.
  std::vector<Word> words = caller.describe_arguments(options_.arguments);
  std::shared_ptr<const Meaning> meaning = caller.meaning();
  const Section section(*this);
  Entries::Found found = entries_.find(leaves, key);
  if (!found.entry) found = add_entry(leaves, key, std::move(words), std::move(meaning));
  return decide_for(std::move(found), stance);
}

/// Counts the call and says how it runs.
Dispatcher::Decision Dispatcher::decide_for(Entries::Found found, Stance stance) {
  if (stance == Stance::fail_on_recompile) check_known(found.entry.get());
  Decision decision = {.entry = std::move(found.entry), .now = {}, .match = found.match};
  if (decision.entry) {
    choose(decision, stance);
  } else {
    ++crowded_calls_;
  }
  return decision;
}

Entries::Found Dispatcher::add_entry(const Leaves& leaves, std::span<const uint64_t> key,
                                     std::vector<Word> words,
                                     std::shared_ptr<const Meaning> meaning) {
  const std::span<const std::shared_ptr<Entry>> variants = entries_.with_key(key);
  const auto looks = std::ranges::find_if(variants, [](const std::shared_ptr<Entry>& entry) {
    return entry->now->guards && !entry->now->guards->numbers().empty();
  });
  // Copied: adding may move the bucket.
  std::optional<tracer::NumberGuard> look;
  if (variants.size() >= Entries::most_variants && looks != variants.end())
    look = (*looks)->now->guards->numbers()[0];
  const std::shared_ptr<Entry> entry =
      entries_.add(leaves, key, std::move(words), std::move(meaning));
  if (!entry) {
    warn_once(
        has_warned_crowded_,
        fmt::format("more than {} signatures are in use: calls with others run eagerly; raise "
                    "the option signature_limit, or pad arguments to fewer sizes",
                    options_.signature_limit));
    return {};
  }
  if (look) {
    give_up(*entry,
            fmt::format("host code looks at a Scalar argument by {}, and it has had more than {} "
                        "values; compute with the Scalar itself, or with a tensor",
                        look->what, Entries::most_variants),
            look->place);
  }
  return {entry, Guards::Match::yes};
}

/// Stance::fail_on_recompile: `entry` must have been called, unless the function has no Plan yet.
void Dispatcher::check_known(const Entry* entry) const {
  const std::shared_ptr<Entry>& latest = entries_.latest();
  if (entry == nullptr || entry->calls > 0 || !latest || latest->now->tier != Tier::traced) return;
  throw Error(ErrorKind::compile, {.where = options_.name,
                                   .what = "the call needs another Plan: " + entry->cause,
                                   .expected = "a signature seen before (stance fail_on_recompile)",
                                   .got = join(entry->words),
                                   .fix = "Pass changing numbers as Scalar, or lift the stance."});
}

bool Dispatcher::is_check_due(Entry& entry) {
  if (options_.check != Check::scheduled) return options_.check == Check::always;
  if (entry.calls >= entry.next_check) {
    entry.next_check = entry.calls + std::min(entry.calls, Entry::largest_check_interval);
    return true;
  }
  if (options_.check_interval.count() == 0) return false;
  const int64_t now = coarse_now();
  // Of all signatures together, and not of every call of one that is called rarely.
  const auto passed = static_cast<double>(now - std::max(entry.last_check, last_timed_check_));
  const bool is_cheap = passed > check_share * 1e9 * entry.recording_s;
  const auto shortest = std::chrono::nanoseconds(options_.check_interval).count();
  if (!is_cheap || now - entry.last_check < shortest ||
      entry.plan_calls == entry.checked_plan_calls)
    return false;
  last_timed_check_ = now;
  return true;
}

void Dispatcher::choose(Decision& decision, Stance stance) {
  Entry& entry = *decision.entry;
  entries_.touch(decision.entry);
  ++entry.calls;
  decision.now = entry.now;
  const Snapshot& now = *entry.now;
  if (!now.plan) {
    decision.action = choose_without_plan(decision, stance);
    if (decision.action == Action::run_eagerly) return count_eager(decision);
    if (decision.action == Action::defer)
      ++entry.deferred_calls;
    else
      entry.is_recording = true;
    return;
  }
  const auto record = [&] {
    decision.why = Eagerly::while_recorded;
    if (entry.is_recording) return count_eager(decision);
    decision.action = Action::record;
    entry.is_recording = true;
  };
  if (decision.match == Guards::Match::unproven) return record();
  const bool is_checked = is_check_due(entry) && !entry.is_recording;
  decision.is_timed =
      is_checked || entry.calls + 1 == entry.next_check || entry.plan_times < plan_timings;
  const auto run_plan = [&] {  // counted here, where the lock is held anyway
    decision.action = Action::run_plan;
    ++entry.plan_calls;
    ledger_.plan_runs();
  };
  const auto is_compared = [&] { return may_compare(entry, stance); };
  if (now.tier == Tier::eager && is_compared()) {  // measured to be faster
    return entry.calls + 1 == entry.next_check ? run_plan() : count_eager(decision);
  }
  if (is_checked) return record();
  if (entry.race.wants_pair() && is_compared()) {
    decision.is_timed = true;
    decision.why = Eagerly::compared;
    if (entry.timed_plan > 0) return count_eager(decision);
  }
  run_plan();
}

void Dispatcher::forget_ended() {
  std::vector<std::shared_ptr<Entry>> ended;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  ended = entries_.take_ended();
}

/// What a call does whose signature has no Plan.
Dispatcher::Action Dispatcher::choose_without_plan(Decision& decision, Stance stance) {
  Entry& entry = *decision.entry;
  const Snapshot& now = *entry.now;
  if (!now.segments_because.empty()) return choose_segments(decision, stance);
  if (now.tier == Tier::eager) return Action::run_eagerly;
  decision.why = entry.is_recording ? Eagerly::while_recorded : Eagerly::while_compiled;
  if (entry.is_recording || entry.is_queued) return Action::run_eagerly;
  const bool is_recorded = now.trace && decision.match == Guards::Match::yes;
  const bool is_trusted =
      is_recorded && (entry.is_waiting || entries_.has_trusted_sibling(entry, *now.trace));
  if (!is_trusted) return Action::record;
  if (ledger_.repays(entry.calls, entry.recording_s)) return Action::build;
  wait_to_repay(entry);
  decision.why = Eagerly::unrepaid;
  return Action::run_eagerly;
}

// ---- eager calls

double Dispatcher::compute(const Leaves& leaves, Caller& caller, bool is_timed) {
  tracer::Transaction transaction;
  return compute_by(transaction, leaves, caller, is_timed);
}

double Dispatcher::compute_by(tracer::Transaction& transaction, const Leaves& leaves,
                              Caller& caller, bool is_timed, tracer::Deferred* deferred) {
  if (assigns_nothing())
    transaction.order(options_.name, {}, false);
  else
    order(transaction, leaves);
  std::unique_lock<std::recursive_mutex> running(running_, std::defer_lock);
  if (!is_const_) running.lock();
  const double start = is_timed ? call_now() : 0;
  {
    const InterpreterScope scope(transaction);
    caller.run();
    if (deferred != nullptr) {
      caller.change_result([&](Tensor& tensor) { deferred->returns(tensor); });
      deferred->finish();
    }
  }
  if (!assigns_nothing() || !transaction.assignments().empty()) note_assigned(transaction, leaves);
  transaction.commit();
  return is_timed ? call_now() - start : 0;
}

void Dispatcher::call_eagerly(const Leaves& leaves, Caller& caller) {
  eager_calls_.fetch_add(1, std::memory_order_relaxed);
  if (!profiling::is_on()) [[likely]] {
    compute(leaves, caller);
    return;
  }
  profiling::Span span(EventKind::call, options_.name);
  span.set_detail("eager");
  compute(leaves, caller);
}

void Dispatcher::call_inlined(Caller& caller) {
  std::unique_lock<std::recursive_mutex> running(running_, std::defer_lock);
  if (!is_const_) running.lock();
  caller.run();
}

void Dispatcher::run_eagerly(const Decision& decision, const Leaves& leaves, Caller& caller) {
  const double took = compute(leaves, caller, decision.is_timed);
  if (!decision.is_timed) return;
  const Section section(*this);
  Entry& entry = *decision.entry;
  if (entry.timed_plan > 0 && entry.now == decision.now) add_pair(entry, took);
}

/// The eager half of a pair for the race.
void Dispatcher::add_pair(Entry& entry, double eager_s) {
  const double plan_s = std::exchange(entry.timed_plan, 0);
  const bool is_lost = entry.now->tier == Tier::eager;
  const bool is_in_segments = !entry.now->segments_because.empty();
  if (is_in_segments && !is_lost && !entry.race.wants_pair())
    return entry.race.add_first(plan_s, eager_s);
  entry.race.add_pair(plan_s, eager_s);
  if (is_lost) {
    if (!entry.race.plan_won()) return;
    return replace(entry, [&](Snapshot& next) {
      next.tier = is_in_segments ? Tier::deferred : Tier::traced;
      next.reason = next.segments_because;
    });
  }
  const std::optional<std::string> lost =
      entry.race.plan_lost(is_in_segments ? "in segments" : "its Plan");
  if (!lost) return;
  replace(entry, [&](Snapshot& next) {
    next.tier = Tier::eager;
    next.reason = is_in_segments
                      ? fmt::format("{}; not one plan because {}", *lost, next.segments_because)
                      : *lost;
  });
  warn(fmt::format("({}) {}; compared again from time to time", join(entry.words), *lost));
}

void Dispatcher::count_eager(const Decision& decision) {
  ++decision.entry->eager_calls[static_cast<std::size_t>(decision.why)];
}

/// Orders this call by the Variables that earlier calls have assigned.
void Dispatcher::order(tracer::Transaction& transaction, const Leaves& leaves) {
  if (is_held()) return;
  std::vector<Variable> assigned;
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = !has_assigned_;
    assigned = assigned_;
    if (assigns_arguments_) {
      for (const Variable* variable : leaves.variables) {
        assigned.push_back(*variable);
        if (variable->tracks_gradient()) assigned.push_back(*variable->cell().gradient);
      }
    }
  }
  std::ranges::sort(assigned, {}, [](const Variable& variable) { return variable.cell().id; });
  transaction.order(options_.name, assigned, is_first);
}

void Dispatcher::note_assigned(const tracer::Transaction& transaction, const Leaves& leaves) {
  const std::lock_guard lock(mutex_);
  has_assigned_ = true;
  const auto id = [](const Variable& variable) { return variable.cell().id; };
  for (const tracer::Assignment& assignment : transaction.assignments()) {
    const Variable& variable = assignment.variable;
    if (transaction.is_local(variable)) continue;
    const bool is_argument = std::ranges::any_of(leaves.variables, [&](const Variable* leaf) {
      return *leaf == variable || (leaf->tracks_gradient() && *leaf->cell().gradient == variable);
    });
    assigns_arguments_ |= is_argument;
    const auto place = std::ranges::lower_bound(assigned_, id(variable), {}, id);
    if (!is_argument && (place == assigned_.end() || *place != variable))
      assigned_.insert(place, variable);
  }
  assigns_nothing_.store(assigned_.empty() && !assigns_arguments_, std::memory_order_relaxed);
}

// ---- calls by a Plan

namespace {

/// How many calls whose checks are made later may be on their way: each keeps its arguments.
constexpr std::size_t most_deferred = 8;
/// How many are kept to be told to threads that may never call again.
constexpr std::size_t most_untold = 64;

template <class T, class List>
std::vector<T> copies_of(const List& leaves) {
  std::vector<T> copies;
  copies.reserve(leaves.size());
  for (const T* leaf : leaves) copies.push_back(*leaf);
  return copies;
}

Deferral deferral(const std::string& name, const std::shared_ptr<const tracer::Trace>& trace,
                  const std::shared_ptr<std::atomic<uint64_t>>& failures, const Leaves& leaves) {
  return {.function = name,
          .trace = trace,
          .tensors = copies_of<Tensor>(leaves.tensors),
          .variables = copies_of<Variable>(leaves.variables),
          .scalars = copies_of<Scalar>(leaves.scalars),
          .failures = failures,
          .site = CallSite::here()};
}

}  // namespace

/// Throws what an earlier call of this thread is found to have failed with. Waits only if too many
/// are on their way.
void Dispatcher::look_at_deferred() {
  for (bool has_waited = false;; has_waited = true) {
    DeferredCheck::look();
    std::vector<Handle<DeferredCheck>> known;  // destroyed after the lock
    Handle<DeferredCheck> failed, oldest;
    {
      const std::lock_guard lock(mutex_);
      std::size_t open = 0;
      std::erase_if(deferred_, [&](Handle<DeferredCheck>& call) {
        if (call->state() == DeferredCheck::State::open) {
          if (open++ == 0) oldest = call;
          return false;
        }
        if (call->is_news() && !failed)
          failed = call;
        else if (call->is_untold())
          return false;  // for its thread, when that calls
        known.push_back(std::move(call));
        return true;
      });
      if (open < most_deferred) oldest.reset();
      if (deferred_.size() > most_untold) {
        known.push_back(std::move(deferred_.front()));
        deferred_.pop_front();
      }
      has_deferred_.store(!deferred_.empty(), std::memory_order_relaxed);
    }
    if (failed) failed->tell();
    if (!oldest || has_waited) return;
    oldest->wait();
  }
}

inline Plan::Outcome Dispatcher::run_steps(const Snapshot& now, const Leaves& leaves,
                                           std::span<Tensor> read, std::span<Tensor> results) {
  if (now.plan->report().is_deferred) [[unlikely]]
    return run_deferred(now, leaves, read, results);
  return now.plan->run({.tensors = leaves.tensors,
                        .variables = leaves.variables,
                        .scalars = leaves.scalars,
                        .read = read},
                       results);
}

/// By a Plan that defers its checks.
[[gnu::noinline]] Plan::Outcome Dispatcher::run_deferred(const Snapshot& now, const Leaves& leaves,
                                                         std::span<Tensor> read,
                                                         std::span<Tensor> results) {
  Deferring deferring = {deferral(options_.name, now.trace, failed_checks_, leaves)};
  const Plan::Outcome outcome = now.plan->run({.tensors = leaves.tensors,
                                               .variables = leaves.variables,
                                               .scalars = leaves.scalars,
                                               .read = read,
                                               .deferring = &deferring},
                                              results);
  if (!deferring.call) return outcome;
  const std::lock_guard lock(mutex_);
  deferred_.push_back(std::move(deferring.call));
  has_deferred_.store(true, std::memory_order_relaxed);
  return outcome;
}

/// Whose results track gradients: those of the Plan get a way back, and are what is left of
/// `results`.
[[gnu::noinline]] Plan::Outcome Dispatcher::run_forward(const Snapshot& now, const Leaves& leaves,
                                                        std::span<Tensor>& results) {
  std::vector<Tensor> read(now.derivative->input_count());
  const Plan::Outcome outcome = run_steps(now, leaves, read, results);
  if (outcome == Plan::Outcome::done) {
    results = Derivative::link(now.derivative, options_.name, now.derivative->hold(leaves, read),
                               results);
  }
  return outcome;
}

namespace {

/// "step 2, kernel mul, exp": the first step that does the op.
std::string step_of(const PlanReport& plan, const Op& op) {
  const auto does = [&](const StepReport& step) {
    return std::ranges::find(step.ops, op.name) != step.ops.end();
  };
  const auto step = std::ranges::find_if(plan.steps, does);
  if (step == plan.steps.end()) return "";
  return fmt::format("step {}, {} {}", step - plan.steps.begin() + 1, step->kind,
                     list_of(step->ops));
}

}  // namespace

void Dispatcher::run_plan(const Decision& decision, const Leaves& leaves, Caller& caller) {
  const Snapshot& now = *decision.now;
  const auto run_instead = [&](Eagerly why) {
    Decision instead = decision;
    instead.action = Action::run_eagerly;
    instead.is_timed = false;
    instead.why = why;
    {
      const std::lock_guard lock(mutex_);
      --decision.entry->plan_calls;
      ledger_.plan_did_not_run();
      count_eager(instead);
    }
    run_eagerly(instead, leaves, caller);
  };
  if (now.derivative && now.derivative->needs_eager_tape(leaves))
    return run_instead(Eagerly::differentiated_twice);
  if (now.plan->is_ordered() && is_held()) [[unlikely]]
    return run_instead(Eagerly::acts_within);
  ShortArray<Tensor, 4> tensors(now.plan->result_count());
  std::span<Tensor> results = tensors.span();
  const double start = decision.is_timed ? call_now() : 0;
  const Plan::Outcome outcome =
      now.derivative ? run_forward(now, leaves, results) : run_steps(now, leaves, {}, results);
  const double took = decision.is_timed ? call_now() - start : 0;
  if (outcome == Plan::Outcome::done) {
    if (now.trace->spent) link_spent(*now.trace->spent, results);
    caller.restore(now.form.get(), results);
  }
  if (outcome == Plan::Outcome::done && !decision.is_timed) return;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = *decision.entry;
    if (outcome == Plan::Outcome::done) {
      if (entry.now != decision.now) return;
      const bool begins_pair = entry.calls + 1 == entry.next_check || entry.race.wants_pair();
      entry.timed_plan = begins_pair ? took : 0;
      entry.plan_s = std::min(entry.plan_s, took);
      if (++entry.plan_times == plan_timings) ledger_.measured(entry.recording_s, entry.plan_s);
      return;
    }
    if (outcome == Plan::Outcome::check_failed)
      failed_checks_->fetch_add(1, std::memory_order_relaxed);
    if (outcome == Plan::Outcome::layout_changed && entry.now == decision.now) {  // record anew
      entry.now = std::make_shared<const Snapshot>();
      entry.race = {};
    }
  }
  if (outcome == Plan::Outcome::not_finite) {
    const auto step = [&](const Op& op) { return step_of(now.plan->report(), op); };
    const StepOf told = step;
    const CompiledCallScope scope(told);
    return run_instead(Eagerly::not_finite);
  }
  run_instead(outcome == Plan::Outcome::check_failed ? Eagerly::check_failed
                                                     : Eagerly::layout_changed);
}

}  // namespace nitinol::jit
