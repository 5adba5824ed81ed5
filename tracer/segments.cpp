#include "tracer/segments.h"

#include <algorithm>
#include <utility>

namespace nitinol::tracer {
namespace {

/// Steps with the same op and operands after one step, in all and with the same sizes: more, and
/// sizes or attributes differ from call to call.
constexpr int most_alike = 128, most_of_size = 16;
/// 0.6 kB each, or more. A small GPT that writes with a growing context has 20,000.
constexpr std::size_t most_steps = 60'000;
/// Sets of live values at one end of a segment; then one program gives the union.
constexpr std::size_t most_cuts = 4;
constexpr std::size_t most_programs = 256;
constexpr std::size_t most_looks = 16;
constexpr std::size_t most_crowded = 8;

bool is_like(const Step& a, const Step& b) {
  return a.op == b.op && a.operands == b.operands;
}

std::vector<const Step*> way_to(const Step& last) {
  std::vector<const Step*> way;
  for (const Step* step = &last; step->op != nullptr; step = step->before) way.push_back(step);
  std::ranges::reverse(way);
  return way;
}

Node input_of(const Layout& layout) {
  Node node;
  node.kind = Node::Kind::input;
  node.spec = layout.spec;
  node.strides = layout.strides;
  return node;
}

/// A trace in the making.
class Tracing {
 public:
  explicit Tracing(Cut::Compiled& compiled) : compiled_(compiled) {}

  void add(const Step& step) {
    for (const Layout& layout : step.imports) {
      imports_.push_back(add(input_of(layout)));
      add_input(imports_.back(), TraceInput::Kind::tensor, imports_.size() - 1);
    }
    std::vector<Value> inputs;
    auto number = step.numbers.begin();
    for (const OperandCode code : step.operands) {
      if (code == number_code)
        inputs.push_back(add_number(*number++));
      else
        inputs.push_back(is_import(code) ? imports_[code & ~import_bit] : values_[code]);
    }
    if (step.returned >= 0) return;
    Node node;
    node.op = step.op;
    node.inputs = std::move(inputs);
    node.attrs = step.attrs;
    node.spec = step.spec;
    node.origin = static_cast<uint32_t>(places_.size());
    places_.push_back(step.place);
    values_.push_back(add(std::move(node)));
  }

  Trace finish(const ResultSet& live) {
    for (std::size_t v = 0; v < values_.size(); ++v) {
      if (!live.contains(v)) continue;
      trace_.graph.outputs.push_back(values_[v]);
      compiled_.results.push_back(static_cast<uint32_t>(v));
    }
    trace_.result_count = trace_.graph.outputs.size();
    for (const NewValue& value : compiled_.replaced) {
      const auto k = std::ranges::lower_bound(compiled_.results, value.result);
      trace_.replacements.push_back(
          {.result = static_cast<std::size_t>(k - compiled_.results.begin()),
           .leaf = static_cast<int>(value.import)});
    }
    compiled_.run_time_numbers = compiled_.numbers.size();
    trace_.places = std::make_shared<const std::vector<CallSite>>(std::move(places_));
    return std::move(trace_);
  }

 private:
  Value add(Node node) {
    trace_.graph.nodes.push_back(std::move(node));
    return static_cast<Value>(trace_.graph.nodes.size() - 1);
  }

  void add_input(Value value, TraceInput::Kind kind, std::size_t leaf) {
    trace_.graph.inputs.push_back(value);
    trace_.inputs.push_back({.kind = kind, .leaf = static_cast<int>(leaf), .captured = {}});
  }

  Value add_number(const NumberPlace& place) {
    const uint32_t position = numbers_++;
    Node node;
    if (!place.is_run_time.load(std::memory_order_relaxed)) {
      node.kind = Node::Kind::constant;
      node.spec = place.spec;
      node.constant = make_number(place.spec, place.bits);
      return add(std::move(node));
    }
    const Value value = add(input_of({place.spec, {}}));
    add_input(value, TraceInput::Kind::scalar, compiled_.numbers.size());
    compiled_.numbers.push_back(position);
    return value;
  }

  Trace trace_;
  std::vector<CallSite> places_;
  Cut::Compiled& compiled_;
  std::vector<Value> values_, imports_;
  uint32_t numbers_ = 0;
};

}  // namespace

std::size_t run_time_numbers(const Step& last) {
  std::size_t count = 0;
  for (const Step* step = &last; step->op != nullptr; step = step->before) {
    for (const NumberPlace& place : step->numbers)
      count += place.is_run_time.load(std::memory_order_relaxed) ? 1 : 0;
  }
  return count;
}

Trace trace_of(const Step& last, const ResultSet& live, Cut::Compiled& compiled) {
  Tracing tracing(compiled);
  for (const Step* step : way_to(last)) tracing.add(*step);
  return tracing.finish(live);
}

Step* Segments::add(Step& before, std::unique_ptr<Step> step) {
  const std::lock_guard lock(mutex_);
  Step* const first = before.first.load(std::memory_order_relaxed);
  int alike = 0, of_size = 0;
  for (const Step* other = first; other != nullptr; other = other->next) {
    if (!is_like(*other, *step)) continue;
    ++alike;
    of_size += other->imports == step->imports ? 1 : 0;
  }
  const bool is_full = steps_.size() >= most_steps;
  if (is_full) is_full_.store(true, std::memory_order_relaxed);
  if (is_full || alike >= most_alike || of_size >= most_of_size) {
    note_crowded(step->place);
    return nullptr;
  }
  step->before = &before;
  step->next = first;
  steps_.push_back(std::move(step));
  before.first.store(steps_.back().get(), std::memory_order_release);
  return steps_.back().get();
}

void Segments::note_crowded(const CallSite& place) {
  ++crowded_;
  const auto at = std::ranges::find(crowded_at_, place, &std::pair<CallSite, uint64_t>::first);
  if (at != crowded_at_.end())
    ++at->second;
  else if (crowded_at_.size() < most_crowded)
    crowded_at_.emplace_back(place, 1);
}

void Segments::widen(Step& step, std::span<const uint64_t> bits) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    NumberPlace& place = step.numbers[i];
    if (place.bits == bits[i] || place.is_run_time.load(std::memory_order_relaxed)) continue;
    place.is_run_time.store(true, std::memory_order_relaxed);
    ++widened_;
  }
}

