#include "jit/steps.h"

#include "core/error.h"
#include "core/executables.h"
#include "core/library.h"
#include "fusion/access.h"
#include "fusion/lowering.h"
#include "fusion/pieces.h"
#include "jit/temporaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace nitinol::jit {
namespace {

std::size_t points_of(const fusion::Lowered& lowered) {
  int64_t points = 1;
  for (const int64_t size : lowered.sizes) points *= size;
  return static_cast<std::size_t>(points);
}

// ---- kernels

void add_operand(PlanDraft& draft, const fusion::Lowered& lowered, std::size_t k, StepDraft& step) {
  using Kind = fusion::OperandOrigin::Kind;
  const fusion::OperandOrigin& origin = lowered.origins[k];
  const Operand& operand = lowered.kernel.operands[k];
  const std::size_t size = size_of(operand.dtype);
  step.plan.scalars.push_back(origin.bits);
  if (origin.kind == Kind::scalar) {
    const auto input = static_cast<std::size_t>(draft.buffer(origin.value).index);
    step.plan.call_scalars.push_back({k, draft.trace.inputs[input].leaf, operand.dtype});
  }
  if (origin.kind != Kind::memory) {
    step.plan.operands.push_back({-1, 0});
    return;
  }
  step.plan.operands.push_back(
      {static_cast<int64_t>(origin.value), origin.offset * static_cast<int64_t>(size)});
  StepReport& report = step.report;
  (operand.role == Role::output ? report.bytes_written : report.bytes_read) +=
      std::min(bytes_of(draft.graph[origin.value].spec), points_of(lowered) * size);
}

void add_kernel(PlanDraft& draft, fusion::Lowered lowered, std::vector<std::string> ops) {
  StepDraft& step = draft.steps.emplace_back();
  step.report.kind = "kernel";
  step.report.ops = std::move(ops);
  for (std::size_t k = 0; k < lowered.origins.size(); ++k) add_operand(draft, lowered, k, step);
  Kernel& kernel = lowered.kernel;
  if (step.report.bytes_written >= draft.limits.streaming_bytes && kernel.order == Order::none)
    kernel.stores = Stores::non_temporal;
  step.plan.can_fail = has_checks(kernel);
  step.plan.sizes = std::move(lowered.sizes);
  step.plan.strides = std::move(lowered.strides);
  step.plan.offsets = std::move(lowered.offsets);
  step.kernel = std::move(kernel);
}

void add_group(PlanDraft& draft, const fusion::Group& group) {
  if (!fusion::is_needed(draft.graph, draft.fusion, group)) return;
  std::vector<std::string> ops;
  for (const fusion::Member& member : group.members)
    ops.emplace_back(draft.graph[member.value].op->name);
  add_kernel(draft, fusion::lower(draft.graph, draft.fusion, group, draft.limits), std::move(ops));
}

/// The copies to the regions of a concat and the like that nobody stores to.
void add_windows(PlanDraft& draft, Value v) {
  const Graph& graph = draft.graph;
  const Node& node = graph[v];
  const std::vector<Window> windows = fusion::windows_of(graph, node);
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const Window& window = windows[k];
    const Value base = draft.fusion.bases[node.inputs[k]];
    if (element_count(window.shape) == 0 || draft.fusion.pieces.contains(base)) continue;
    const fusion::Access access = *fusion::memory_access(graph, node.inputs[k]);
    const fusion::Copy copy = {
        .shape = window.shape,
        .from = base,
        .from_strides = broadcast_strides(access.shape, access.strides, window.shape),
        .from_offset = access.offset,
        .to = v,
        .to_strides = window.map.strides,
        .to_offset = window.map.offset};
    add_kernel(draft, fusion::lower_copy(node.spec.dtype, copy), {std::string(node.op->name)});
  }
}

// ---- others

bool is_library_call(const Graph& graph, const Node& node) {
  const auto has_elements = [&](Value v) { return element_count(graph[v].spec.shape) > 0; };
  return node.op->call != nullptr && element_count(node.spec.shape) > 0 &&
         std::ranges::all_of(node.inputs, has_elements);
}

/// A call that backends know by name. False if views are in the way.
bool add_library_call(PlanDraft& draft, Value v) {
  const Graph& graph = draft.graph;
  const Node& node = graph[v];
  std::optional<LibraryCall> call = library_call_of(draft, v);
  if (!call) return false;
  StepDraft step;
  step.report.kind = "library";
  step.report.ops = {std::string(node.op->name)};
  for (const Value input : node.inputs) {
    const fusion::Access access = *fusion::memory_access(graph, input);
    const Spec& spec = graph[input].spec;
    step.plan.operands.push_back({static_cast<int64_t>(draft.fusion.bases[input]),
                                  access.offset * static_cast<int64_t>(size_of(spec.dtype))});
    step.report.bytes_read += bytes_of(spec);
  }
  step.plan.operands.push_back({static_cast<int64_t>(v), 0});
  step.report.bytes_written = bytes_of(node.spec);
  step.plan.executable = prepare(draft, *call, step.report);
  if (call->kind == LibraryCall::Kind::matmul) step.product = std::move(*call);
  step.plan.can_fail = node.op->has_checks;
  draft.steps.push_back(std::move(step));
  return true;
}

}  // namespace

std::optional<LibraryCall> library_call_of(const PlanDraft& draft, Value v) {
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
  LibraryCall call = node.op->call(inputs, node.attrs, node.spec);
  call.threads = draft.impl.threads;
  return call;
}

void add_steps(PlanDraft& draft, const fusion::Unit& unit) {
  if (unit.group >= 0)
    return add_group(draft, draft.fusion.groups[static_cast<std::size_t>(unit.group)]);
  const Node& node = draft.graph[unit.node];
  if (element_count(node.spec.shape) == 0) return;
  if (fusion::has_windows(node)) return add_windows(draft, unit.node);
  if (add_library_call(draft, unit.node)) return;
  throw Error(ErrorKind::internal,
              {.where = "Plan",
               .what = fmt::format("{} of {}", node.op->name, describe(node.spec)),
               .expected = "an op that a kernel or a library computes",
               .got = std::string(name_of(node.op->kind)),
               .fix = {}});
}

std::shared_ptr<const Executable> prepare(PlanDraft& draft, const Step& step, StepReport& report) {
  const uint64_t before = executable_statistics().prepared;
  std::shared_ptr<const Executable> executable = executable_for(draft.device, step);
  report.build = executable->report();
  report.was_cached = executable_statistics().prepared == before;
  if (report.build.is_generated && !report.was_cached) ++draft.report.kernels_generated;
  return executable;
}

}  // namespace nitinol::jit
