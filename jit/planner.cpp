// From a trace to a Plan: passes, grouping, one Executable per step, and a place in memory for
// every value.
//
// Temporaries live in one arena per call. A temporary's place is free again after the last step
// that reads it; each is put at the lowest free place that is large enough (first fit in order of
// definition).
#include "core/executables.h"
#include "core/host_access.h"
#include "core/kernel.h"
#include "core/library.h"
#include "core/one_op.h"
#include "core/round_up.h"
#include "jit/access.h"
#include "jit/horizontal_fusion.h"
#include "jit/passes/pipeline.h"
#include "jit/plan.h"
#include "jit/plan_impl.h"

#include <algorithm>
#include <chrono>

namespace nitinol::jit {
namespace {

constexpr std::size_t alignment = 64;

std::size_t bytes_of(const Spec& spec) {
  return static_cast<std::size_t>(element_count(spec.shape)) * size_of(spec.dtype);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Where a temporary lies while it lives.
struct Block {
  std::size_t offset, bytes;
  std::size_t last_step;
};

}  // namespace

class Planner {
 public:
  Planner(Plan& plan, const tracer::Trace& trace, int threads)
      : plan_(plan),
        impl_(*plan.impl_),
        trace_(trace),
        device_(backend(device_of(trace.graph))),
        limits_(device_.limits()) {
    impl_.device = &device_;
    impl_.threads = threads;
    impl_.inputs = trace.inputs;
    impl_.empty = trace.empty;
    impl_.cleared = trace.cleared;
  }

  void run() {
    const double start = now();
    plan_.graph_ = run_passes(trace_.graph);
    place_constants();
    const double passes_done = now();
    fusion_ = fuse(graph(), is_pass_enabled("fuse"));
    order_units();
    const double fusion_done = now();
    impl_.buffers.resize(graph().nodes.size());
    place_inputs();
    place_outputs();
    for (const std::size_t unit : order_) add_step(units_[unit]);
    kernels_.resize(impl_.steps.size());
    plan_results();
    if (is_pass_enabled("horizontal_fusion")) join_launches();
    place_temporaries();
    place_numbers();
    prepare_kernels();
    sum_up_memory();
    PlanReport& report = plan_.report_;
    report.passes_s = passes_done - start;
    report.fusion_s = fusion_done - passes_done;
    report.total_s = now() - start;
    report.prepare_s = report.total_s - report.passes_s - report.fusion_s;
  }

 private:
  /// What becomes one step: a group, or a node outside groups.
  struct Unit {
    int group = -1;
    Value node = 0;
  };

  [[nodiscard]] const Graph& graph() const { return plan_.graph_; }
  BufferPlan& buffer(Value v) { return impl_.buffers[v]; }

  // ---- order

  void order_units() {
    std::vector<int> unit_of(graph().nodes.size(), -1);
    std::vector<int> unit_of_group(fusion_.groups.size(), -1);
    for (Value v = 0; v < graph().nodes.size(); ++v) {
      const Node& node = graph()[v];
      if (node.kind != Node::Kind::op || node.op->kind == OpKind::view) continue;
      const int group = fusion_.group_of[v];
      if (group < 0 && fusion_.is_uniform[v]) continue;
      if (group >= 0 && unit_of_group[static_cast<std::size_t>(group)] >= 0) {
        unit_of[v] = unit_of_group[static_cast<std::size_t>(group)];
        continue;
      }
      unit_of[v] = static_cast<int>(units_.size());
      if (group >= 0) unit_of_group[static_cast<std::size_t>(group)] = unit_of[v];
      units_.push_back({group, v});
    }
    std::vector<bool> visited(units_.size(), false);
    for (std::size_t unit = 0; unit < units_.size(); ++unit) visit(unit, unit_of, visited);
  }

  void visit(std::size_t unit, const std::vector<int>& unit_of, std::vector<bool>& visited) {
    if (visited[unit]) return;
    visited[unit] = true;
    for (const Value member : members_of(units_[unit])) {
      for (const Value input : graph()[member].inputs) {
        const int before = unit_of[base_of(graph(), input)];
        if (before >= 0) visit(static_cast<std::size_t>(before), unit_of, visited);
      }
    }
    order_.push_back(unit);
  }

