// The trace of a call, while it happens.
//
// Problem: which earlier value is this operand? A table from addresses to values would have to keep
// every intermediate alive (or a later tensor could get a dead one's address), and recording would
// need more memory than eager. So a tensor made under a Recorder carries its number, with the epoch
// of the trace that gave it; only tensors from outside (arguments, captured tensors) are in a
// table, and those are kept alive anyway.
#include "tracer/recorder.h"

#include "core/error.h"
#include "core/graph_infer.h"
#include "core/place.h"
#include "tracer/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace nitinol::tracer {
namespace {

/// Larger tensors made from host data are not compared at every recording.
constexpr std::size_t largest_host_constant = std::size_t{1} << 16;
/// Longer calls run eagerly: rewriting and compiling them would take minutes.
constexpr std::size_t most_operations = 100'000;

[[gnu::tls_model("initial-exec")]] constinit thread_local int recorders = 0;
constinit thread_local int computing_scopes = 0;
/// Numbers of repetitions: of the one at work, 0 for none, and the last one that was given.
constinit thread_local uint32_t repetition = 0;
constinit thread_local uint32_t last_repetition = 0;
/// Of the OriginScope that is open on this thread: 0, none.
constinit thread_local uint64_t origin_epoch = 0;
constinit thread_local Value origin_value = 0;
/// Later ones of a call are not noted: they take memory and time.
constexpr std::size_t most_places = 2048;

}  // namespace

bool is_recording() {
  return recorders > 0;
}

OriginScope::OriginScope(uint64_t epoch, Value value)
    : epoch_before_(std::exchange(origin_epoch, epoch)),
      value_before_(std::exchange(origin_value, value)) {}

OriginScope::~OriginScope() {
  origin_epoch = epoch_before_;
  origin_value = value_before_;
}

ComputingScope::ComputingScope() {
  ++computing_scopes;
}

ComputingScope::~ComputingScope() {
  --computing_scopes;
}

RepetitionScope::RepetitionScope() : before_(std::exchange(repetition, ++last_repetition)) {}

RepetitionScope::~RepetitionScope() {
  repetition = before_;
}

Recorder::Recorder(Places places) : places_(places), epoch_(begin_epoch()) {
  ++recorders;
}

Recorder::~Recorder() {
  --recorders;
}

Value Recorder::add_node(Node node) {
  trace_.graph.nodes.push_back(std::move(node));
  return static_cast<Value>(trace_.graph.nodes.size() - 1);
}

/// Where the user's code is, as Node::origin.
uint32_t Recorder::note_place() {
  std::vector<CallSite>& places = found_places_;
  if (origin_epoch == epoch_) return trace_.graph[origin_value].origin;
  if (places_ == Places::ignored || shape_only_ || places.size() >= most_places) return no_origin;
  CallSite here = CallSite::here();
  if (places.empty() || !(places.back() == here)) places.push_back(std::move(here));
  return static_cast<uint32_t>(places.size() - 1);
}

Value Recorder::add_input(const Tensor& tensor, TraceInput origin) {
  Spec spec = tensor.spec();
  if (spec.is_weak && origin.kind != TraceInput::Kind::scalar) {
    obstruct("an argument is a number computed from Scalars; pass the Scalars themselves");
    spec.is_weak = false;  // weak inputs are Scalars
  }
  const Value value = add_node({.kind = Node::Kind::input,
                                .op = nullptr,
                                .inputs = {},
                                .attrs = {},
                                .spec = spec,
                                .strides = tensor.internals().strides,
                                .constant = {}});
  trace_.graph.inputs.push_back(value);
  trace_.inputs.push_back(std::move(origin));
  TensorData& data = tensor.internals();
  if (data.trace != epoch_) {  // one tensor given twice: the first position stands for both
    data.trace = epoch_;
    data.value = value;
  }
  return value;
}

