// From a trace to a Plan: passes, grouping, one Executable per step, and a place in memory for
// every value.
#include "core/library.h"
#include "core/parallel.h"
#include "eager/launch.h"
#include "fusion/access.h"
#include "fusion/units.h"
#include "jit/horizontal_fusion.h"
#include "jit/in_place.h"
#include "jit/packing.h"
#include "jit/passes/pipeline.h"
#include "jit/plan.h"
#include "jit/plan_draft.h"
#include "jit/steps.h"
#include "jit/temporaries.h"
#include "jit/trimming.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

namespace nitinol::jit {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

PlanDraft begin(const tracer::Trace& trace, int threads) {
  PlanDraft draft = {.trace = trace, .device = backend(device_of(trace.graph))};
  draft.impl.device = &draft.device;
  draft.impl.is_gated = draft.device.is_asynchronous();
  draft.impl.threads = threads;
  draft.impl.inputs = trace.inputs;
  draft.impl.empty = trace.empty;
  draft.impl.cleared = trace.cleared;
  draft.impl.read = trace.empty;
  std::ranges::copy_if(trace.inputs, std::back_inserter(draft.impl.read), [](const auto& input) {
    return input.kind == tracer::TraceInput::Kind::variable;
  });
  return draft;
}

// ---- memory

/// The same elements in the device's memory.
Tensor on_device(const PlanDraft& draft, const Tensor& constant) {
  Spec spec = constant.spec();
  spec.device = draft.device.device();
  return eager::transferred(constant, spec);
}

/// Constants of graphs that were parsed are in the host's memory.
void place_constants(PlanDraft& draft) {
  Backend* const home = draft.device.is_host_memory() ? nullptr : &draft.device;
  for (Node& node : draft.graph.nodes) {
    if (node.kind != Node::Kind::constant) continue;
    const TensorData& data = node.constant.internals();
    if (!data.is_number && data.storage->backend != home)
      node.constant = on_device(draft, node.constant);
  }
}

void place_inputs(PlanDraft& draft) {
  const Graph& graph = draft.graph;
  draft.impl.buffers.resize(graph.nodes.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    draft.buffer(graph.inputs[i]) = {BufferPlan::Place::input, static_cast<int>(i), 0};
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    if (graph[v].kind == Node::Kind::constant)
      draft.buffer(v) = {BufferPlan::Place::constant, 0, 0};
  }
}

void place_outputs(PlanDraft& draft) {
  std::vector<OutputPlan>& outputs = draft.impl.outputs;
  for (const Value output : draft.graph.outputs) {
    const Value base = draft.fusion.bases[output];
    if (draft.buffer(base).place != BufferPlan::Place::none) continue;
    const Node& node = draft.graph[base];
    draft.buffer(base) = {BufferPlan::Place::output, static_cast<int>(outputs.size()), 0};
    outputs.push_back({.value = base,
                       .spec = node.spec,
                       .strides = strides_of(node.spec.shape),
                       .bytes = bytes_of(node.spec)});
  }
}

/// Numbers that a step loads, as a library call does, have to lie in the device's memory.
void place_numbers(PlanDraft& draft) {
  std::vector<bool> is_loaded(draft.impl.buffers.size(), false);
  for (const StepDraft& step : draft.steps) {
    draft.impl.has_checks |= step.plan.can_fail;
    for (const OperandPlan& operand : step.plan.operands) {
      if (operand.value >= 0) is_loaded[static_cast<std::size_t>(operand.value)] = true;
    }
  }
  for (Value v = 0; v < draft.graph.nodes.size(); ++v) {
    Node& node = draft.graph.nodes[v];
    if (!is_loaded[v]) continue;
    if (node.kind == Node::Kind::constant && node.constant.internals().is_number)
      node.constant = on_device(draft, node.constant);
    if (node.kind == Node::Kind::input && node.spec.is_weak)
      draft.impl.scalars_in_memory.push_back(static_cast<std::size_t>(draft.buffer(v).index));
  }
}

// ---- results

ResultPlan result_of(const PlanDraft& draft, Value output) {
  const Value base = draft.fusion.bases[output];
  // Views that strides cannot express were made copies by a pass.
  const fusion::Access access = *fusion::memory_access(draft.graph, output);
  return {.base = base,
          .is_base = base == output,
          .spec = draft.graph[output].spec,
          .strides = access.strides,
          .offset = access.offset};
}

void plan_results(PlanDraft& draft) {
  const tracer::Trace& trace = draft.trace;
  for (std::size_t i = 0; i < trace.result_count; ++i) {
    ResultPlan& result = draft.impl.results.emplace_back(result_of(draft, draft.graph.outputs[i]));
    result.is_argument = i < trace.returned.size() && trace.returned[i] >= 0;
  }
  for (std::size_t i = 0; i < trace.assigned.size(); ++i) {
    const Value output = draft.graph.outputs[trace.result_count + i];
    draft.impl.updates.push_back(
        {.variable = trace.assigned[i], .result = result_of(draft, output)});
  }
}

// ---- launches

/// What is known of a launch is prepared.
void prepare_launch(StepPlan& step, int threads) {
  step.launch = {.buffers = {},
                 .sizes = step.sizes,
                 .strides = step.strides,
                 .offsets = step.offsets,
                 .scalars = step.scalars,
                 .threads = threads};
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const OperandPlan& operand = step.operands[k];
    if (operand.value >= 0)
      step.memory.push_back({k, static_cast<Value>(operand.value), operand.byte_offset});
  }
}