  [[nodiscard]] std::vector<Value> members_of(const Unit& unit) const {
    if (unit.group < 0) return {unit.node};
    std::vector<Value> values;
    for (const Member& member : fusion_.groups[static_cast<std::size_t>(unit.group)].members)
      values.push_back(member.value);
    return values;
  }

  // ---- memory

  void place_inputs() {
    for (std::size_t i = 0; i < graph().inputs.size(); ++i) {
      buffer(graph().inputs[i]) = {BufferPlan::Place::input, static_cast<int>(i), 0};
    }
    for (Value v = 0; v < graph().nodes.size(); ++v) {
      if (graph()[v].kind == Node::Kind::constant) buffer(v) = {BufferPlan::Place::constant, 0, 0};
    }
  }

  void place_outputs() {
    for (const Value output : graph().outputs) {
      const Value base = base_of(graph(), output);
      if (buffer(base).place != BufferPlan::Place::none || is_eager_node(base)) continue;
      buffer(base) = {BufferPlan::Place::output, static_cast<int>(impl_.outputs.size()), 0};
      impl_.outputs.push_back(graph()[base].spec);
    }
  }

  [[nodiscard]] bool is_eager_node(Value v) const {
    const Node& node = graph()[v];
    return fusion_.group_of[v] < 0 && node.kind == Node::Kind::op && !is_library_node(node) &&
           !is_window_node(node);
  }

  /// Pad, concat and the like: operands are copied to regions of the result.
  [[nodiscard]] static bool is_window_node(const Node& node) {
    return node.op->windows != nullptr && element_count(node.spec.shape) > 0;
  }

  [[nodiscard]] bool is_library_node(const Node& node) const {
    return node.op->call != nullptr && element_count(node.spec.shape) > 0 &&
           std::ranges::all_of(node.inputs,
                               [&](Value v) { return element_count(graph()[v].spec.shape) > 0; });
  }

  void place_temporaries() {
    const std::size_t step_count = impl_.steps.size();
    std::vector<std::size_t> last_use(graph().nodes.size(), 0);
    std::vector<std::vector<Value>> defined(step_count);  // per launch, by its first step
    std::size_t s = 0;
    for (std::size_t i = 0; i < step_count; ++i) {
      if (i == s + impl_.steps[s].together) s = i;
      for (const OperandPlan& operand : impl_.steps[i].operands) {
        if (operand.value < 0) continue;
        const auto v = static_cast<Value>(operand.value);
        if (buffer(v).place == BufferPlan::Place::none) {
          buffer(v).place = BufferPlan::Place::arena;
          defined[s].push_back(v);
        }
        last_use[v] = s;
      }
    }
    std::vector<Block> live;
    for (s = 0; s < step_count; ++s) {
      std::erase_if(live, [&](const Block& block) { return block.last_step < s; });
      for (const Value v : defined[s]) {
        const std::size_t bytes = round_up(bytes_of(graph()[v].spec), alignment);
        buffer(v).offset = first_fit(live, bytes);
        live.push_back({buffer(v).offset, bytes, last_use[v]});
        impl_.arena_bytes = std::max(impl_.arena_bytes, buffer(v).offset + bytes);
      }
    }
  }

  static std::size_t first_fit(std::vector<Block>& live, std::size_t bytes) {
    std::ranges::sort(live, {}, &Block::offset);
    std::size_t offset = 0;
    for (const Block& block : live) {
      if (block.offset >= offset + bytes) break;
      offset = std::max(offset, block.offset + block.bytes);
    }
    return offset;
  }

  // ---- steps

  void add_step(const Unit& unit) {
    if (unit.group >= 0) {
      add_kernel(fusion_.groups[static_cast<std::size_t>(unit.group)]);
    } else if (is_window_node(graph()[unit.node])) {
      add_windows(unit.node);
    } else if (!is_library_node(graph()[unit.node]) || !add_library_call(unit.node)) {
      add_eager(unit.node);
    }
  }

  void add_kernel(const Group& group) {
    // Nothing of it is needed in memory: dead code that no pass has removed.
    const auto is_stored = [&](const Member& m) { return fusion_.is_materialised[m.value]; };
    if (std::ranges::none_of(group.members, is_stored)) return;
    std::vector<std::string> ops;
    for (const Member& member : group.members) ops.emplace_back(graph()[member.value].op->name);
    add_lowered(lower(graph(), fusion_, group, limits_), std::move(ops));
  }

