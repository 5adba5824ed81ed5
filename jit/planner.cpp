// From a trace to a Plan: passes, grouping, one Executable per step, and a place in memory for
// every value.
#include "core/executables.h"
#include "core/kernel.h"
#include "core/library.h"
#include "eager/launch.h"
#include "jit/horizontal_fusion.h"
#include "jit/in_place.h"
#include "jit/passes/pipeline.h"
#include "jit/plan.h"
#include "jit/plan_impl.h"
#include "jit/temporaries.h"

#include "fusion/access.h"
#include "fusion/pieces.h"
#include "fusion/units.h"
#include <algorithm>
#include <chrono>

namespace nitinol::jit {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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
    fusion_ = fusion::fuse(graph(), is_pass_enabled("fuse"));
    units_ = fusion::units_in_order(graph(), fusion_);
    const double fusion_done = now();
    impl_.buffers.resize(graph().nodes.size());
    place_inputs();
    place_outputs();
    for (const fusion::Unit& unit : units_) add_step(unit);
    kernels_.resize(impl_.steps.size());
    plan_results();
    plan_in_place(graph(), fusion_.bases, impl_, kernels_);
    if (is_pass_enabled("horizontal_fusion")) join_launches();
    place_temporaries(graph(), impl_);
    place_numbers();
    note_addresses(graph(), impl_);
    prepare_kernels();
    sum_up_memory();
    PlanReport& report = plan_.report_;
    report.passes_s = passes_done - start;
    report.fusion_s = fusion_done - passes_done;
    report.total_s = now() - start;
    report.prepare_s = report.total_s - report.passes_s - report.fusion_s;
  }

 private:
  [[nodiscard]] const Graph& graph() const { return plan_.graph_; }
  BufferPlan& buffer(Value v) { return impl_.buffers[v]; }

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
      const Value base = fusion_.bases[output];
      if (buffer(base).place != BufferPlan::Place::none || is_eager_node(base)) continue;
      buffer(base) = {BufferPlan::Place::output, static_cast<int>(impl_.outputs.size()), 0};
      const Spec& spec = graph()[base].spec;
      impl_.outputs.push_back({.value = base,
                               .spec = spec,
                               .strides = strides_of(spec.shape),
                               .bytes = bytes_of(spec)});
    }
  }

  [[nodiscard]] bool is_eager_node(Value v) const {
    const Node& node = graph()[v];
    return fusion_.group_of[v] < 0 && node.kind == Node::Kind::op && !is_library_node(node) &&
           !fusion::has_windows(node);
  }

  [[nodiscard]] bool is_library_node(const Node& node) const {
    return node.op->call != nullptr && element_count(node.spec.shape) > 0 &&
           std::ranges::all_of(node.inputs,
                               [&](Value v) { return element_count(graph()[v].spec.shape) > 0; });
  }

  // ---- steps

  void add_step(const fusion::Unit& unit) {
    if (unit.group >= 0) {
      add_kernel(fusion_.groups[static_cast<std::size_t>(unit.group)]);
    } else if (fusion::has_windows(graph()[unit.node])) {
      add_windows(unit.node);
    } else if (!is_library_node(graph()[unit.node]) || !add_library_call(unit.node)) {
      add_eager(unit.node);
    }
  }

  void add_kernel(const fusion::Group& group) {
    // Nothing of it is needed in memory: dead code that no pass has removed.
    const auto is_wanted = [&](const fusion::Member& m) {
      return fusion_.is_materialised[m.value] || graph()[m.value].op->has_checks;
    };
    if (std::ranges::none_of(group.members, is_wanted)) return;
    std::vector<std::string> ops;
    for (const fusion::Member& member : group.members)
      ops.emplace_back(graph()[member.value].op->name);
    add_lowered(fusion::lower(graph(), fusion_, group, limits_), std::move(ops));
  }

  void add_lowered(fusion::Lowered lowered, std::vector<std::string> ops) {
    StepReport report = {
        .kind = "kernel",
        .ops = std::move(ops),
    };
    StepPlan step;
    for (std::size_t k = 0; k < lowered.origins.size(); ++k) plan_operand(lowered, k, step, report);
    if (report.bytes_written >= limits_.streaming_bytes && lowered.kernel.order == Order::none) {
      lowered.kernel.stores = Stores::non_temporal;
    }
    step.can_fail = has_checks(lowered.kernel);
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
    const std::vector<Window> windows = fusion::windows_of(graph(), node);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Window& window = windows[k];
      const Value base = fusion_.bases[node.inputs[k]];
      if (element_count(window.shape) == 0 || fusion_.pieces.contains(base)) continue;
      const fusion::Access access = *fusion::memory_access(graph(), node.inputs[k]);
      const fusion::Lowered lowered = fusion::lower_copy(
          node.spec.dtype,
          {.shape = window.shape,
           .from = base,
           .from_strides = broadcast_strides(access.shape, access.strides, window.shape),
           .from_offset = access.offset,
           .to = v,
           .to_strides = window.map.strides,
           .to_offset = window.map.offset});
      add_lowered(lowered, {std::string(node.op->name)});
    }
  }

  void plan_operand(const fusion::Lowered& lowered, std::size_t k, StepPlan& step,
                    StepReport& report) {
    const fusion::OperandOrigin& origin = lowered.origins[k];
    const DType dtype = lowered.kernel.operands[k].dtype;
    step.scalars.push_back(origin.bits);
    if (origin.kind == fusion::OperandOrigin::Kind::scalar) {
      step.call_scalars.push_back(
          {k, trace_.inputs[static_cast<std::size_t>(buffer(origin.value).index)].leaf, dtype});
    }
    if (origin.kind != fusion::OperandOrigin::Kind::memory) {
      step.operands.push_back({-1, 0});
      return;
    }
    step.operands.push_back(
        {static_cast<int64_t>(origin.value), origin.offset * static_cast<int64_t>(size_of(dtype))});
    const std::size_t bytes =
        std::min(bytes_of(graph()[origin.value].spec), points_of(lowered) * size_of(dtype));
    (lowered.kernel.operands[k].role == Role::output ? report.bytes_written : report.bytes_read) +=
        bytes;
  }

  [[nodiscard]] static std::size_t points_of(const fusion::Lowered& lowered) {
    int64_t points = 1;
    for (const int64_t size : lowered.sizes) points *= size;
    return static_cast<std::size_t>(points);
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
        impl_.scalars_in_memory.push_back(static_cast<std::size_t>(buffer(v).index));
    }
  }

  /// The same elements in the device's memory.
  [[nodiscard]] Tensor on_device(const Tensor& constant) const {
    Spec spec = constant.spec();
    spec.device = device_.device();
    return eager::transferred(constant, spec);
  }

  /// Constants of graphs that were parsed are in the host's memory.
  void place_constants() {
    Backend* const home = device_.is_host_memory() ? nullptr : &device_;
    for (Node& node : plan_.graph_.nodes) {
      if (node.kind != Node::Kind::constant) continue;
      const TensorData& data = node.constant.internals();
      if (!data.is_number && data.storage->backend != home)
        node.constant = on_device(node.constant);
    }
  }

  void prepare_kernels() {
    auto report = plan_.report_.steps.begin();
    for (std::size_t s = 0; s < kernels_.size(); s += impl_.steps[s].together, ++report) {
      if (kernels_[s]) impl_.steps[s].executable = prepare(std::move(*kernels_[s]), *report);
    }
    for (std::size_t s = 0; s < impl_.steps.size(); s += impl_.steps[s].together)
      prepare_launches(std::span(impl_.steps).subspan(s, impl_.steps[s].together));
  }

  void sum_up_memory() {
    PlanReport& report = plan_.report_;
    report.arena_bytes = impl_.arena_bytes;
    for (const OutputPlan& output : impl_.outputs)
      (output.donor >= 0 ? report.in_place_bytes : report.result_bytes) += output.bytes;
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
    for (std::size_t k = effects.writes.size(); k-- > 0;) {
      const BufferPlan& written = impl_.buffers[effects.writes[k]];
      if (written.place != BufferPlan::Place::output) continue;
      const int donor = impl_.outputs[static_cast<std::size_t>(written.index)].donor;
      if (donor < 0) continue;
      effects.overwrites = true;
      const int overwritten = impl_.updates[static_cast<std::size_t>(donor)].overwritten;
      if (overwritten >= 0)
        effects.writes.push_back(graph().inputs[static_cast<std::size_t>(overwritten)]);
    }
    return effects;
  }

  /// What is known of the launches is prepared, and the executables know it too. Steps that are
  /// launched together stay with what can do that.
  void prepare_launches(std::span<StepPlan> together) const {
    for (StepPlan& step : together) {
      step.launch = {.buffers = {},
                     .sizes = step.sizes,
                     .strides = step.strides,
                     .offsets = step.offsets,
                     .scalars = step.scalars,
                     .threads = impl_.threads};
      for (std::size_t k = 0; k < step.operands.size(); ++k) {
        const OperandPlan& operand = step.operands[k];
        if (operand.value >= 0)
          step.memory.push_back({k, static_cast<Value>(operand.value), operand.byte_offset});
      }
      if (!together[0].executable) continue;
      const std::vector<void*> none(step.operands.size(), nullptr);
      Launch example = step.launch;
      example.buffers = none;
      std::unique_ptr<const Executable> specialised = together[0].executable->specialise(example);
      if (together.size() == 1) step.specialised = std::move(specialised);
    }
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
      const std::optional<fusion::Access> access = fusion::memory_access(graph(), input);
      if (!access) return false;
      const Spec& spec = graph()[input].spec;
      placeholders.push_back(make_tensor(spec, access->strides, 0, {}));
      step.operands.push_back({static_cast<int64_t>(fusion_.bases[input]),
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

  void add_eager(Value v) {
    const Node& node = graph()[v];
    StepPlan step;
    step.kind = StepPlan::Kind::eager;
    step.can_fail = true;
    step.value = v;
    for (const Value input : node.inputs)
      step.operands.push_back({static_cast<int64_t>(fusion_.bases[input]), 0});
    buffer(v) = {BufferPlan::Place::eager, static_cast<int>(impl_.eager_steps++), 0};
    impl_.steps.push_back(std::move(step));
    plan_.report_.steps.push_back({.kind = "eager",
                                   .ops = {std::string(node.op->name)},
                                   .bytes_written = bytes_of(node.spec)});
  }

  // ---- results

  [[nodiscard]] ResultPlan result_of(Value output) const {
    const Value base = fusion_.bases[output];
    const fusion::Access access = *fusion::memory_access(
        graph(), output);  // views that strides cannot express were made copies by a pass
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
    }
  }

  Plan& plan_;
  PlanImpl& impl_;
  const tracer::Trace& trace_;
  Backend& device_;
  const DeviceLimits limits_;
  fusion::Fusion fusion_;
  std::vector<fusion::Unit> units_;
  std::vector<std::optional<Kernel>> kernels_;  ///< per step, until it is prepared
};

Plan::Plan(const tracer::Trace& trace, int threads) : impl_(std::make_unique<PlanImpl>()) {
  Planner(*this, trace, threads).run();
}

Plan::~Plan() = default;

}  // namespace nitinol::jit