void Recorder::declare_arguments(std::span<const Tensor> tensors,
                                 std::span<const Variable* const> variables,
                                 std::span<const Tensor> scalars) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    add_input(tensors[i],
              {.kind = TraceInput::Kind::tensor, .leaf = static_cast<int>(i), .captured = {}});
    tensor_arguments_.push_back(tensors[i].handle().get());
  }
  for (std::size_t i = 0; i < scalars.size(); ++i) {
    add_input(scalars[i],
              {.kind = TraceInput::Kind::scalar, .leaf = static_cast<int>(i), .captured = {}});
    number_bits_.push_back(scalars[i].internals().number);
  }
  variable_arguments_.assign(variables.begin(), variables.end());
}

void Recorder::obstruct(std::string reason, const ReadSite* site) {
  if (trace_.obstacle) return;  // the first one is what the user should see
  trace_.obstacle = Obstacle{std::move(reason), site != nullptr ? text_of(*site) : given_place()};
}

Value Recorder::value_of(const Tensor& tensor) {
  const TensorData& data = tensor.internals();
  if (data.trace == epoch_) return data.value;
  if (const auto found = foreign_.find(&data); found != foreign_.end()) return found->second;
  if (data.gradient) {
    obstruct(
        fmt::format("a captured tensor {} tracks gradients: pass it as an argument, or capture "
                    "stop_gradient() of it",
                    describe(tensor)));
  }
  if (!has_elements(data))
    obstruct(fmt::format("a captured tensor {} has no elements", describe(tensor)));
  if (data.birth >= epoch_) {
    obstruct(fmt::format(
        "a tensor {} was made during the call but not by it: on another thread, or from data that "
        "left the trace",
        describe(tensor)));
  }
  const Value value = add_node({.kind = Node::Kind::constant,
                                .op = nullptr,
                                .inputs = {},
                                .attrs = {},
                                .spec = tensor.spec(),
                                .strides = {},
                                .constant = tensor});
  foreign_.emplace(&data, value);
  kept_.push_back(tensor);
  return value;
}

/// Whether results have elements.
bool Recorder::computes() const {
  return !shape_only_ || computing_scopes > outer_scopes_;
}

Tensor Recorder::compute(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  if (computes()) return below().run(op, inputs, attrs, spec);
  Tensor result = run_on_shapes(op, inputs, attrs, spec);
  result.internals().shape_only = shape_only_;
  return result;
}

std::vector<Tensor> Recorder::compute_all(const Op& op, Inputs inputs, const Attrs& attrs,
                                          std::span<const Spec> specs) {
  if (computes()) return below().run_all(op, inputs, attrs, specs);
  std::vector<Tensor> results;
  for (const Spec& spec : specs) {
    results.push_back(make_tensor(spec, strides_of(spec.shape), 0, {}));
    results.back().internals().shape_only = shape_only_;
  }
  return results;
}

bool Recorder::is_too_long() {
  if (trace_.graph.nodes.size() < most_operations) return false;
  obstruct(fmt::format("one call makes more than {} operations", most_operations));
  return true;
}

Node Recorder::application(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  Node node = {.kind = Node::Kind::op,
               .op = &op,
               .inputs = {},
               .attrs = attrs,
               .spec = spec,
               .strides = {},
               .constant = {}};
  node.inputs.reserve(inputs.size());
  for (const Tensor* input : inputs) node.inputs.push_back(value_of(*input));
  return node;
}

Tensor Recorder::run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  if (is_too_long()) return compute(op, inputs, attrs, spec);
  if (op.kind == OpKind::transfer) {
    obstruct(fmt::format("the function moves a tensor {} from {} to {}; move it before the call",
                         describe(spec), describe(inputs[0]->device()), describe(spec.device)));
  }
  Node node = application(op, inputs, attrs, spec);
  Tensor result = compute(op, inputs, attrs, spec);
  TensorData& data = result.internals();
  if (data.trace == epoch_ || foreign_.contains(&data))
    return result;  // the op returned one of its operands
  data.trace = epoch_;
  node.origin = note_place();
  node.repetition = repetition;
  data.value = add_node(std::move(node));
  return result;
}