  void add_lowered(Lowered lowered, std::vector<std::string> ops) {
    StepReport report = {
        .kind = "kernel",
        .ops = std::move(ops),
    };
    StepPlan step;
    for (std::size_t k = 0; k < lowered.origins.size(); ++k) plan_operand(lowered, k, step, report);
    if (report.bytes_written >= limits_.streaming_bytes && lowered.kernel.order == Order::none) {
      lowered.kernel.stores = Stores::non_temporal;
    }
    kernels_.resize(impl_.steps.size());
    kernels_.push_back(std::move(lowered.kernel));
    step.sizes = std::move(lowered.sizes);
    step.strides = std::move(lowered.strides);
    step.offsets = std::move(lowered.offsets);
    impl_.steps.push_back(std::move(step));
    plan_.report_.steps.push_back(std::move(report));
  }

  void add_windows(Value v) {
    const Node& node = graph()[v];
    std::vector<Tensor> placeholders;
    std::vector<const Tensor*> inputs;
    for (const Value input : node.inputs) {
      placeholders.push_back(
          make_tensor(graph()[input].spec, strides_of(graph()[input].spec.shape), 0, {}));
    }
    for (const Tensor& placeholder : placeholders) inputs.push_back(&placeholder);
    const std::vector<Window> windows =
        node.op->windows(node.spec, strides_of(node.spec.shape), inputs, node.attrs);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Window& window = windows[k];
      if (element_count(window.shape) == 0) continue;
      const Access access = *memory_access(node.inputs[k]);
      const Lowered lowered =
          lower_copy(node.spec.dtype,
                     {.shape = window.shape,
                      .from = base_of(graph(), node.inputs[k]),
                      .from_strides = broadcast_strides(access.shape, access.strides, window.shape),
                      .from_offset = access.offset,
                      .to = v,
                      .to_strides = window.map.strides,
                      .to_offset = window.map.offset});
      add_lowered(lowered, {std::string(node.op->name)});
    }
  }

  void plan_operand(const Lowered& lowered, std::size_t k, StepPlan& step, StepReport& report) {
    const OperandOrigin& origin = lowered.origins[k];
    const DType dtype = lowered.kernel.operands[k].dtype;
    step.scalars.push_back(origin.bits);
    if (origin.kind == OperandOrigin::Kind::scalar) {
      step.call_scalars.push_back({k, trace_.inputs[input_number(origin.value)].leaf, dtype});
    }
    if (origin.kind != OperandOrigin::Kind::memory) {
      step.operands.push_back({-1, 0});
      return;
    }
    step.operands.push_back(
        {static_cast<int64_t>(origin.value), origin.offset * static_cast<int64_t>(size_of(dtype))});
    const std::size_t bytes = bytes_of(graph()[origin.value].spec);
    (lowered.kernel.operands[k].role == Role::output ? report.bytes_written : report.bytes_read) +=
        bytes;
  }

  [[nodiscard]] std::size_t input_number(Value v) const {
    return static_cast<std::size_t>(std::ranges::find(graph().inputs, v) - graph().inputs.begin());
  }

  /// Numbers that a step loads, as a library call does, have to lie in the device's memory.
  void place_numbers() {
    std::vector<bool> is_loaded(graph().nodes.size(), false);
    for (const StepPlan& step : impl_.steps) {
      impl_.has_checks |= step.can_fail && step.kind == StepPlan::Kind::launch;
      for (const OperandPlan& operand : step.operands) {
        if (operand.value >= 0 && step.kind == StepPlan::Kind::launch)
          is_loaded[static_cast<std::size_t>(operand.value)] = true;
      }
    }
    for (Value v = 0; v < graph().nodes.size(); ++v) {
      Node& node = plan_.graph_.nodes[v];
      if (!is_loaded[v]) continue;
      if (node.kind == Node::Kind::constant && node.constant.internals().is_number)
        node.constant = on_device(node.constant);
      if (node.kind == Node::Kind::input && node.spec.is_weak)
        impl_.scalars_in_memory.push_back(input_number(v));
    }
  }

  /// The same elements in the device's memory.
  [[nodiscard]] Tensor on_device(const Tensor& constant) const {
    Spec spec = constant.spec();
    spec.device = device_.device();
    const Tensor placed = allocate_tensor(spec);
    fill_elements(placed, [&](std::span<std::byte> to) {
      HostElements(constant.internals()).copy_to(to.data());
    });
    return placed;
  }

