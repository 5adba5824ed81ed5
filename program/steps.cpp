#include "program/steps.h"

#include "core/executables.h"
#include "core/library.h"
#include "fusion/access.h"
#include "fusion/lowering.h"
#include "fusion/pieces.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace nitinol::program {
namespace {

/// How many elements of operand k are touched at most: of what is broadcast each once.
std::size_t points_of(const fusion::Lowered& lowered, std::size_t k) {
  const bool is_looked_up = std::ranges::any_of(
      lowered.kernel.stages, [&](const Stage& stage) { return looks_up(stage, k); });
  const std::size_t rank = lowered.sizes.size();
  int64_t points = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    if (is_looked_up || lowered.strides[k * rank + i] != 0) points *= lowered.sizes[i];
  }
  return static_cast<std::size_t>(points);
}

// ---- kernels

void add_operand(ProgramDraft& draft, const fusion::Lowered& lowered, std::size_t k,
                 StepDraft& step) {
  using Kind = fusion::OperandOrigin::Kind;
  const fusion::OperandOrigin& origin = lowered.origins[k];
  const Operand& operand = lowered.kernel.operands[k];
  const std::size_t size = size_of(operand.dtype);
  step.out.scalars.push_back(origin.bits);
  if (origin.kind == Kind::scalar) {
    const auto input = static_cast<std::size_t>(draft.place(origin.value).index);
    step.out.run_scalars.push_back({k, draft.options.scalars[input], operand.dtype});
  }
  if (origin.kind != Kind::memory) {
    step.out.operands.push_back({-1, 0});
    return;
  }
  step.out.operands.push_back(
      {static_cast<int64_t>(origin.value), origin.offset * static_cast<int64_t>(size)});
  (operand.role == Role::output ? step.out.writes : step.out.reads).push_back(origin.value);
  StepReport& report = step.report;
  (operand.role == Role::output ? report.bytes_written : report.bytes_read) +=
      std::min(bytes_of(draft.graph[origin.value].spec), points_of(lowered, k) * size);
}

/// Notes that the step does what node `v` is.
void note(StepReport& report, const Graph& graph, Value v) {
  const Node& node = graph[v];
  report.ops.emplace_back(node.op->name);
  report.nodes.push_back(v);
  note_origin(report, node.origin);
}

void add_kernel(ProgramDraft& draft, fusion::Lowered lowered, StepReport report) {
  StepDraft& step = draft.steps.emplace_back();
  step.report = std::move(report);
  step.report.kind = "kernel";
  step.out.reads.reserve(lowered.origins.size());
  for (std::size_t k = 0; k < lowered.origins.size(); ++k) add_operand(draft, lowered, k, step);
  Kernel& kernel = lowered.kernel;
  if (step.report.bytes_written >= draft.limits.streaming_bytes && kernel.order == Order::none)
    kernel.stores = Stores::non_temporal;
  if (has_checks(kernel)) step.out.effect = Effect::may_fail;
  step.report.operations = operations_of(kernel, lowered.sizes);
  step.out.sizes = std::move(lowered.sizes);
  step.out.strides = std::move(lowered.strides);
  step.out.offsets = std::move(lowered.offsets);
  step.kernel = std::move(kernel);
}

void add_group(ProgramDraft& draft, const fusion::Group& group) {
  if (!fusion::is_needed(draft.graph, draft.fusion, group)) return;
  StepReport report;
  for (const fusion::Member& member : group.members) note(report, draft.graph, member.value);
  add_kernel(draft, fusion::lower(draft.graph, draft.fusion, group, draft.limits),
             std::move(report));
}

/// The copies to the regions of a concat and the like that nobody stores to. False if views are in
/// the way.
bool add_windows(ProgramDraft& draft, Value v) {
  const Graph& graph = draft.graph;
  const Node& node = graph[v];
  const fusion::Piece place = fusion::place_of(graph, draft.fusion.pieces, v);
  const std::vector<Window> windows = fusion::windows_of(graph, node, place.access);
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const Window& window = windows[k];
    const Value base = draft.fusion.bases[node.inputs[k]];
    if (element_count(window.shape) == 0 || draft.fusion.pieces.contains(base)) continue;
    const std::optional<fusion::Access> access = fusion::memory_access(graph, node.inputs[k]);
    if (!access) return false;
    const fusion::Copy copy = {
        .shape = window.shape,
        .from = base,
        .from_strides = broadcast_strides(access->shape, access->strides, window.shape),
        .from_offset = access->offset,
        .to = place.whole,
        .to_strides = window.map.strides,
        .to_offset = window.map.offset};
    StepReport report;
    note(report, graph, v);
    add_kernel(draft, fusion::lower_copy(node.spec.dtype, copy), std::move(report));
    draft.steps.back().is_copy = true;
  }
  return true;
}

// ---- others

bool is_library_call(const Graph& graph, const Node& node) {
  const auto has_elements = [&](Value v) { return element_count(graph[v].spec.shape) > 0; };
  if (has_parts(node)) return true;
  if (node.op->call == nullptr || node.op->effect == Effect::ordered)
    return node.op->call != nullptr;
  if (element_count(node.spec.shape) == 0) return false;
  return !node.op->of_nothing || std::ranges::all_of(node.inputs, has_elements);
}

/// The values that node `v` makes: itself, or its parts.
std::vector<Value> results_of(const Graph& graph, Value v) {
  if (!has_parts(graph[v])) return {v};
  std::vector<Value> results(parts_of(graph, v).size());
  std::iota(results.begin(), results.end(), v + 1);
  return results;
}

bool is_donated(const ProgramDraft& draft, Value v) {
  const Value base = draft.fusion.bases[v];
  return std::ranges::any_of(draft.options.donations, [&](const Donation& donation) {
    return donation.input >= 0 &&
           draft.graph.inputs[static_cast<std::size_t>(donation.input)] == base;
  });
}