std::vector<Tensor> Recorder::run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                                      std::span<const Spec> specs) {
  if (is_too_long()) return compute_all(op, inputs, attrs, specs);
  Node node = application(op, inputs, attrs, specs[0]);
  std::vector<Tensor> results = compute_all(op, inputs, attrs, specs);
  node.origin = note_place();
  node.repetition = repetition;
  const auto whole = static_cast<Value>(trace_.graph.nodes.size());
  std::vector<Node> parts = parts_for(whole, node, inputs);
  add_node(std::move(node));
  for (std::size_t k = 0; k < results.size(); ++k) {
    TensorData& data = results[k].internals();
    data.trace = epoch_;
    data.value = add_node(std::move(parts[k]));
  }
  return results;
}

void Recorder::read(const Tensor& tensor, const ReadSite& site) {
  const TensorData& data = tensor.internals();
  if (!trace_.obstacle && (data.trace != epoch_ || !guard_numbers(data.value, site)))
    obstruct(fmt::format("the function looks at a tensor's elements by {}", site.what), &site);
  below().read(tensor, site);
}

/// A value computed from Scalar arguments alone may be looked at: the trace then holds for these
/// numbers. False if it depends on anything else.
bool Recorder::guard_numbers(Value value, const ReadSite& site) {
  if (guarded_.contains(value)) return true;
  std::vector<int> leaves;
  bool has_leaves = false;
  std::vector<Value> waiting = {value};
  std::unordered_set<Value> seen = {value};
  while (!waiting.empty()) {
    const Value v = waiting.back();
    waiting.pop_back();
    const Node& node = trace_.graph[v];
    if (node.kind == Node::Kind::input) {
      const auto at = std::ranges::find(trace_.graph.inputs, v) - trace_.graph.inputs.begin();
      const TraceInput& input = trace_.inputs[static_cast<std::size_t>(at)];
      if (input.kind != TraceInput::Kind::scalar) return false;
      leaves.push_back(input.leaf);
    } else if (node.kind == Node::Kind::constant &&
               !std::ranges::binary_search(trace_.host_made, v)) {
      return false;
    }
    for (const Value input : node.inputs) {
      if (guarded_.contains(input))
        has_leaves = true;
      else if (seen.insert(input).second)
        waiting.push_back(input);
    }
  }
  if (leaves.empty() && !has_leaves) return false;
  for (const Value v : seen) {
    if (trace_.graph[v].kind != Node::Kind::constant) guarded_.insert(v);
  }
  for (const int leaf : leaves) {
    const auto place = std::ranges::lower_bound(trace_.numbers, leaf, {}, &NumberGuard::leaf);
    if (place != trace_.numbers.end() && place->leaf == leaf) continue;
    trace_.numbers.insert(place, {.leaf = leaf,
                                  .bits = number_bits_[static_cast<std::size_t>(leaf)],
                                  .what = site.what,
                                  .place = text_of(site)});
  }
  return true;
}

/// A Variable made by this call is a name for values of the trace, not an input of it.
void Recorder::note_local(const Variable& variable) {
  if (std::ranges::find(locals_, variable) == locals_.end()) locals_.push_back(variable);
}

/// A Plan does not make the Variables that the call made: nobody may hold one when it has ended.
void Recorder::check_locals() {
  for (const Variable& local : locals_) {
    const auto assigns = [&](const Assignment& assignment) { return assignment.variable == local; };
    const auto owns = [&](const Variable& other) {  // as its gradient
      return other.cell().gradient != nullptr && *other.cell().gradient == local;
    };
    const auto held =
        1 + std::ranges::count_if(assignments(), assigns) + std::ranges::count_if(locals_, owns);
    if (local.cell().references.load(std::memory_order_acquire) > held) {
      obstruct(fmt::format(
          "a Variable {} that the function makes is still held when the call has ended; make it "
          "outside",
          describe(local.spec())));
    }
  }
}

