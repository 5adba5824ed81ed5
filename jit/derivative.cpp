#include "jit/derivative.h"

#include "autograd/sweep.h"
#include "core/error.h"
#include "core/profiling.h"
#include "eager/all_ops.h"
#include "eager/ops/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace nitinol::jit {
namespace {

using tracer::TraceInput;

constexpr Value none = UINT32_MAX;

/// Whether computing a value again costs less than keeping it.
bool is_cheap(const Node& node) {
  if (node.kind == Node::Kind::part || has_effect(node)) return false;
  return node.op->kind == OpKind::elementwise || node.op->kind == OpKind::view ||
         node.op->kind == OpKind::create;
}

const Variable& variable_of(const TraceInput& input, const Leaves& leaves) {
  const Variable& variable =
      input.leaf >= 0 ? *leaves.variables[static_cast<std::size_t>(input.leaf)] : input.captured;
  return input.is_gradient ? *variable.cell().gradient : variable;
}

/// The backward part of a trace for some of its seeds: a cut of its graph.
class Cut {
 public:
  Cut(const tracer::Trace& trace, uint64_t seeds)
      : trace_(trace), backward_(*trace.backward), same_(trace.graph.nodes.size()) {
    find_absent(seeds);
    is_needed_.assign(same_.size(), false);
    for (const tracer::Backward::Part& part : backward_.parts) need(part.value);
    for (std::size_t v = same_.size(); v-- > 0;) {
      const auto value = static_cast<Value>(v);
      const Node& node = graph()[value];
      if (!is_needed_[v] || is_saved(value)) continue;
      for (const Value input : node.inputs) need(input);
      for (std::size_t part = 1; part <= parts_of(graph(), value).size(); ++part)
        is_needed_[v + part] = true;
    }
  }

  [[nodiscard]] bool is_needed(Value value) const { return is_needed_[value]; }
  /// The value that stands for this one, or `none` if no seed given reaches it.
  [[nodiscard]] Value same(Value value) const { return same_[value]; }

  /// Whether backward reads the value from the forward part rather than computing it again.
  [[nodiscard]] bool is_saved(Value value) const {
    const Node& node = graph()[value];
    const bool is_made = node.kind == Node::Kind::op || node.kind == Node::Kind::part;
    if (value >= backward_.first || !is_made || has_parts(node)) return false;
    return !is_cheap(node) || (!is_view(node) && is_result(value));
  }

 private:
  [[nodiscard]] const Graph& graph() const { return trace_.graph; }

  [[nodiscard]] bool is_result(Value value) const {
    const auto end = graph().outputs.begin() + static_cast<std::ptrdiff_t>(trace_.result_count);
    return std::find(graph().outputs.begin(), end, value) != end;
  }

  void need(Value value) {
    if (same_[value] != none) is_needed_[same_[value]] = true;
  }

  /// Gradients whose seed is not given are not zeros but not there: a sum with one of them is the
  /// other one. Nothing else mixes gradients of different seeds.
  void find_absent(uint64_t seeds) {
    std::vector<bool> is_seeded(same_.size(), false);
    for (Value v = 0; v < same_.size(); ++v) same_[v] = v;
    for (std::size_t i = 0; i < trace_.inputs.size(); ++i) {
      if (trace_.inputs[i].kind != TraceInput::Kind::seed) continue;
      const Value seed = graph().inputs[i];
      is_seeded[seed] = true;
      if ((seeds >> trace_.inputs[i].leaf & 1U) == 0) same_[seed] = none;
    }
    for (Value v = backward_.first; v < same_.size(); ++v) {
      Value present = none;
      bool is_partly_absent = false;
      for (const Value input : graph()[v].inputs) {
        if (!is_seeded[input]) continue;
        is_seeded[v] = true;
        if (same_[input] == none)
          is_partly_absent = true;
        else
          present = same_[input];
      }
      if (is_partly_absent) same_[v] = present;
    }
  }

  const tracer::Trace& trace_;
  const tracer::Backward& backward_;
  std::vector<Value> same_;
  std::vector<bool> is_needed_;
};

/// A graph made of parts of another one.
class Extract {
 public:
  explicit Extract(const tracer::Trace& from)
      : from_(from), value_of_(from.graph.nodes.size(), none) {}

  tracer::Trace trace;

