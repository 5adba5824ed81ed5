// What explain() tells of a compiled function.
#include "core/backend.h"
#include "jit/dispatcher.h"
#include "program/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nitinol::jit {
namespace {

std::string_view text_of(Eagerly why) {
  switch (why) {
    case Eagerly::while_recorded:
      return "another thread was recording the signature";
    case Eagerly::while_compiled:
      return "its plan was being made in the background";
    case Eagerly::unrepaid:
      return "a plan would not have repaid what making it costs";
    case Eagerly::compared:
      return "compared with how it runs compiled, which seemed to be slower";
    case Eagerly::check_failed:
      return "a check inside a kernel had failed, and eager execution tells where";
    case Eagerly::not_finite:
      return "a result had NaN or infinity, and eager execution tells where it came from";
    case Eagerly::layout_changed:
      return "a Variable had another layout than when it was recorded";
    case Eagerly::differentiated_twice:
      return "gradients of its gradients may be asked for (grad() of a function that reads "
             "parameters, or nested); compile the outermost function";
    case Eagerly::acts_within:
      return "it acts on the outside, and the call that it was made in may run it again; compile "
             "that one";
    case Eagerly::for_good:
    case Eagerly::count:
      break;
  }
  return "";
}

/// Names the lines that the steps come from.
void name_places(jit::PlanReport& plan, const tracer::Trace& trace,
                 std::unordered_map<uint32_t, std::string>& texts) {
  for (program::StepReport& step : plan.steps) {
    for (const uint32_t origin : step.origins) {
      const auto [text, is_new] = texts.try_emplace(origin);
      if (is_new) text->second = trace.place_of(origin);
      const bool is_known = std::ranges::find(step.places, text->second) != step.places.end();
      if (!text->second.empty() && !is_known) step.places.push_back(text->second);
    }
  }
}

/// What the caller knows of a trace's inputs and of what it assigns.
class Names {
 public:
  Names(const tracer::Trace& trace, std::span<const Word> words) : words_(words) {
    for (const std::vector<tracer::TraceInput>* list : {&trace.inputs, &trace.assigned}) {
      for (const tracer::TraceInput& input : *list) {
        if (input.kind == tracer::TraceInput::Kind::variable && input.leaf < 0)
          numbers_.try_emplace(&input.captured.cell(), numbers_.size());
      }
    }
  }

  /// "argument 1", "Variable 3" of those that the function has found by itself, in the order in
  /// which it has; empty if there is none.
  [[nodiscard]] std::string of(const tracer::TraceInput& input) const {
    using Kind = tracer::TraceInput::Kind;
    const std::string_view prefix = input.is_gradient ? "gradient of " : "";
    if (input.kind == Kind::variable && input.leaf < 0)
      return fmt::format("{}Variable {}", prefix, numbers_.at(&input.captured.cell()));
    const Word::Kind wanted = input.kind == Kind::tensor   ? Word::Kind::tensor
                              : input.kind == Kind::scalar ? Word::Kind::scalar
                                                           : Word::Kind::variable;
    int leaf = input.leaf;
    for (const Word& word : words_) {
      const bool is_it = word.kind == wanted && input.kind != Kind::seed && leaf-- == 0;
      if (is_it) return fmt::format("{}{}", prefix, word.where);
    }
    return "";
  }

 private:
  std::span<const Word> words_;
  std::unordered_map<const VariableCell*, std::size_t> numbers_;
};

/// What lies in memory, by the names that the caller knows.
void describe_values(PlanReport& report, const Plan& plan, const tracer::Trace& trace,
                     std::span<const Word> words) {
  report.program = plan.program();
  program::describe_values(*report.program, report);
  const Names names(trace, words);
  for (program::ValueReport& value : report.values) {
    using Kind = program::ValueReport::Kind;
    std::string name;
    if (value.kind == Kind::input && value.number < trace.inputs.size())
      name = names.of(trace.inputs[value.number]);
    if (value.kind == Kind::output) {
      const std::size_t update = value.number - plan.result_count();
      if (value.number < trace.result_count)
        name = fmt::format("result {}", value.number);
      else if (value.number < plan.result_count())
        name = "kept for backward";
      else if (update < trace.assigned.size())
        name = "new value of " + names.of(trace.assigned[update]);
    }
    if (!name.empty()) value.name = std::move(name);
  }
}

/// The same of a backward Plan, which has inputs and outputs of its own.
void describe_values(PlanReport& report, const Plan& plan) {
  report.program = plan.program();
  program::describe_values(*report.program, report);
  for (program::ValueReport& value : report.values) {
    if (value.kind == program::ValueReport::Kind::output)
      value.name = fmt::format("gradient {}", value.number);
  }
}

SignatureReport report_of(const Entry& entry) {
  const Snapshot& now = *entry.now;
  SignatureReport report = {.signature = join(entry.words),
                            .tier = now.tier,
                            .calls = entry.calls,
                            .recorded_calls = entry.recorded_calls,
                            .plan_calls = entry.plan_calls,
                            .deferred_calls = entry.deferred_calls,
                            .eager_calls = 0,
                            .eager_because = {},
                            .cause = entry.cause,
                            .reason = now.reason,
                            .place = now.place,
                            .segments_s = 0,
                            .eager_s = 0,
                            .compile_s = now.compile_s,
                            .plan = now.plan ? now.plan->report() : PlanReport{},
                            .backward = {},
                            .graph = now.plan ? to_string(now.plan->graph()) : ""};
  if (now.tier == Tier::deferred) {
    report.segments_s = entry.race.latest_pair().plan_s;
    report.eager_s = entry.race.latest_pair().eager_s;
  }
  for (std::size_t i = 0; i < entry.eager_calls.size(); ++i) {
    const std::string_view why = text_of(static_cast<Eagerly>(i));
    report.eager_calls += entry.eager_calls[i];
    if (entry.eager_calls[i] > 0 && !why.empty())
      report.eager_because.emplace_back(why, entry.eager_calls[i]);
  }
  if (now.derivative) {
    const std::shared_ptr<const Plan> backward = now.derivative->backward_plan();
    if (backward) describe_values(report.backward.emplace(backward->report()), *backward);
  }
  if (now.plan) {
    describe_values(report.plan, *now.plan, *now.trace, entry.words);
    std::unordered_map<uint32_t, std::string> texts;  // which take their time
    name_places(report.plan, *now.trace, texts);
    if (report.backward) name_places(*report.backward, *now.trace, texts);
  }
  return report;
}

}  // namespace