TraceInput Recorder::origin_of(const Variable& variable) const {
  for (std::size_t i = 0; i < variable_arguments_.size(); ++i) {
    const Variable& argument = *variable_arguments_[i];
    const Variable* const gradient = argument.cell().gradient.get();
    const bool is_gradient = gradient != nullptr && *gradient == variable;
    if (argument == variable || is_gradient) {
      return {.kind = TraceInput::Kind::variable,
              .leaf = static_cast<int>(i),
              .is_gradient = is_gradient,
              .captured = {}};
    }
  }
  return {.kind = TraceInput::Kind::variable, .leaf = -1, .captured = variable};
}

void Recorder::guard_presence(const Variable& variable, bool is_there) {
  const auto same = [](const void* object, uint64_t was_there) {
    const auto& cell = *static_cast<const VariableCell*>(object);
    return cell.has_value.load(std::memory_order_acquire) == (was_there != 0);
  };
  // Shares ownership of the cell through a Variable.
  const auto holder = std::make_shared<const Variable>(variable);
  guard({.object = std::shared_ptr<const void>(holder, &variable.cell()),
         .name = "the presence of a gradient",
         .bits = is_there ? 1U : 0U,
         .same = same});
}

Tensor Recorder::get(const Variable& variable) {
  if (const Tensor* value = assigned(variable)) return *value;
  if (is_local(variable)) {
    note_local(variable);
    return fetch(variable);
  }
  if (shape_only_) obstruct_rule("reads", variable);
  const auto found = variable_reads_.find(&variable.cell());
  if (found != variable_reads_.end()) return found->second;
  // A handle of its own: the tensor in the cell may also be an argument, which is another input.
  const Tensor held = fetch(variable);
  const TraceInput origin = origin_of(variable);
  // Whether there is a gradient selects the Plan: of arguments by the signature, else by a guard.
  if (variable.cell().may_be_empty && origin.leaf < 0) guard_presence(variable, held.is_defined());
  Tensor value;
  if (held.is_defined()) {
    value = bare_copy(held);
    add_input(value, origin);
  } else {
    trace_.empty.push_back(origin);
  }
  variable_reads_.emplace(&variable.cell(), value);
  return value;
}

void Recorder::set(const Variable& variable, const Tensor& value) {
  if (shape_only_ && !is_local(variable)) return obstruct_rule("assigns", variable);
  if (value.is_defined()) value_of(value);
  if (is_local(variable)) note_local(variable);
  Transaction::set(variable, value);
}

void Recorder::created(const Tensor& tensor) {
  below().created(tensor);
  const std::size_t bytes = static_cast<std::size_t>(tensor.size()) * size_of(tensor.dtype());
  if (bytes > largest_host_constant) {
    obstruct(
        fmt::format("the function makes a tensor {} of {} bytes from host data at each call; make "
                    "it once outside, "
                    "or pass it as an argument",
                    describe(tensor), bytes));
  }
  TensorData& data = tensor.internals();
  data.trace = epoch_;
  data.value = add_node({.kind = Node::Kind::constant,
                         .op = nullptr,
                         .inputs = {},
                         .attrs = {},
                         .spec = tensor.spec(),
                         .strides = {},
                         .constant = tensor});
  trace_.host_made.push_back(data.value);
}

/// What the call has made itself holds what its code has put there, as a tensor of its own does.
void Recorder::guard(const HostValueGuard& guard) {
  if (guard.birth < epoch_) trace_.guards.push_back(guard);
  below().guard(guard);
}

/// A rule does so when the gradient is asked for, not in the call.
void Recorder::obstruct_rule(const char* does, const Variable& variable) {
  obstruct(
      fmt::format("a gradient rule {} a Variable {}, which happens when the gradient is asked "
                  "for",
                  does, describe(variable.spec())));
}

void Recorder::begin_backward(std::span<const Tensor* const> results) {
  for (const Tensor* result : results) value_of(*result);
  trace_.backward.emplace();
  trace_.backward->first = static_cast<Value>(trace_.graph.nodes.size());
  shape_only_ = adopt<TensorSlot>(new TensorSlot);
  outer_scopes_ = computing_scopes;
}

void Recorder::end_backward() {
  if (shape_only_->references.load(std::memory_order_acquire) > 1)
    obstruct("a gradient rule keeps a tensor that it is given or computes; return it instead");
}