  /// An input of the new graph, for an input or any other value of the old one.
  void add_input(Value value, TraceInput::Kind kind, std::size_t leaf) {
    const Node& node = from_.graph[value];
    add_input(value, kind, leaf,
              node.kind == Node::Kind::input ? node.strides : strides_of(node.spec.shape));
  }
  void add_input(Value value, TraceInput::Kind kind, std::size_t leaf, const Strides& strides) {
    const Node& node = from_.graph[value];
    Node input = {.kind = Node::Kind::input,
                  .op = nullptr,
                  .inputs = {},
                  .attrs = {},
                  .spec = node.spec,
                  .strides = strides,
                  .constant = {}};
    // Weak inputs are Scalars; a weak tensor comes in as another one and is made weak again.
    const bool is_weak_tensor = node.spec.is_weak && kind != TraceInput::Kind::scalar;
    if (is_weak_tensor) input.spec.is_weak = false;
    value_of_[value] = add(std::move(input));
    trace.graph.inputs.push_back(value_of_[value]);
    trace.inputs.push_back({.kind = kind, .leaf = static_cast<int>(leaf), .captured = {}});
    if (is_weak_tensor) weaken(value, node.spec);
  }
  void add_node(Value value, const Cut& cut) {
    Node node = from_.graph[value];
    for (Value& input : node.inputs) input = value_of_[cut.same(input)];
    value_of_[value] = add(std::move(node));
  }
  /// a + b, of the new graph's values.
  Value add_sum(Value a, Value b) {
    return add({.kind = Node::Kind::op,
                .op = &ops::add(),
                .inputs = {a, b},
                .attrs = {},
                .spec = trace.graph[a].spec,
                .strides = {},
                .constant = {}});
  }
  [[nodiscard]] bool has(Value value) const { return value_of_[value] != none; }
  [[nodiscard]] Value value(Value value) const { return value_of_[value]; }

 private:
  Value add(Node node) {
    trace.graph.nodes.push_back(std::move(node));
    return static_cast<Value>(trace.graph.nodes.size() - 1);
  }

  void weaken(Value value, const Spec& spec) {
    value_of_[value] = add({.kind = Node::Kind::op,
                            .op = &ops::cast(),
                            .inputs = {value_of_[value]},
                            .attrs = {spec.dtype, true},
                            .spec = spec,
                            .strides = {},
                            .constant = {}});
  }

  const tracer::Trace& from_;
  std::vector<Value> value_of_;
};

/// Plans of one derivative that are kept: gradients lie in few ways.
constexpr std::size_t most_variants = 16;

/// Null for one of the arguments, returned as it is.
const autograd::Node* computed_by(const Tensor& result, std::span<const Tensor> arguments) {
  const auto is_result = [&](const Tensor& x) { return x.handle() == result.handle(); };
  return std::ranges::any_of(arguments, is_result) ? nullptr : autograd::node_of(result);
}

/// What a result was computed from.
struct Reach {
  const autograd::Node* freed = nullptr;  ///< where a backward() would find the tape gone first
  bool arguments = false;                 ///< whether an argument that tracks gradients is reached
};

Reach reach_of(const autograd::Node* start, std::span<const Tensor> arguments) {
  const auto is_argument = [&](const autograd::Node* node) {
    const auto same = [&](const Tensor& x) { return autograd::node_of(x) == node; };
    return std::ranges::any_of(arguments, same);
  };
  const auto is_older = [](const autograd::Node* a, const autograd::Node* b) {
    return a->sequence < b->sequence;
  };
  Reach reach;
  std::vector<autograd::Pin> pins;  // what is waiting stays
  std::set<const autograd::Node*, decltype(is_older)> waiting(is_older);
  waiting.insert(start);
  while (!waiting.empty()) {  // from the youngest to the oldest, as a backward() goes
    const autograd::Node* const node = *std::prev(waiting.end());
    waiting.erase(std::prev(waiting.end()));
    if (is_argument(node)) {
      reach.arguments = true;
      continue;
    }
    pins.emplace_back(*node);
    if (!pins.back()) {
      if (reach.freed == nullptr) reach.freed = node;
      continue;
    }
    for (const Handle<TensorSlot>& input : node->inputs) {
      if (input) waiting.insert(static_cast<const autograd::Node*>(input.get()));
    }
  }
  return reach;
}

/// A backward() from there fails whatever else it meets. (Where an argument is reached too, grad()
/// of that argument does not fail: such a call has to run eagerly.)
const autograd::Node* freed_behind(const Tensor& result, std::span<const Tensor> arguments) {
  const autograd::Node* const node = computed_by(result, arguments);
  if (node == nullptr) return nullptr;
  const Reach reach = reach_of(node, arguments);
  return reach.arguments ? nullptr : reach.freed;
}

/// A node that says what `freed` says.
Handle<TensorSlot> spent_node(const autograd::Node& freed) {
  autograd::Node* node = nullptr;
  Handle<TensorSlot> handle = freed.custom ? autograd::make_custom_node(freed.custom->name, node)
                                           : autograd::make_node(freed.kind, node);
  node->op = freed.op;
  node->free();
  return handle;
}

}  // namespace