void Segments::explored(Step& step, std::size_t results) {
  const std::lock_guard lock(mutex_);
  if (!step.used) step.used.emplace(results);
  ++step.visits;
  ++clock_;
}

void Segments::use(Step& step, uint32_t result) {
  const std::lock_guard lock(mutex_);
  step.used->add(result);
}

Segments::Visit Segments::visit(Step& step, ResultSet& live, std::optional<uint32_t> looked_at,
                                bool may_compile) {
  const std::lock_guard lock(mutex_);
  if (!step.used) step.used.emplace(live).clear();
  if (looked_at) {
    live.keep_only(*step.used);
    live.add(*looked_at);
  }
  Cut* cut = nullptr;
  for (const std::unique_ptr<Cut>& other : step.cuts) {
    if (other->live == live) cut = other.get();
  }
  if (cut == nullptr && step.cuts.size() == most_cuts) {
    cut = step.cuts.back().get();
    if (!cut->live.contains_all(live)) {
      cut->live.add_all(live);
      std::erase(compiled_, cut);
      cut->compiled.reset();
    }
  }
  if (cut == nullptr) {
    step.cuts.push_back(std::make_unique<Cut>(live));
    cut = step.cuts.back().get();
  }
  ++step.visits;
  cut->last_use = ++clock_;
  Visit visit = {.cut = cut, .compiled = cut->compiled};
  if (!may_compile) return visit;
  if (visit.compiled && cut->widened != widened_) {
    if (visit.compiled->run_time_numbers == run_time_numbers(step))
      cut->widened = widened_;
    else
      visit.compiled.reset();
  }
  visit.compiles =
      !visit.compiled && step.visits >= 2 && !cut->is_being_compiled && !cut->is_hopeless;
  cut->is_being_compiled |= visit.compiles;
  if (visit.compiles) visit.live = cut->live;
  return visit;
}

void Segments::look(Step& step, const ReadSite& site, std::optional<bool> outcome) {
  const void* const key =
      site.return_address != nullptr ? site.return_address : site.place.file_name();
  const auto is_it = [&](const SegmentsReport::Look& look) {
    return look.site == key && look.line == site.place.line() && look.what == site.what;
  };
  std::unique_lock<ForkSafeMutex> lock(mutex_);
  if (std::ranges::none_of(step.looks, is_it)) {
    if (step.looks.size() == most_looks) return;
    lock.unlock();  // it may be the user's language that tells
    std::string place = text_of(site);
    lock.lock();
    step.looks.push_back(
        {.what = site.what, .place = std::move(place), .site = key, .line = site.place.line()});
  }
  SegmentsReport::Look& look = *std::ranges::find_if(step.looks, is_it);
  ++look.count;
  look.is_bool |= outcome.has_value();
  look.true_count += outcome.value_or(false) ? 1 : 0;
}

void Segments::drop_least_used() {
  const auto oldest = std::ranges::min_element(compiled_, {}, &Cut::last_use);
  (*oldest)->compiled.reset();
  compiled_.erase(oldest);
}

std::shared_ptr<const Cut::Compiled> Segments::compiled_of(const Cut& cut) const {
  const std::lock_guard lock(mutex_);
  return cut.compiled;
}

void Segments::not_compiled(Cut& cut) {
  const std::lock_guard lock(mutex_);
  cut.is_being_compiled = false;
}

void Segments::compiled(Cut& cut, std::shared_ptr<const Cut::Compiled> compiled) {
  const std::lock_guard lock(mutex_);
  cut.is_being_compiled = false;
  cut.is_hopeless = compiled == nullptr;
  if (!compiled) return;
  ++plans_;
  cut.compiled = std::move(compiled);
  if (std::ranges::find(compiled_, &cut) != compiled_.end()) return;
  if (compiled_.size() == most_programs) drop_least_used();
  compiled_.push_back(&cut);
}

void Segments::add_to(SegmentsReport& report) const {
  const std::lock_guard lock(mutex_);
  report.calls += calls_;
  report.matched += matched_;
  report.computed += computed_;
  report.cuts += clock_;
  report.cuts_by_plan += cuts_by_plan;
  report.plans += plans_;
  report.run_time_numbers += widened_;
  report.crowded += crowded_;
  for (const auto& [place, count] : crowded_at_)
    report.crowded_at.emplace_back(place.text(), count);
  for (const std::unique_ptr<Step>& step : steps_) {
    if (step->visits == 0) continue;
    SegmentsReport::Segment& segment = report.segments.emplace_back();
    const std::vector<const Step*> way = way_to(*step);
    segment.ops = way.size();
    segment.first = way.front()->place.text();
    segment.last = way.back()->place.text();
    segment.looks = step->looks;
    segment.visits = step->visits;
    for (const std::unique_ptr<Cut>& cut : step->cuts) segment.plans += cut->compiled ? 1 : 0;
  }
  std::ranges::stable_sort(report.segments, std::ranges::greater(),
                           &SegmentsReport::Segment::visits);
}

}  // namespace nitinol::tracer