Tensor Recorder::add_seed(std::size_t result, const Spec& spec) {
  Spec given = spec;
  given.is_weak = false;
  const Tensor seed = make_tensor(given, strides_of(spec.shape), 0, {});
  seed.internals().shape_only = shape_only_;
  add_input(seed, {.kind = TraceInput::Kind::seed,
                   .leaf = static_cast<int>(trace_.backward->results.size()),
                   .captured = {}});
  trace_.backward->results.push_back(result);
  return seed;
}

void Recorder::add_part(int leaf, const Tensor& gradient) {
  const TraceInput target = {.kind = TraceInput::Kind::tensor, .leaf = leaf, .captured = {}};
  trace_.backward->parts.push_back({target, value_of(gradient)});
}

void Recorder::add_part(const Variable& variable, const Tensor& gradient) {
  if (is_local(variable)) return note_local(variable);  // the tape holds it: an obstacle
  trace_.backward->parts.push_back({origin_of(variable), value_of(gradient)});
}

/// A Plan runs on one device.
void Recorder::check_device() {
  const Device device = device_of(trace_.graph);
  for (const Node& node : trace_.graph.nodes) {
    if (is_anywhere(node.spec) || node.spec.device == device) continue;
    return obstruct(fmt::format("the function works on two devices, {} and, with {}, {}",
                                describe(device), describe(node.spec), describe(node.spec.device)));
  }
}

/// A Plan runs what may fail first, and nothing of it again when that has acted on the outside. And
/// what gradients do to the outside depends on which are asked for.
void Recorder::check_effects() {
  if (trace_.obstacle || !has_ordered(trace_.graph)) return;
  const Graph& graph = trace_.graph;
  const std::size_t forward = trace_.backward ? trace_.backward->first : graph.nodes.size();
  std::vector<const Op*> behind(graph.nodes.size(), nullptr);  // what is ordered and leads there
  const auto obstruct_at = [&](const Node& node, std::string reason) {
    const bool is_known = node.origin < found_places_.size();
    trace_.obstacle =
        Obstacle{std::move(reason), is_known ? found_places_[node.origin].text() : ""};
  };
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    const Node& node = graph[v];
    if (v < forward) {
      for (const Value input : node.inputs) {
        if (behind[input] != nullptr) behind[v] = behind[input];
      }
    }
    if (!has_effect(node)) continue;
    if (node.op->effect == Effect::may_fail && behind[v] != nullptr) {
      return obstruct_at(
          node, fmt::format(
                    "{}, which may fail, is applied to what {} gives, which a call runs only when "
                    "nothing can fail any more; compile the two parts by themselves",
                    node.op->name, behind[v]->name));
    }
    if (node.op->effect != Effect::ordered) continue;
    behind[v] = node.op;
    if (v >= forward) {
      return obstruct_at(
          node, fmt::format("gradients of its results go back by {}, which runs in the program's "
                            "order; compile the function that asks for the gradients",
                            node.op->name));
    }
  }
}

Trace Recorder::finish(std::span<const Tensor* const> results) {
  for (const Tensor* result : results) {
    trace_.graph.outputs.push_back(value_of(*result));
    const auto argument = std::ranges::find(tensor_arguments_, result->handle().get());
    const bool is_argument = argument != tensor_arguments_.end();
    trace_.returned.push_back(is_argument ? static_cast<int>(argument - tensor_arguments_.begin())
                                          : -1);
  }
  trace_.result_count = results.size();
  check_device();
  check_effects();
  check_locals();
  for (const Assignment& assignment : assignments()) {
    if (is_local(assignment.variable)) continue;
    const TraceInput origin = origin_of(assignment.variable);
    if (!assignment.value.is_defined()) {
      trace_.cleared.push_back(origin);
      continue;
    }
    trace_.graph.outputs.push_back(value_of(assignment.value));
    trace_.assigned.push_back(origin);
  }
  if (places_ == Places::noted)
    trace_.places = std::make_shared<const std::vector<CallSite>>(std::move(found_places_));
  return std::move(trace_);
}

}  // namespace nitinol::tracer