std::shared_ptr<const std::vector<tracer::SpentResult>> spent_results(
    std::span<const Tensor* const> results, std::span<const Tensor> arguments) {
  std::vector<tracer::SpentResult> spent;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const autograd::Node* const freed = freed_behind(*results[i], arguments);
    if (freed != nullptr) spent.push_back({i, spent_node(*freed)});
  }
  if (spent.empty()) return nullptr;
  return std::make_shared<const std::vector<tracer::SpentResult>>(std::move(spent));
}

void link_spent(std::span<const tracer::SpentResult> spent, std::span<Tensor> results) {
  for (const tracer::SpentResult& each : spent) {
    results[each.result] = autograd::with_node(results[each.result], each.node);
  }
}

void record_backward(tracer::Recorder& recorder, std::span<const Tensor* const> results,
                     std::span<const Tensor> arguments) {
  std::vector<std::size_t> tracked;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (computed_by(*results[i], arguments) == nullptr) continue;
    if (freed_behind(*results[i], arguments) == nullptr) tracked.push_back(i);
  }
  if (tracked.empty()) return;
  if (tracked.size() > 64) {
    return recorder.obstruct("more than 64 results track gradients; return them joined (concat)");
  }
  std::vector<const autograd::Node*> ends;
  std::vector<int> leaves;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const autograd::Node* const node = autograd::node_of(arguments[i]);
    if (node == nullptr || std::ranges::find(ends, node) != ends.end()) continue;
    ends.push_back(node);
    leaves.push_back(static_cast<int>(i));
  }
  recorder.begin_backward(results);
  try {
    const InterpreterScope scope(recorder);
    autograd::Sweep sweep({.keeps_tape = true, .keeps_parts = true});
    sweep.end_at(ends);
    for (const std::size_t i : tracked) {
      const Tensor seed = recorder.add_seed(i, results[i]->spec());
      sweep.add(results[i]->internals().gradient, seed);
    }
    sweep.run();
    for (const autograd::Sweep::Part& part : sweep.parts()) {
      const auto end = std::ranges::find(ends, part.node);
      if (part.node != nullptr)
        recorder.add_part(leaves[static_cast<std::size_t>(end - ends.begin())], part.gradient);
      else
        recorder.add_part(part.variable, part.gradient);
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Error& error) {
    return recorder.obstruct("gradients of its results: " + error.message());
  } catch (const std::exception& error) {  // a rule's own, which is for backward() to throw
    return recorder.obstruct(fmt::format("gradients of its results: {}", error.what()));
  }
  recorder.end_backward();
}

Derivative::Derivative(tracer::Trace whole, const Plan::Options& options)
    : whole_(std::move(whole)), options_(options) {
  for (const tracer::Backward::Part& part : whole_.backward->parts) {
    const auto found = std::ranges::find(targets_, part.target);
    part_targets_.push_back(static_cast<std::size_t>(found - targets_.begin()));
    if (found == targets_.end()) targets_.push_back(part.target);
  }
  const Cut cut(whole_, ~uint64_t{0});
  for (std::size_t i = 0; i < whole_.inputs.size(); ++i) {
    const bool is_seed = whole_.inputs[i].kind == TraceInput::Kind::seed;
    if (!is_seed && cut.is_needed(whole_.graph.inputs[i])) kept_.push_back(i);
  }
  for (Value v = 0; v < whole_.backward->first; ++v) {
    if (cut.is_needed(v) && cut.is_saved(v)) saved_.push_back(v);
  }
}

bool Derivative::needs_eager_tape(const Leaves& leaves) const {
  const int depth = autograd::differentiation_depth();
  if (depth != 1) return depth > 1;
  return std::ranges::any_of(targets_, [&](const TraceInput& target) {
    if (target.kind == TraceInput::Kind::variable) return true;
    const autograd::Node* const node =
        autograd::node_of(*leaves.tensors[static_cast<std::size_t>(target.leaf)]);
    return node->kind != autograd::Node::Kind::leaf || !node->inputs.empty();
  });
}

