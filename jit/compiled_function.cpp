// The life of a signature.
//
//   call 1    recorded: eager's results, and a Trace
//   call 2    recorded; if both traces agree (or a signature that differs only in sizes is trusted
//   already, after
//             call 1) the trace is compiled into a Plan
//   later     the Plan runs; at calls 4, 8, 16 … the call is recorded again instead and compared
//
// A trace that cannot stand for the function, or two that disagree, leave the signature eager, with
// the reason. User code runs without any lock of ours (except that a function with state of its own
// is never run by two threads).
#include "jit/compiled_function.h"

#include "core/error.h"
#include "core/interpreter.h"
#include "core/log.h"
#include "jit/derivative.h"
#include "jit/race.h"
#include "jit/stance.h"
#include "tracer/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace nitinol::jit {
namespace {

/// Disagreements between recordings before a signature is given up: the first call may initialise
/// something.
constexpr int most_disagreements = 2;
constexpr uint64_t largest_check_interval = 1024;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct CompiledFunction::Entry {
  std::vector<uint64_t> key;
  std::vector<uint64_t> structure;  ///< without_sizes()
  std::vector<std::string> words;
  std::vector<uint64_t> fixed;
  std::string cause;
  uint64_t first_use = 0, last_use = 0;

  Tier tier = Tier::recorded;
  bool is_recording = false;
  bool is_queued = false;  ///< its Plan is being made in the background
  uint64_t calls = 0, recorded_calls = 0, plan_calls = 0, eager_calls = 0;
  uint64_t next_check = 4;
  uint64_t trusted_since = 0;  ///< the call after which the Plan was made
  int disagreements = 0;
  Race race;
  std::optional<tracer::Trace> trace;
  std::vector<uint64_t> result_fixed;  ///< fixed leaves of the recorded result
  std::shared_ptr<const void> form;
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const Derivative> derivative;  ///< if results track gradients
  double compile_s = 0;
  std::string reason, place;

  /// True if every host value read while recording is still what it was.
  [[nodiscard]] bool guards_hold() const {
    return !trace || std::ranges::all_of(trace->guards, [](const HostValueGuard& g) {
      return g.same(g.object.get(), g.bits);
    });
  }
};

CompiledFunction::CompiledFunction(CompileOptions options, bool is_const)
    : options_(std::move(options)), is_const_(is_const) {
  if (options_.name.empty()) options_.name = "function";
}

CompiledFunction::~CompiledFunction() {
  const std::lock_guard lock(mutex_);
  queue_.clear();
}

// ---- look-up (all under mutex_)

std::shared_ptr<CompiledFunction::Entry> CompiledFunction::entry_for(
    const Leaves& leaves, std::span<const uint64_t> key) {
  if (latest_ && std::ranges::equal(latest_->key, key) && latest_->guards_hold()) return latest_;
  const auto found = entries_.find(hash_of(key));
  if (found != entries_.end()) {
    for (const std::shared_ptr<Entry>& entry : found->second) {
      if (std::ranges::equal(entry->key, key) && entry->guards_hold()) return entry;
    }
  }
  return add_entry(leaves, key);
}

std::shared_ptr<CompiledFunction::Entry> CompiledFunction::add_entry(
    const Leaves& leaves, std::span<const uint64_t> key) {
  auto entry = std::make_shared<Entry>();
  entry->key.assign(key.begin(), key.end());
  entry->structure = without_sizes(leaves);
  entry->words = describe_leaves(leaves);
  entry->fixed.assign(leaves.fixed.begin(), leaves.fixed.end());
  if (latest_) {
    const auto [before, after] = std::ranges::mismatch(latest_->words, entry->words);
    if (before != latest_->words.end() && after != entry->words.end()) {
      entry->cause =
          fmt::format("leaf {} is {}, was {}", after - entry->words.begin(), *after, *before);
    } else if (latest_->words.size() != entry->words.size()) {
      entry->cause = "another number of arguments";
    } else if (!std::ranges::equal(latest_->key, key)) {
      entry->cause = "other thread count, or arguments that are the same tensor";
    } else {
      entry->cause = "a HostValue changed";
    }
  }
  entries_[hash_of(key)].push_back(entry);
  ++entry_count_;
  evict();
  return entry;
}

void CompiledFunction::evict() {
  if (entry_count_ <= options_.signature_limit) return;
  std::vector<std::shared_ptr<Entry>>* bucket = nullptr;
  std::size_t oldest = 0;
  for (auto& [hash, list] : entries_) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i]->last_use == 0 && list[i]->calls == 0) continue;  // the one being added
      if (bucket == nullptr || list[i]->last_use < (*bucket)[oldest]->last_use) {
        bucket = &list;
        oldest = i;
      }
    }
  }
  if (bucket == nullptr) return;
  const uint64_t hash = hash_of((*bucket)[oldest]->key);
  bucket->erase(bucket->begin() + static_cast<std::ptrdiff_t>(oldest));
  if (bucket->empty()) entries_.erase(hash);
  --entry_count_;
}