/// The executables of steps, of which each begins some that are launched together, know what will
/// come.
void specialise(Backend& device, std::span<StepPlan> steps, std::span<const std::size_t> firsts,
                std::span<StepReport> reports) {
  std::vector<void*> none;
  for (const StepPlan& step : steps) none.resize(std::max(none.size(), step.operands.size()));
  std::vector<Expected> plan;
  std::vector<StepPlan*> begins;
  std::vector<StepReport*> begun;
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    const std::size_t s = firsts[i];
    begins.push_back(&steps[s]);
    begun.push_back(&reports[i]);
    Expected& expected = plan.emplace_back();
    expected.executable = steps[s].executable.get();
    for (const StepPlan& step : steps.subspan(s, steps[s].together)) {
      expected.examples.push_back(step.launch);
      expected.examples.back().buffers = std::span(none).first(step.operands.size());
    }
  }
  device.specialise(plan);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    begins[i]->specialised = std::move(plan[i].specialised);
    begun[i]->how = plan[i].executable->describe(plan[i].examples);
  }
}

/// Kernels are prepared, and steps become the Plan's.
void finish_steps(PlanDraft& draft) {
  std::vector<std::size_t> firsts;
  draft.report.steps.reserve(draft.steps.size());
  for (std::size_t s = 0; s < draft.steps.size(); s += draft.steps[s].plan.together) {
    StepDraft& first = draft.steps[s];
    firsts.push_back(s);
    if (first.kernel)
      first.plan.executable = prepare(draft, std::move(*first.kernel), first.report);
    draft.report.steps.push_back(std::move(first.report));
  }
  std::vector<StepPlan>& steps = draft.impl.steps;
  steps.reserve(draft.steps.size());
  for (StepDraft& step : draft.steps) steps.push_back(std::move(step.plan));
  for (StepPlan& step : steps) prepare_launch(step, draft.impl.threads);
  specialise(draft.device, steps, firsts, draft.report.steps);
}

void report_device(PlanDraft& draft) {
  draft.report.device = draft.device.device();
  PlanImpl& plan = draft.impl;
  if (!draft.device.is_asynchronous()) return;
  // Elements that the host looks at during the call are those of a call that has not failed.
  const auto is_looked_at = [&](const ResultPlan& result) {
    return is_anywhere(result.spec) && plan.buffers[result.base].place != BufferPlan::Place::input;
  };
  const auto is_settled = [&](const ResultPlan& result) { return !is_looked_at(result); };
  const bool is_enqueued = std::ranges::all_of(plan.results, is_settled) &&
                           std::ranges::all_of(plan.updates, is_settled, &UpdatePlan::result);
  plan.may_defer = is_enqueued && plan.has_checks;
  plan.may_follow = is_enqueued && !plan.has_checks && plan.updates.empty() && plan.cleared.empty();
  draft.report.waits = plan.has_checks && !plan.may_defer ? 1 : 0;
  draft.report.is_deferred = plan.may_defer;
}

void sum_up_memory(PlanDraft& draft) {
  draft.report.arena_bytes = draft.impl.arena_bytes;
  for (const OutputPlan& output : draft.impl.outputs)
    (output.donor >= 0 ? draft.report.in_place_bytes : draft.report.result_bytes) += output.bytes;
}

}  // namespace

Plan::Plan(const tracer::Trace& trace, int threads) {
  const double start = now();
  PlanDraft draft = begin(trace, threads);
  draft.graph = run_passes(trace.graph);
  place_constants(draft);
  if (is_pass_enabled("trim_images")) trim_images(draft);
  const double passes_done = now();
  draft.fusion = fusion::fuse(draft.graph, is_pass_enabled("fuse"));
  const std::vector<fusion::Unit> units = fusion::units_in_order(draft.graph, draft.fusion);
  const double fusion_done = now();
  place_inputs(draft);
  place_outputs(draft);
  draft.steps.reserve(units.size());
  for (const fusion::Unit& unit : units) add_steps(draft, unit);
  if (is_pass_enabled("pack_operands")) pack_operands(draft);
  plan_results(draft);
  plan_in_place(draft);
  if (is_pass_enabled("horizontal_fusion")) join_launches(draft);
  place_temporaries(draft);
  place_numbers(draft);
  note_addresses(draft.graph, draft.impl);
  finish_steps(draft);
  sum_up_memory(draft);
  report_device(draft);
  report_ = std::move(draft.report);
  report_.passes_s = passes_done - start;
  report_.fusion_s = fusion_done - passes_done;
  report_.total_s = now() - start;
  report_.prepare_s = report_.total_s - report_.passes_s - report_.fusion_s;
  graph_ = std::move(draft.graph);
  impl_ = std::make_unique<PlanImpl>(std::move(draft.impl));
  result_count_ = impl_->results.size();
}

Plan::~Plan() = default;

}  // namespace nitinol::jit