tracer::Trace Derivative::forward() const {
  tracer::Trace trace = whole_;
  trace.graph.nodes.resize(whole_.backward->first);
  trace.graph.inputs.clear();
  trace.inputs.clear();
  for (std::size_t i = 0; i < whole_.inputs.size(); ++i) {
    if (whole_.inputs[i].kind == TraceInput::Kind::seed) continue;
    trace.graph.inputs.push_back(whole_.graph.inputs[i]);
    trace.inputs.push_back(whole_.inputs[i]);
  }
  const auto end_of_results =
      trace.graph.outputs.begin() + static_cast<std::ptrdiff_t>(trace.result_count);
  trace.graph.outputs.insert(end_of_results, saved_.begin(), saved_.end());
  trace.result_count += saved_.size();
  trace.returned.resize(trace.result_count, -1);
  std::erase_if(trace.host_made, [&](Value v) { return v >= whole_.backward->first; });
  trace.backward.reset();
  return trace;
}

tracer::Trace Derivative::backward_trace(const Variant& variant,
                                         std::vector<std::size_t>& targets) const {
  const Cut cut(whole_, variant.seeds);
  Extract extract(whole_);
  std::size_t tensor = 0;
  std::size_t scalar = 0;
  const auto add_input = [&](Value value, bool is_scalar) {
    const auto kind = is_scalar ? TraceInput::Kind::scalar : TraceInput::Kind::tensor;
    const std::size_t leaf = is_scalar ? scalar++ : tensor++;
    if (cut.is_needed(value)) extract.add_input(value, kind, leaf);
  };
  for (const std::size_t i : kept_) {
    add_input(whole_.graph.inputs[i], whole_.inputs[i].kind == TraceInput::Kind::scalar);
  }
  for (const Value value : saved_) add_input(value, false);
  std::size_t seed = 0;
  for (std::size_t i = 0; i < whole_.inputs.size(); ++i) {
    if (whole_.inputs[i].kind != TraceInput::Kind::seed) continue;
    const Value value = whole_.graph.inputs[i];
    const Strides strides(variant.strides[seed++]);
    const std::size_t leaf = tensor++;
    if (cut.is_needed(value)) extract.add_input(value, TraceInput::Kind::tensor, leaf, strides);
  }
  for (Value v = 0; v < whole_.graph.nodes.size(); ++v) {
    if (cut.is_needed(v) && !extract.has(v)) extract.add_node(v, cut);
  }
  std::vector<Value> sums(targets_.size(), none);
  std::vector<Value>& outputs = extract.trace.graph.outputs;
  const std::vector<tracer::Backward::Part>& parts = whole_.backward->parts;
  std::vector<std::size_t> places(targets_.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Value same = cut.same(parts[i].value);
    if (same == none) continue;
    const std::size_t target = part_targets_[i];
    const Value value = extract.value(same);
    if (!variant.is_summed || sums[target] == none) {
      places[target] = outputs.size();
      outputs.push_back(value);
      targets.push_back(target);
      sums[target] = value;
    } else {
      sums[target] = extract.add_sum(sums[target], value);
      outputs[places[target]] = sums[target];
    }
  }
  extract.trace.result_count = outputs.size();
  extract.trace.returned.assign(outputs.size(), -1);
  return std::move(extract.trace);
}

// Made without the lock, for which explain() waits: two threads may make the same.
std::shared_ptr<const Derivative::Backward> Derivative::backward(const Variant& variant) const {
  {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(variant);
    if (found != plans_.end()) return found->second;
  }
  const auto made = std::make_shared<Backward>();
  const profiling::Span span(EventKind::compile, "backward plan");
  tracer::Trace trace = backward_trace(variant, made->targets);
  trace.places = whole_.places;
  made->plan = std::make_unique<const Plan>(trace, options_);
  decltype(plans_) dropped;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  if (plans_.size() >= most_variants && !plans_.contains(variant)) plans_.swap(dropped);
  return plans_.try_emplace(variant, made).first->second;
}

std::shared_ptr<const Plan> Derivative::backward_plan() const {
  const std::lock_guard lock(mutex_);
  if (plans_.empty()) return nullptr;
  const std::shared_ptr<const Backward> last = plans_.rbegin()->second;
  return {last, last->plan.get()};
}