CompiledFunction::Action CompiledFunction::next_action(Entry& entry) {
  entry.last_use = ++clock_;
  if (entry.first_use == 0) entry.first_use = entry.last_use;
  ++entry.calls;
  if (entry.tier == Tier::eager) return Action::run_eagerly;
  if (entry.tier == Tier::traced) {
    const bool is_due = options_.check == Check::always ||
                        (options_.check == Check::scheduled && entry.calls >= entry.next_check);
    if (!is_due || entry.is_recording) return Action::run_plan;
    entry.next_check = entry.calls + std::min(entry.calls, largest_check_interval);
  }
  if (entry.is_recording || entry.is_queued) return Action::run_eagerly;
  entry.is_recording = true;
  return Action::record;
}

// ---- calls

void CompiledFunction::call(const Leaves& leaves, Caller& caller) {
  const int own = stance_.load(std::memory_order_relaxed);
  const Stance stance = own >= 0 ? static_cast<Stance>(own) : current_stance();
  if (stance == Stance::eager) return call_eagerly(caller);
  Key key;
  make_key(leaves, key);
  std::shared_ptr<Entry> entry;
  Action action;
  {
    const std::lock_guard lock(mutex_);
    entry = entry_for(leaves, key);
    if (stance == Stance::fail_on_recompile && entry->calls == 0 && latest_ &&
        latest_->tier == Tier::traced) {
      throw Error(ErrorKind::compile,
                  {.where = options_.name,
                   .what = "the call needs another Plan: " + entry->cause,
                   .expected = "a signature seen before (stance fail_on_recompile)",
                   .got = join(entry->words),
                   .fix = "Pass changing numbers as Scalar, or lift the stance."});
    }
    action = next_action(*entry);
    latest_ = entry;
  }
  if (action == Action::run_plan) return run_plan(entry, leaves, caller);
  if (action == Action::record) return record(entry, leaves, caller);
  if (stance == Stance::fail_on_fallback && entry->tier == Tier::eager) {
    throw Error(ErrorKind::compile,
                {.where = options_.name,
                 .what = "the call would run eagerly: " + entry->reason,
                 .expected = "a function that can be compiled (stance fail_on_fallback)",
                 .got = entry->place.empty() ? "eager execution" : "a fallback at " + entry->place,
                 .fix = "Move what prevents it out of the function, or lift the stance."});
  }
  fall_back(*entry, caller);
}

void CompiledFunction::call_eagerly(Caller& caller) {
  {
    const std::lock_guard lock(mutex_);
    ++eager_calls_;
  }
  std::unique_lock<std::mutex> running(running_, std::defer_lock);
  if (!is_const_) running.lock();
  tracer::Transaction transaction;
  {
    const InterpreterScope scope(transaction);
    caller.run();
  }
  transaction.commit();
}

void CompiledFunction::fall_back(Entry& entry, Caller& caller) {
  call_eagerly(caller);
  const std::lock_guard lock(mutex_);
  --eager_calls_;
  ++entry.eager_calls;
}

void CompiledFunction::run_plan(const std::shared_ptr<Entry>& entry, const Leaves& leaves,
                                Caller& caller) {
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const Derivative> derivative;
  std::shared_ptr<const void> form;
  std::shared_ptr<const std::vector<tracer::SpentResult>> spent;
  bool is_timed = false;
  {
    const std::lock_guard lock(mutex_);
    plan = entry->plan;
    derivative = entry->derivative;
    form = entry->form;
    spent = entry->trace->spent;
    if (derivative && derivative->needs_eager_tape(leaves)) plan = nullptr;
    is_timed = entry->calls + 1 == entry->next_check;
    if (plan) ++entry->plan_calls;
  }
  if (!plan) return fall_back(*entry, caller);  // or dropped by another thread just now
  Derivative::Held held;
  if (derivative) held = derivative->hold(leaves);
  std::vector<Tensor> results;
  const double start = is_timed ? now() : 0;
  const Plan::Outcome outcome = plan->run(
      {.tensors = leaves.tensors, .variables = leaves.variables, .scalars = leaves.scalars},
      results);
  const double took = is_timed ? now() - start : 0;
  if (outcome == Plan::Outcome::done) {
    if (derivative) Derivative::link(derivative, options_.name, std::move(held), results);
    if (spent) link_spent(*spent, results);
    caller.restore(form.get(), results);
  }
  if (outcome == Plan::Outcome::done && !is_timed) return;
  {
    const std::lock_guard lock(mutex_);
    if (outcome == Plan::Outcome::done) return entry->race.plan_took(took);
    --entry->plan_calls;
    if (outcome == Plan::Outcome::check_failed) {
      ++failed_checks_;
    } else {
      entry->tier = Tier::recorded;  // a Variable's layout changed: record anew
      entry->plan = nullptr;
      entry->derivative = nullptr;
      entry->trace.reset();
      entry->race = {};
    }
  }
  fall_back(*entry, caller);
}