std::vector<Bound> PlanReport::bounds() const {
  std::vector<Bound> bounds(steps.size());
  if (!program) return bounds;
  const DeviceRates rates = program->device->rates(program->threads);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto bytes = static_cast<double>(steps[i].bytes_read + steps[i].bytes_written);
    bounds[i] = {.move_s = rates.move_s(bytes), .compute_s = rates.compute_s(steps[i].operations)};
  }
  return bounds;
}

std::string PlanReport::to_dot() const {
  if (!program) return "";
  std::vector<GraphCluster> clusters;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    clusters.push_back(
        {.label = fmt::format("{}. {} {}", i + 1, steps[i].kind, list_of(steps[i].ops)),
         .nodes = steps[i].nodes});
  }
  return nitinol::to_dot(program->graph, clusters);
}

std::string PlanReport::kernel_text(std::size_t step) const {
  return program ? program::kernel_text(*program, step) : "";
}

std::vector<CodeText> PlanReport::code_texts(std::size_t step) const {
  if (!program) return {};
  return program::code_texts(*program, step);
}

// Described when the mutex is free: that takes its time, and may be the end of a Plan that a call
// has dropped meanwhile.
Explanation Dispatcher::explain() const {
  Explanation out;
  std::vector<Entry> entries;
  std::vector<std::string> remarks;
  std::vector<std::shared_ptr<tracer::Segments>> segments;
  {
    const std::lock_guard lock(mutex_);
    entries = entries_.in_order();
    const Gone& gone = entries_.gone();
    out.eager_calls = eager_calls_ + crowded_calls_ + gone.eager_calls;
    out.calls = eager_calls_ + crowded_calls_ + gone.calls;
    out.recorded_calls = gone.recorded_calls;
    out.plan_calls = gone.plan_calls;
    out.deferred_calls = gone.deferred_calls;
    segments = segments_;
    out.failed_checks = failed_checks_->load(std::memory_order_relaxed);
    if (crowded_calls_ > 0) {
      remarks.push_back(
          fmt::format("{} calls ran eagerly because {} signatures were in use: raise "
                      "the option signature_limit, or pad arguments to fewer sizes",
                      crowded_calls_, options_.signature_limit));
    }
    if (gone.ended > 0) {
      remarks.push_back(fmt::format(
          "{} signatures were for objects that are gone, and their plans with them: an object that "
          "is made anew for each call, a lambda or a module, is recorded anew each time",
          gone.ended));
    }
    if (has_warned_unrepaid_) {
      remarks.push_back(fmt::format(
          "{} plans took {:.3g} ms to make and ran {} times: further signatures are compiled when "
          "they have been called often enough to repay",
          ledger_.plans(), ledger_.spent_s() * 1e3, ledger_.plan_calls()));
    }
  }
  out.name = options_.name;
  for (const Entry& entry : entries) {
    out.signatures.push_back(report_of(entry));
    const SignatureReport& report = out.signatures.back();
    out.calls += report.calls;
    out.recorded_calls += report.recorded_calls;
    out.plan_calls += report.plan_calls;
    out.deferred_calls += report.deferred_calls;
    out.eager_calls += report.eager_calls;
  }
  for (const std::shared_ptr<tracer::Segments>& some : segments) {
    if (!out.segments) out.segments.emplace();
    some->add_to(*out.segments);
  }
  add_remarks(entries, out);
  std::ranges::move(remarks, std::back_inserter(out.remarks));
  return out;
}

void Dispatcher::add_remarks(const std::vector<Entry>& entries, Explanation& out) {
  std::size_t most_words = 0;
  for (const Entry& entry : entries) most_words = std::max(most_words, entry.words.size());
  for (std::size_t i = 0; i < most_words; ++i) {
    std::vector<std::pair<std::string_view, uint64_t>> values;
    std::string where;
    std::string_view advice;
    for (const Entry& entry : entries) {
      if (i >= entry.words.size() || entry.words[i].kind != Word::Kind::fixed) continue;
      where = subject(entry.words[i]);
      advice = entry.words[i].advice;
      const std::pair<std::string_view, uint64_t> value(entry.words[i].text,
                                                        entry.words[i].identity);
      if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    }
    if (values.size() < 3) continue;
    out.remarks.push_back(
        fmt::format("{} has had {} different values, and each is a signature of its own{}{}", where,
                    values.size(), advice.empty() ? "" : ": ", advice));
  }
}

}  // namespace nitinol::jit