Derivative::Held Derivative::hold(const Leaves& leaves, std::span<const Tensor> read) const {
  Held held;
  std::size_t passed = 0, seeds = 0;  // inputs of the whole trace, and those that forward() lacks
  for (const std::size_t i : kept_) {
    for (; passed < i; ++passed)
      seeds += whole_.inputs[passed].kind == TraceInput::Kind::seed ? 1 : 0;
    const TraceInput& input = whole_.inputs[i];
    const auto leaf = static_cast<std::size_t>(input.leaf);
    switch (input.kind) {
      case TraceInput::Kind::tensor:
        held.kept.push_back(*leaves.tensors[leaf]);
        break;
      case TraceInput::Kind::scalar:
        held.scalars.push_back(*leaves.scalars[leaf]);
        break;
      case TraceInput::Kind::variable:
      case TraceInput::Kind::seed:
        held.kept.push_back(read[i - seeds]);
        break;
    }
  }
  for (const TraceInput& target : targets_) {
    const Tensor value = target.kind == TraceInput::Kind::tensor
                             ? *leaves.tensors[static_cast<std::size_t>(target.leaf)]
                             : variable_of(target, leaves).get();
    held.nodes.push_back(value.internals().gradient);
    held.specs.push_back(value.spec());
  }
  return held;
}

std::span<Tensor> Derivative::link(const std::shared_ptr<const Derivative>& derivative,
                                   const std::string& name, Held held, std::span<Tensor> results) {
  const std::size_t count = results.size() - derivative->saved_.size();
  std::vector<Tensor> saved;
  for (const Tensor& result : results.subspan(count)) saved.push_back(row_major(result));
  const std::vector<std::size_t>& tracked = derivative->whole_.backward->results;
  autograd::Node* node = nullptr;
  const Handle<TensorSlot> handle = autograd::make_custom_node(name, node);
  node->inputs = std::move(held.nodes);
  node->input_specs = std::move(held.specs);
  node->output_count = static_cast<int>(tracked.size());
  node->custom->rule = [derivative, kept = std::move(held.kept), scalars = std::move(held.scalars),
                        saved = std::move(saved)](const autograd::CustomCall& call) {
    return derivative->run(kept, scalars, saved, call);
  };
  for (std::size_t i = 0; i < tracked.size(); ++i) {
    results[tracked[i]] = autograd::as_output(results[tracked[i]], handle, i);
  }
  return results.first(count);
}

std::vector<autograd::Contribution> Derivative::run(std::span<const Tensor> kept,
                                                    std::span<const Scalar> scalars,
                                                    std::span<const Tensor> saved,
                                                    const autograd::CustomCall& call) const {
  if (call.builds_tape) {
    throw Error(ErrorKind::unsupported,
                {.where = "grad",
                 .what = "a gradient of a compiled function is differentiated again",
                 .expected = "a function that notes its operations one by one",
                 .got = "a compiled one",
                 .fix = "Compile the outermost function instead, or call this one by eager()."});
  }
  Variant variant;
  for (std::size_t i = 0; i < call.gradients.size(); ++i) {
    std::vector<int64_t>& strides = variant.strides.emplace_back();
    if (!call.gradients[i].is_defined()) continue;
    variant.seeds |= uint64_t{1} << i;
    const Strides& given = call.gradients[i].internals().strides;
    strides.assign(given.begin(), given.end());
  }
  // A sum of sums rounds otherwise than one long sum: what came before is added to part by part.
  for (std::size_t i = 0; i < part_targets_.size(); ++i) {
    const auto before = part_targets_.begin() + static_cast<std::ptrdiff_t>(i);
    const bool is_second = std::find(part_targets_.begin(), before, part_targets_[i]) != before;
    if (is_second && call.has_arrived(part_targets_[i])) variant.is_summed = false;
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : kept) inputs.push_back(&tensor);
  for (const Tensor& tensor : saved) inputs.push_back(&tensor);
  for (const Tensor& tensor : call.gradients) inputs.push_back(&tensor);
  std::vector<const Scalar*> numbers;
  for (const Scalar& scalar : scalars) numbers.push_back(&scalar);
  const std::shared_ptr<const Backward> made = backward(variant);
  std::vector<Tensor> gradients(made->plan->result_count());
  const Plan::Outcome outcome =
      made->plan->run({.tensors = inputs, .variables = {}, .scalars = numbers}, gradients);
  if (outcome != Plan::Outcome::done) {
    throw Error(ErrorKind::internal, {.where = "backward",
                                      .what = "a compiled gradient could not run",
                                      .expected = "values that passed the checks of the call",
                                      .got = "a failed check",
                                      .fix = {}});
  }
  std::vector<autograd::Contribution> contributions;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    contributions.push_back({made->targets[i], std::move(gradients[i])});
  }
  return contributions;
}

}  // namespace nitinol::jit