  /// Constants of graphs that were parsed are in the host's memory.
  void place_constants() {
    Backend* const home = device_.is_host_memory() ? nullptr : &device_;
    for (Node& node : plan_.graph_.nodes) {
      if (node.kind != Node::Kind::constant) continue;
      const TensorData& data = node.constant.internals();
      if (!data.is_number && data.storage->backend != home) node.constant = on_device(node.constant);
    }
  }

  void prepare_kernels() {
    auto report = plan_.report_.steps.begin();
    for (std::size_t s = 0; s < kernels_.size(); s += impl_.steps[s].together, ++report) {
      if (kernels_[s]) impl_.steps[s].executable = prepare(std::move(*kernels_[s]), *report);
    }
    for (const StepPlan& step : impl_.steps) {
      if (step.executable) specialise(step);
    }
  }

  void sum_up_memory() {
    PlanReport& report = plan_.report_;
    report.arena_bytes = impl_.arena_bytes;
    std::vector<bool> is_in_place(impl_.outputs.size(), false);
    for (const UpdatePlan& update : impl_.updates) {
      if (update.is_in_place)
        is_in_place[static_cast<std::size_t>(buffer(update.result.base).index)] = true;
    }
    for (std::size_t i = 0; i < impl_.outputs.size(); ++i) {
      (is_in_place[i] ? report.in_place_bytes : report.result_bytes) += bytes_of(impl_.outputs[i]);
    }
  }

  /// Reorders the steps so that those to be launched together follow each other.
  void join_launches() {
    std::vector<StepEffects> effects;
    for (std::size_t s = 0; s < impl_.steps.size(); ++s) effects.push_back(effects_of(s));
    std::vector<StepPlan> steps;
    std::vector<std::optional<Kernel>> kernels;
    std::vector<StepReport> reports;
    impl_.first_overwrite = SIZE_MAX;
    for (const std::vector<std::size_t>& batch : join_steps(effects, graph().nodes.size())) {
      const std::size_t start = steps.size();
      StepReport report = std::move(plan_.report_.steps[batch[0]]);
      report.launches = batch.size();
      impl_.steps[batch[0]].together = batch.size();
      for (const std::size_t s : batch) {
        if (effects[s].overwrites) impl_.first_overwrite = std::min(impl_.first_overwrite, start);
        if (s != batch[0]) {
          report.bytes_read += plan_.report_.steps[s].bytes_read;
          report.bytes_written += plan_.report_.steps[s].bytes_written;
        }
        steps.push_back(std::move(impl_.steps[s]));
        kernels.push_back(std::move(kernels_[s]));
      }
      reports.push_back(std::move(report));
    }
    impl_.steps = std::move(steps);
    kernels_ = std::move(kernels);
    plan_.report_.steps = std::move(reports);
  }

  [[nodiscard]] StepEffects effects_of(std::size_t s) const {
    const StepPlan& step = impl_.steps[s];
    const std::optional<Kernel>& kernel = kernels_[s];
    StepEffects effects = {.reads = {}, .writes = {}, .can_fail = step.can_fail};
    if (kernel && kernel->order == Order::none && step.sizes.size() == 1) effects.kernel = &*kernel;
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      if (step.operands[k].value < 0) continue;
      const bool is_last = k + 1 == step.operands.size();
      const bool is_output = kernel ? kernel->operands[k].role == Role::output
                                    : is_last && step.kind == StepPlan::Kind::launch;
      (is_output ? effects.writes : effects.reads)
          .push_back(static_cast<Value>(step.operands[k].value));
    }
    if (step.kind == StepPlan::Kind::eager) effects.writes.push_back(step.value);
    for (const UpdatePlan& update : impl_.updates) {
      if (!update.is_in_place || std::ranges::count(effects.writes, update.result.base) == 0)
        continue;
      effects.overwrites = true;
      if (update.overwritten >= 0)
        effects.writes.push_back(graph().inputs[static_cast<std::size_t>(update.overwritten)]);
    }
    return effects;
  }

  /// Lets an executable know what it will be launched with.
  static void specialise(const StepPlan& step) {
    const std::vector<void*> buffers(step.operands.size(), nullptr);
    step.executable->specialise({.buffers = buffers,
                                 .sizes = step.sizes,
                                 .strides = step.strides,
                                 .offsets = step.offsets,
                                 .scalars = step.scalars});
  }