namespace {

/// Ends an entry's time as the one being recorded, however that ends.
class RecordingMark {
 public:
  RecordingMark(std::mutex& mutex, bool& mark) : mutex_(mutex), mark_(mark) {}
  RecordingMark(const RecordingMark&) = delete;
  RecordingMark& operator=(const RecordingMark&) = delete;
  ~RecordingMark() {
    const std::lock_guard lock(mutex_);
    mark_ = false;
  }

 private:
  std::mutex& mutex_;
  bool& mark_;
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

void CompiledFunction::record(const std::shared_ptr<Entry>& entry, const Leaves& leaves,
                              Caller& caller) {
  const RecordingMark mark(mutex_, entry->is_recording);
  tracer::Trace trace;
  Leaves result;
  double took = 0;
  {
    std::unique_lock<std::mutex> running(running_, std::defer_lock);
    if (!is_const_) running.lock();
    const double start = now();
    const std::vector<Tensor> scalars = scalar_tensors(leaves);
    const std::vector<Tensor> tensors = stand_ins(leaves);
    tracer::Recorder recorder;
    recorder.declare_arguments(tensors, leaves.variables, scalars);
    {
      const InterpreterScope scope(recorder);
      caller.run_on(tensors, scalars);
    }
    took = now() - start;
    caller.result_leaves(result);
    if (autograd::is_enabled()) record_backward(recorder, result.tensors, tensors);
    trace = recorder.finish(result.tensors);
    trace.spent = spent_results(result.tensors, tensors);
    put_arguments_back(leaves, tensors, caller);
    recorder.commit();
  }
  if (!trace.obstacle && (result.variables.size() > 0 || result.scalars.size() > 0)) {
    trace.obstacle =
        tracer::Obstacle{"the function returns a Variable or a Scalar; return a Tensor", ""};
  }
  accept(entry, std::move(trace), result, took, caller);
}

void CompiledFunction::accept(const std::shared_ptr<Entry>& entry, tracer::Trace trace,
                              const Leaves& result, double took, Caller& caller) {
  const std::vector<uint64_t> fixed(result.fixed.begin(), result.fixed.end());
  {
    const std::lock_guard lock(mutex_);
    ++entry->recorded_calls;
    if (entry->tier == Tier::eager) return;
    if (trace.obstacle) return give_up(*entry, trace.obstacle->reason, trace.obstacle->place);
    if (entry->trace) {
      std::optional<std::string> difference = tracer::first_difference(*entry->trace, trace);
      if (!difference && fixed != entry->result_fixed)
        difference = "a number in the result differs";
      if (difference) return disagree(*entry, *difference, std::move(trace), fixed, caller);
      if (entry->plan) {  // still trusted
        if (options_.check != Check::scheduled) return;
        entry->race.recording_took(took);
        if (const auto reason = entry->race.verdict()) give_up(*entry, *reason, "");
        return;
      }
    }
    const bool is_enough = entry->trace.has_value() || has_trusted_sibling(*entry);
    entry->trace = std::move(trace);
    entry->result_fixed = fixed;
    entry->form = caller.result_form();
    if (!is_enough) return;
    entry->is_queued = options_.in_background;
  }
  options_.in_background ? build_later(entry) : build(entry);
}

void CompiledFunction::give_up(Entry& entry, std::string reason, std::string place) const {
  entry.tier = Tier::eager;
  entry.reason = std::move(reason);
  entry.place = std::move(place);
  entry.plan = nullptr;
  entry.derivative = nullptr;
  entry.form = nullptr;
  log(LogLevel::warning,
      fmt::format("{}: runs eagerly for ({}): {}{}", options_.name, join(entry.words), entry.reason,
                  entry.place.empty() ? "" : " at " + entry.place));
}

bool CompiledFunction::has_trusted_sibling(const Entry& entry) const {
  for (const auto& [hash, list] : entries_) {
    for (const std::shared_ptr<Entry>& other : list) {
      if (other->tier == Tier::traced && other->structure == entry.structure) return true;
    }
  }
  return false;
}

void CompiledFunction::disagree(Entry& entry, const std::string& difference, tracer::Trace trace,
                                const std::vector<uint64_t>& fixed, Caller& caller) {
  const bool was_trusted = entry.plan != nullptr;
  const std::string since = was_trusted ? fmt::format(" (a Plan ran {} calls since call {})",
                                                      entry.plan_calls, entry.trusted_since)
                                        : "";
  if (was_trusted || ++entry.disagreements > most_disagreements) {
    return give_up(
        entry,
        fmt::format("the function does not do the same at each call: {}{}", difference, since), "");
  }
  entry.trace = std::move(trace);
  entry.result_fixed = fixed;
  entry.form = caller.result_form();
}

void CompiledFunction::build(const std::shared_ptr<Entry>& entry) {
  const double start = now();
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const Derivative> derivative;
  std::string failure;
  try {
    const int threads = threads_of(entry->key);
    if (entry->trace->backward) {
      derivative = std::make_shared<const Derivative>(*entry->trace, threads);
      plan = std::make_shared<const Plan>(derivative->forward(), threads);
    } else {
      plan = std::make_shared<const Plan>(*entry->trace, threads);
    }
  } catch (const Error& error) {
    failure = error.what();
  }
  const std::lock_guard lock(mutex_);
  entry->compile_s = now() - start;
  entry->is_queued = false;
  if (!plan) return give_up(*entry, "compilation failed: " + failure, "");
  entry->plan = std::move(plan);
  entry->derivative = std::move(derivative);
  entry->tier = Tier::traced;
  entry->trusted_since = entry->calls;
}

void CompiledFunction::build_later(const std::shared_ptr<Entry>& entry) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(entry);
  if (is_building_) return;
  is_building_ = true;
  builder_ = std::jthread([this] { build_all_queued(); });  // the one before has nothing left to do
}

void CompiledFunction::build_all_queued() {
  for (;;) {
    std::shared_ptr<Entry> entry;
    {
      const std::lock_guard lock(mutex_);
      is_building_ = !queue_.empty();
      if (!is_building_) return;
      entry = std::move(queue_.front());
      queue_.pop_front();
    }
    build(entry);
  }
}

// ---- explanation

Explanation CompiledFunction::explain() const {
  const std::lock_guard lock(mutex_);
  Explanation out;
  out.name = options_.name;
  out.eager_calls = out.calls = eager_calls_;
  out.failed_checks = failed_checks_;
  std::vector<const Entry*> entries;
  for (const auto& [hash, list] : entries_) {
    for (const std::shared_ptr<Entry>& entry : list) entries.push_back(entry.get());
  }
  std::ranges::sort(entries, {}, &Entry::first_use);
  for (const Entry* entry : entries) {
    out.signatures.push_back({.signature = join(entry->words),
                              .tier = entry->tier,
                              .calls = entry->calls,
                              .recorded_calls = entry->recorded_calls,
                              .plan_calls = entry->plan_calls,
                              .eager_calls = entry->eager_calls,
                              .cause = entry->cause,
                              .reason = entry->reason,
                              .place = entry->place,
                              .compile_s = entry->compile_s,
                              .plan = entry->plan ? entry->plan->report() : PlanReport{},
                              .backward = {},
                              .graph = entry->plan ? to_string(entry->plan->graph()) : ""});
    if (entry->derivative) {
      const std::shared_ptr<const Plan> backward = entry->derivative->backward_plan();
      if (backward) out.signatures.back().backward = backward->report();
    }
    out.calls += entry->calls;
    out.recorded_calls += entry->recorded_calls;
    out.plan_calls += entry->plan_calls;
    out.eager_calls += entry->eager_calls;
  }
  add_remarks(entries, out);
  return out;
}

void CompiledFunction::add_remarks(const std::vector<const Entry*>& entries, Explanation& out) {
  std::size_t most_fixed = 0;
  for (const Entry* entry : entries) most_fixed = std::max(most_fixed, entry->fixed.size());
  for (std::size_t i = 0; i < most_fixed; ++i) {
    std::vector<uint64_t> values;
    for (const Entry* entry : entries) {
      if (i < entry->fixed.size() && std::ranges::find(values, entry->fixed[i]) == values.end()) {
        values.push_back(entry->fixed[i]);
      }
    }
    if (values.size() < 3) continue;
    out.remarks.push_back(
        fmt::format("fixed argument {} has had {} different values, and each is a signature of its "
                    "own: if it is a number, take it as "
                    "Scalar",
                    i, values.size()));
  }
}

}  // namespace nitinol::jit
