// From a trace to a Plan: passes, a Program, and what of a call each of its inputs and outputs is.
#include "core/error.h"
#include "core/hash.h"
#include "eager/launch.h"
#include "jit/clock.h"
#include "jit/passes/pipeline.h"
#include "jit/plan.h"
#include "jit/plan_impl.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace nitinol::jit {
namespace {

struct InputHash {
  std::size_t operator()(const tracer::TraceInput& input) const {
    Hash hash;
    hash.add(input.kind);
    hash.add(input.leaf);
    hash.add(input.is_gradient);
    if (input.leaf < 0) hash.add(std::bit_cast<uint64_t>(&input.captured.cell()));
    return hash.result();
  }
};

/// Constants of graphs that were parsed are in the host's memory.
void place_constants(Graph& graph, Backend& device) {
  Backend* const home = device.is_host_memory() ? nullptr : &device;
  for (Node& node : graph.nodes) {
    if (node.kind != Node::Kind::constant) continue;
    const TensorData& data = node.constant.internals();
    if (data.is_number() || data.storage->backend == home) continue;
    Spec spec = node.constant.spec();
    spec.device = device.device();
    node.constant = eager::transferred(node.constant, spec);
  }
}

/// Each new value of a Variable may be stored where the old one lies. (A trace has assignments or
/// replacements.)
std::vector<program::Donation> donations_of(const tracer::Trace& trace) {
  std::unordered_map<tracer::TraceInput, int, InputHash> numbers;
  for (std::size_t i = 0; i < trace.inputs.size(); ++i)
    numbers.try_emplace(trace.inputs[i], static_cast<int>(i));
  std::vector<program::Donation> donations;
  for (std::size_t i = 0; i < trace.assigned.size(); ++i) {
    const auto read = numbers.find(trace.assigned[i]);
    donations.push_back(
        {.output = trace.result_count + i, .input = read == numbers.end() ? -1 : read->second});
  }
  for (const tracer::Replacement& replacement : trace.replacements) {
    const auto input = numbers.find({.leaf = replacement.leaf, .captured = {}});
    if (input != numbers.end())
      donations.push_back({.output = replacement.result, .input = input->second});
  }
  return donations;
}

program::Options options_for(const tracer::Trace& trace, const Plan::Options& given,
                             const PassOptions& passes) {
  const bool is_checked = looks_at_elements(given.check);
  program::Options options = {
      .threads = given.threads,
      .donations = is_checked ? std::vector<program::Donation>() : donations_of(trace),
      .trims = passes.has("trim_images"),
      .fuses = passes.has("fuse"),
      .packs = passes.has("pack_operands"),
      .joins = passes.has("horizontal_fusion"),
      .overlaps = passes.has("overlap"),
      .replays = passes.has("cuda_graph"),
      .quick_code = given.quick_code,
      .places = trace.places};
  const std::unordered_set<tracer::TraceInput, InputHash> assigned(trace.assigned.begin(),
                                                                   trace.assigned.end());
  using Kind = tracer::TraceInput::Kind;
  for (const tracer::TraceInput& input : trace.inputs) {
    options.scalars.push_back(input.kind == Kind::scalar ? input.leaf : -1);
    const bool is_value =
        input.kind == Kind::variable
            ? !input.is_gradient && !assigned.contains(input)
            : input.kind == Kind::tensor && std::ranges::count(trace.values, input.leaf) > 0;
    options.stays.push_back(is_value);
  }
  return options;
}

void bind(const tracer::Trace& trace, PlanImpl& plan) {
  plan.inputs = trace.inputs;
  plan.empty = trace.empty;
  plan.cleared = trace.cleared;
  plan.read = trace.empty;
  std::ranges::copy_if(trace.inputs, std::back_inserter(plan.read), [](const auto& input) {
    return input.kind == tracer::TraceInput::Kind::variable;
  });
  for (std::size_t i = 0; i < trace.result_count; ++i)
    plan.is_argument.push_back(i < trace.returned.size() && trace.returned[i] >= 0 ? 1 : 0);
  for (std::size_t i = 0; i < trace.assigned.size(); ++i)
    plan.updates.push_back({.variable = trace.assigned[i], .output = trace.result_count + i});
  plan.has_updates = !plan.updates.empty() || !plan.cleared.empty();
  plan.is_plain =
      plan.program->kept.empty() && !plan.program->is_gated && plan.check == ResultCheck::none;
}

/// Whether and when a call waits for the device.
void decide_waits(PlanImpl& plan, PlanReport& report) {
  const program::Program& program = *plan.program;
  report.device = program.device->device();
  if (!program.device->is_asynchronous()) return;
  // Elements that the host looks at during the call are those of a call that has not failed.
  const auto is_settled = [&](const program::Output& output) {
    return !is_anywhere(output.spec) ||
           program.places[output.base].kind == program::Place::Kind::input;
  };
  const bool is_enqueued =
      std::ranges::all_of(program.outputs, is_settled) && plan.check == ResultCheck::none;
  plan.may_defer = is_enqueued && program.can_fail && !program.has_ordered;
  plan.may_follow = is_enqueued && !program.can_fail && !program.has_ordered && !plan.has_updates;
  report.waits = program.can_fail && !plan.may_defer ? 1 : 0;
  report.is_deferred = plan.may_defer;
}

}  // namespace

Plan::Plan(const tracer::Trace& trace, const Options& options)
    : impl_(std::make_unique<PlanImpl>()) {
  const double start = precise_now();
  Backend& device = backend(device_of(trace.graph));
  PassOptions passes = pass_options();
  std::ranges::copy(options.left_out, std::back_inserter(passes.disabled));
  Graph graph = run_passes(trace.graph, passes);
  place_constants(graph, device);
  report_.passes_s = precise_now() - start;
  impl_->program =
      program::make_program(std::move(graph), device, options_for(trace, options, passes), report_);
  if (!impl_->program) {
    throw Error(ErrorKind::internal, {.where = "Plan",
                                      .what = "the graph after the passes",
                                      .expected = "what kernels and libraries compute",
                                      .got = "an op that none of them does",
                                      .fix = {}});
  }
  if (!impl_->program->has_ordered) impl_->check = options.check;  // else it cannot run again
  if (impl_->check == ResultCheck::shadow) impl_->shadow = std::make_unique<Shadow>(trace, options);
  bind(trace, *impl_);
  decide_waits(*impl_, report_);
  report_.total_s = precise_now() - start;
  report_.prepare_s = report_.total_s - report_.passes_s - report_.fusion_s;
  result_count_ = trace.result_count;
  is_ordered_ = impl_->program->has_ordered;
}

Plan::~Plan() = default;

std::shared_ptr<const program::Program> Plan::program() const {
  return impl_->program;
}

const Graph& Plan::graph() const {
  return impl_->program->graph;
}

}  // namespace nitinol::jit