  std::shared_ptr<const Executable> prepare(const Step& step, StepReport& report) {
    const uint64_t before = executable_statistics().prepared;
    std::shared_ptr<const Executable> executable = executable_for(device_, step);
    report.build = executable->report();
    report.was_cached = executable_statistics().prepared == before;
    if (report.build.is_generated && !report.was_cached) ++plan_.report_.kernels_generated;
    return executable;
  }

  /// A call that backends know by name, with operands laid out exactly as eager's. False if views
  /// are in the way.
  bool add_library_call(Value v) {
    const Node& node = graph()[v];
    StepReport report = {
        .kind = "library",
        .ops = {std::string(node.op->name)},
    };
    StepPlan step;
    std::vector<Tensor> placeholders;
    for (const Value input : node.inputs) {
      const std::optional<Access> access = memory_access(input);
      if (!access) return false;
      const Spec& spec = graph()[input].spec;
      placeholders.push_back(make_tensor(spec, access->strides, 0, {}));
      step.operands.push_back({static_cast<int64_t>(base_of(graph(), input)),
                               access->offset * static_cast<int64_t>(size_of(spec.dtype))});
      report.bytes_read += bytes_of(spec);
    }
    step.operands.push_back({static_cast<int64_t>(v), 0});
    report.bytes_written = bytes_of(node.spec);
    std::vector<const Tensor*> inputs;
    for (const Tensor& placeholder : placeholders) inputs.push_back(&placeholder);
    LibraryCall call = node.op->call(inputs, node.attrs, node.spec);
    call.threads = impl_.threads;
    step.executable = prepare(std::move(call), report);
    step.can_fail = node.op->has_checks;
    impl_.steps.push_back(std::move(step));
    plan_.report_.steps.push_back(std::move(report));
    return true;
  }

  /// Shape, strides and offset with which `v`, perhaps a view, lies in the memory of its base.
  [[nodiscard]] std::optional<Access> memory_access(Value v) const {
    std::vector<Map> maps;
    const Node& base = graph()[base_of(graph(), v, &maps)];
    const Strides strides = base.kind == Node::Kind::input      ? base.strides
                            : base.kind == Node::Kind::constant ? base.constant.internals().strides
                                                                : strides_of(base.spec.shape);
    return through(Access{base.spec.shape, strides, 0}, maps, base.spec.dtype);
  }

  void add_eager(Value v) {
    const Node& node = graph()[v];
    StepPlan step;
    step.kind = StepPlan::Kind::eager;
    step.can_fail = true;
    step.value = v;
    for (const Value input : node.inputs)
      step.operands.push_back({static_cast<int64_t>(base_of(graph(), input)), 0});
    buffer(v) = {BufferPlan::Place::eager, static_cast<int>(impl_.eager_steps++), 0};
    impl_.steps.push_back(std::move(step));
    plan_.report_.steps.push_back({.kind = "eager",
                                   .ops = {std::string(node.op->name)},
                                   .bytes_written = bytes_of(node.spec)});
  }

  // ---- results

  [[nodiscard]] ResultPlan result_of(Value output) const {
    const Value base = base_of(graph(), output);
    const Access access =
        *memory_access(output);  // views that strides cannot express were made copies by a pass
    return {.base = base,
            .is_base = base == output,
            .spec = graph()[output].spec,
            .strides = access.strides,
            .offset = access.offset};
  }

  void plan_results() {
    for (std::size_t i = 0; i < trace_.result_count; ++i) {
      impl_.results.push_back(result_of(graph().outputs[i]));
      impl_.results.back().is_argument = i < trace_.returned.size() && trace_.returned[i] >= 0;
    }
    for (std::size_t i = 0; i < trace_.assigned.size(); ++i) {
      const Value output = graph().outputs[trace_.result_count + i];
      impl_.updates.push_back({.variable = trace_.assigned[i], .result = result_of(output)});
      plan_in_place(impl_.updates.back(), output);
    }
  }