/// A scatter or scatter_add whose indices are checked in a step of their own, as soon as they are
/// known: it cannot fail any more, so that it, or an update before it, may store to memory that is
/// donated. (The gradient of an embedding comes last, after those of all layers.)
void check_before(ProgramDraft& draft, LibraryCall call, StepDraft& step) {
  StepDraft check;
  check.report = step.report;
  check.report.ops = {"check_index"};
  check.out.operands = step.out.operands;
  if (call.kind == LibraryCall::Kind::scatter_add) {  // checked as a scatter to its result
    call.kind = LibraryCall::Kind::scatter;
    call.operands.insert(call.operands.begin(), call.operands.back());
    check.out.operands.insert(check.out.operands.begin(), check.out.operands.back());
  }
  check.report.bytes_read =
      static_cast<std::size_t>(element_count(call.operands[2].shape)) * sizeof(int64_t);
  check.report.bytes_written = 0;
  check.report.operations = 0;
  check.out.reads = {static_cast<Value>(check.out.operands[2].value)};
  check.out.effect = step.out.effect;
  call.only_checks = true;
  check.out.executable = prepare(draft.device, call, check.report);
  const Value indices = check.out.reads.front();
  const auto makes_indices = [indices](const StepDraft& before) {
    return std::ranges::find(before.out.writes, indices) != before.out.writes.end();
  };
  const auto made = std::ranges::find_if(draft.steps.rbegin(), draft.steps.rend(), makes_indices);
  draft.steps.insert(made.base(), std::move(check));
  step.out.effect = Effect::none;
}

/// A call that backends know by name. False if views are in the way.
bool add_library_call(ProgramDraft& draft, Value v) {
  const Graph& graph = draft.graph;
  const Node& node = graph[v];
  std::optional<LibraryCall> call = library_call_of(draft, v);
  if (!call) return false;
  StepDraft step;
  step.report.kind = "library";
  note(step.report, graph, v);
  for (const Value input : node.inputs) {
    const fusion::Access access = *fusion::memory_access(graph, input);
    const Spec& spec = graph[input].spec;
    step.out.operands.push_back({static_cast<int64_t>(draft.fusion.bases[input]),
                                 access.offset * static_cast<int64_t>(size_of(spec.dtype))});
    step.out.reads.push_back(draft.fusion.bases[input]);
    step.report.bytes_read += bytes_of(spec);
  }
  for (const Value result : results_of(graph, v)) {
    step.out.operands.push_back({static_cast<int64_t>(result), 0});
    step.out.writes.push_back(result);
    step.report.bytes_written += bytes_of(graph[result].spec);
  }
  step.report.operations = operations_of(*call);
  step.out.executable = prepare(draft.device, *call, step.report);
  if (call->kind == LibraryCall::Kind::matmul || call->kind == LibraryCall::Kind::conv2d)
    step.product = std::move(*call);
  step.out.effect = node.op->effect;
  step.report.is_ordered = step.out.effect == Effect::ordered;
  step.waits_for_others = call->kind == LibraryCall::Kind::collective;
  step.updates_first = call->kind == LibraryCall::Kind::scatter && !draft.out.is_gated &&
                       call->operands.front().strides == call->operands.back().strides;
  if (step.updates_first) step.arriving_bytes = bytes_of(graph[node.inputs[1]].spec);
  const bool is_sum = call->kind == LibraryCall::Kind::scatter_add && !draft.out.is_gated;
  if ((is_sum && !draft.options.donations.empty()) ||
      (step.updates_first && is_donated(draft, node.inputs[0])))
    check_before(draft, *call, step);
  draft.steps.push_back(std::move(step));
  return true;
}

}  // namespace

std::optional<LibraryCall> library_call_of(const ProgramDraft& draft, Value v) {
  const Graph& graph = draft.graph;
  const Node& node = graph[v];
  if (!is_library_call(graph, node)) return std::nullopt;
  std::vector<Tensor> placeholders;
  for (const Value input : node.inputs) {
    const std::optional<fusion::Access> access = fusion::memory_access(graph, input);
    if (!access) return std::nullopt;
    placeholders.push_back(make_tensor(graph[input].spec, access->strides, 0, {}));
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& placeholder : placeholders) inputs.push_back(&placeholder);
  std::vector<Spec> specs;
  for (const Value result : results_of(graph, v)) specs.push_back(graph[result].spec);
  LibraryCall call = has_parts(node) ? node.op->call_all(inputs, node.attrs, specs)
                                     : node.op->call(inputs, node.attrs, node.spec);
  call.threads = draft.options.threads;
  return call;
}

bool add_steps(ProgramDraft& draft, const fusion::Unit& unit) {
  if (unit.group >= 0) {
    add_group(draft, draft.fusion.groups[static_cast<std::size_t>(unit.group)]);
    return true;
  }
  const Node& node = draft.graph[unit.node];
  const bool is_nothing = element_count(node.spec.shape) == 0 && !has_parts(node);
  if (is_nothing && node.op->effect != Effect::ordered) return true;
  return fusion::has_windows(node) ? add_windows(draft, unit.node)
                                   : add_library_call(draft, unit.node);
}

void note_origin(StepReport& report, uint32_t origin) {
  std::vector<uint32_t>& origins = report.origins;
  if (origin != no_origin && std::ranges::find(origins, origin) == origins.end())
    origins.push_back(origin);
}

std::shared_ptr<const Executable> prepare(Backend& device, const Step& step, StepReport& report) {
  std::shared_ptr<const Executable> executable = executable_for(device, step, &report.was_cached);
  report.build = executable->report();
  return executable;
}

}  // namespace nitinol::program
