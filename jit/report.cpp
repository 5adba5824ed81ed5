// What explain() tells of a compiled function.
#include "jit/dispatcher.h"

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
    if (backward) report.backward = backward->report();
  }
  if (now.plan) {
    std::unordered_map<uint32_t, std::string> texts;  // which take their time
    name_places(report.plan, *now.trace, texts);
    if (report.backward) name_places(*report.backward, *now.trace, texts);
  }
  return report;
}

}  // namespace

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