  /// Decides whether `output` may be computed in the buffer of the Variable that it is for.
  void plan_in_place(UpdatePlan& update, Value output) {
    if (impl_.buffers[output].place != BufferPlan::Place::output) return;
    // Several outputs of one value are one tensor: it can be in only one place.
    if (std::ranges::count(graph().outputs, output) != 1) return;
    const std::size_t step = step_that_writes(output);
    const auto can_fail = [](const StepPlan& other) { return other.can_fail; };
    const auto next = impl_.steps.begin() + static_cast<std::ptrdiff_t>(step);
    if (next == impl_.steps.end() || std::any_of(next, impl_.steps.end(), can_fail)) return;
    const auto read = std::ranges::find(impl_.inputs, update.variable);
    if (read != impl_.inputs.end()) {
      const auto input = static_cast<std::size_t>(read - impl_.inputs.begin());
      if (!may_overwrite(graph().inputs[input], output, step)) return;
      update.overwritten = static_cast<int>(input);
      if (kernels_[step]) allow_alias(graph().inputs[input], output, step);
    }
    update.is_in_place = true;
    impl_.first_overwrite = std::min(impl_.first_overwrite, step);
  }

  void allow_alias(Value input, Value output, std::size_t s) {
    const std::vector<OperandPlan>& operands = impl_.steps[s].operands;
    const auto read = std::ranges::find(operands, static_cast<int64_t>(input), &OperandPlan::value);
    const auto written =
        std::ranges::find(operands, static_cast<int64_t>(output), &OperandPlan::value);
    if (read == operands.end()) return;
    kernels_[s]->operands[static_cast<std::size_t>(written - operands.begin())].alias =
        static_cast<int16_t>(read - operands.begin());
  }

  [[nodiscard]] std::size_t step_that_writes(Value output) const {
    const auto writes = [&](const StepPlan& step) {
      return std::ranges::any_of(step.operands, [&](const OperandPlan& operand) {
        return operand.value == static_cast<int64_t>(output);
      });
    };
    return static_cast<std::size_t>(std::ranges::find_if(impl_.steps, writes) -
                                    impl_.steps.begin());
  }

  /// Whether step number `written`, the first to write `output`, may write it to where `input`
  /// lies.
  [[nodiscard]] bool may_overwrite(Value input, Value output, std::size_t written) const {
    const Node& node = graph()[input];
    if (!is_contiguous(node.spec.shape, node.strides)) return false;
    for (const Value result : graph().outputs) {
      if (base_of(graph(), result) == input) return false;
    }
    const auto is_of = [](Value value) {
      return [value](const OperandPlan& operand) {
        return operand.value == static_cast<int64_t>(value);
      };
    };
    for (std::size_t s = written + 1; s < impl_.steps.size(); ++s) {
      if (std::ranges::any_of(impl_.steps[s].operands, is_of(input))) return false;
    }
    const StepPlan& step = impl_.steps[written];
    if (std::ranges::none_of(step.operands, is_of(input))) return true;
    // A reduction may read the input again after it has stored.
    const bool is_one_pass = kernels_[written] && kernels_[written]->order == Order::none;
    const auto operand = std::ranges::find_if(step.operands, is_of(output));
    return is_one_pass && reads_where_it_writes(step, input, operand - step.operands.begin());
  }

  /// True if every read of `input` in the step is of the very element being written: one pass, the
  /// same strides.
  [[nodiscard]] static bool reads_where_it_writes(const StepPlan& step, Value input,
                                                  std::ptrdiff_t written) {
    const std::size_t rank = step.sizes.size();
    const auto strides = [&](std::size_t k) {
      return std::span(step.strides).subspan(k * rank, rank);
    };
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      if (step.operands[k].value != static_cast<int64_t>(input)) continue;
      if (step.operands[k].byte_offset != 0) return false;
      if (!std::ranges::equal(strides(k), strides(static_cast<std::size_t>(written)))) return false;
    }
    // Along a reduced dimension the output does not move; then it is no elementwise update.
    return std::ranges::none_of(strides(static_cast<std::size_t>(written)),
                                [](int64_t s) { return s == 0; });
  }

  Plan& plan_;
  PlanImpl& impl_;
  const tracer::Trace& trace_;
  Backend& device_;
  const DeviceLimits limits_;
  Fusion fusion_;
  std::vector<Unit> units_;
  std::vector<std::size_t> order_;
  std::vector<std::optional<Kernel>> kernels_;  ///< per step, until it is prepared
};

Plan::Plan(const tracer::Trace& trace, int threads) : impl_(std::make_unique<PlanImpl>()) {
  Planner(*this, trace, threads).run();
}

Plan::~Plan() = default;

}  // namespace nitinol::jit
