// From a graph to a Program: grouping, one Executable per launch, and a place in memory for every
// value.
#include "program/program.h"

#include "core/clock.h"
#include "core/executables.h"
#include "core/log.h"
#include "core/native_tools.h"
#include "core/parallel.h"
#include "core/place.h"
#include "fusion/access.h"
#include "fusion/units.h"
#include "program/draft.h"
#include "program/going_on.h"
#include "program/horizontal_fusion.h"
#include "program/in_place.h"
#include "program/packing.h"
#include "program/replays.h"
#include "program/steps.h"
#include "program/temporaries.h"
#include "program/trimming.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>

namespace nitinol::program {
namespace {

// ---- memory

void place_inputs(ProgramDraft& draft) {
  const Graph& graph = draft.graph;
  draft.out.places.resize(graph.nodes.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    draft.place(graph.inputs[i]) = {Place::Kind::input, static_cast<int>(i), 0};
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    if (graph[v].kind == Node::Kind::constant) draft.place(v) = {Place::Kind::constant, 0, 0};
  }
}

/// False if views are in the way.
bool place_outputs(ProgramDraft& draft) {
  std::vector<OutputMemory>& memory = draft.out.memory;
  for (const Value output : draft.graph.outputs) {
    const Value base = draft.fusion.bases[output];
    const std::optional<fusion::Access> access = fusion::memory_access(draft.graph, output);
    if (!access) return false;
    draft.out.outputs.push_back({.base = base,
                                 .is_base = base == output,
                                 .spec = draft.graph[output].spec,
                                 .strides = access->strides,
                                 .offset = access->offset});
    if (draft.place(base).kind != Place::Kind::none) continue;
    const Node& node = draft.graph[base];
    draft.place(base) = {Place::Kind::output, static_cast<int>(memory.size()), 0};
    memory.push_back({.value = base,
                      .spec = node.spec,
                      .strides = strides_of(node.spec.shape),
                      .bytes = bytes_of(node.spec)});
  }
  return true;
}

/// A number in the device's memory.
Tensor stored(const ProgramDraft& draft, const TensorData& number) {
  Spec spec = number.spec;
  spec.device = draft.device.device();
  const Tensor out = allocate_tensor(spec);
  draft.device.fill(out.internals().address(), number.number, size_of(spec.dtype), 1);
  return out;
}

/// Numbers that a step loads, as a library call does, have to lie in the device's memory.
void place_numbers(ProgramDraft& draft) {
  for (const StepDraft& step : draft.steps) {
    for (const Value v : step.out.reads) {
      if (v >= draft.graph.nodes.size()) continue;  // packed
      Node& node = draft.graph.nodes[v];
      if (node.kind == Node::Kind::constant && node.constant.internals().is_number())
        node.constant = stored(draft, node.constant.internals());
      const auto input = static_cast<std::size_t>(draft.place(v).index);
      std::vector<std::size_t>& numbers = draft.out.numbers_in_memory;
      const bool is_number = node.kind == Node::Kind::input && node.spec.is_weak;
      if (is_number && std::ranges::find(numbers, input) == numbers.end()) numbers.push_back(input);
    }
  }
}

/// Notes what is the same at every run.
void note_addresses(ProgramDraft& draft) {
  Program& out = draft.out;
  out.addresses.assign(out.places.size(), nullptr);
  for (Value v = 0; v < out.places.size(); ++v) {
    const Place::Kind kind = out.places[v].kind;
    if (kind == Place::Kind::arena) out.temporaries.push_back(v);
    if (kind == Place::Kind::constant)
      out.addresses[v] = static_cast<std::byte*>(draft.graph[v].constant.internals().address());
  }
}

// ---- launches

/// What is known of a launch is prepared.
void prepare_launch(ProgramStep& step, int threads) {
  step.launch = {.buffers = {},
                 .sizes = step.sizes,
                 .strides = step.strides,
                 .offsets = step.offsets,
                 .scalars = step.scalars,
                 .threads = threads};
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const StepOperand& operand = step.operands[k];
    if (operand.value >= 0)
      step.memory.push_back({k, static_cast<Value>(operand.value), operand.byte_offset});
  }
}

/// The executables of steps, of which each begins some that are launched together, know what will
/// come.
void specialise(Backend& device, std::span<ProgramStep> steps, std::span<const std::size_t> firsts,
                std::span<StepReport> reports) {
  std::vector<void*> none;
  for (const ProgramStep& step : steps) none.resize(std::max(none.size(), step.operands.size()));
  std::vector<Expected> plan;
  for (const std::size_t s : firsts) {
    Expected& expected = plan.emplace_back();
    expected.executable = steps[s].executable.get();
    for (const ProgramStep& step : steps.subspan(s, steps[s].together)) {
      expected.examples.push_back(step.launch);
      expected.examples.back().buffers = std::span(none).first(step.operands.size());
    }
  }
  device.specialise(plan);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    steps[firsts[i]].specialised = std::move(plan[i].specialised);
    reports[i].how = plan[i].executable->describe(plan[i].examples);
  }
}

/// A kernel whose code is to be made.
struct Missing {
  StepDraft* step = nullptr;
  std::shared_ptr<const nitinol::Step> kernel;
};

/// Makes the code that is not there, on as many threads as compute: to generate it takes
/// milliseconds. What is there must not wait for threads.
void prepare_kernels(Backend& device, std::span<StepDraft* const> steps) {
  std::vector<Missing> missing;
  for (StepDraft* const step : steps) {
    const auto kernel = std::make_shared<const nitinol::Step>(std::move(*step->kernel));
    step->out.kernel = std::shared_ptr<const Kernel>(kernel, &std::get<Kernel>(*kernel));
    step->out.executable = known_executable(device, *kernel);
    if (!step->out.executable) {
      missing.push_back({step, kernel});
      continue;
    }
    step->report.was_cached = true;
    step->report.build = step->out.executable->report();
  }
  std::atomic<std::size_t> next = 0;
  const auto take = [&](int64_t, int64_t) {
    for (std::size_t i = next++; i < missing.size(); i = next++) {
      const auto& [step, kernel] = missing[i];
      step->out.executable = prepare(device, *kernel, step->report);
    }
  };
  constexpr std::size_t many = 8;
  if (missing.size() >= many)
    log(LogLevel::info, fmt::format("makes the code of {} kernels", missing.size()));
  const std::size_t threads =
      std::min(missing.size(), static_cast<std::size_t>(available_threads()));
  parallel_for(0, static_cast<int64_t>(threads), 1, take);
}

/// The line of the step's last operation whose line is known: mostly that of its result. One line
/// is all that a kernel has, as its instructions belong to no operation alone. Takes milliseconds
/// where debug information is read for the first time.
std::string place_of(const StepReport& step, std::span<const CallSite> places) {
  for (const uint32_t origin : std::views::reverse(step.origins)) {
    if (origin >= places.size()) continue;
    std::string text = places[origin].text();
    if (!text.empty()) return text;
  }
  return {};
}

/// Kernels are prepared, and steps become the Program's.
void finish_steps(ProgramDraft& draft) {
  std::vector<std::size_t> firsts;
  std::vector<StepDraft*> kernels;
  draft.report.steps.reserve(draft.steps.size());
  for (std::size_t s = 0; s < draft.steps.size(); s += draft.steps[s].out.together) {
    firsts.push_back(s);
    if (!draft.steps[s].kernel) continue;
    Making& making = draft.steps[s].kernel->making;
    making.is_quick = draft.options.quick_code;
    if (tells_perf() && draft.options.places)
      making.place = place_of(draft.steps[s].report, *draft.options.places);
    kernels.push_back(&draft.steps[s]);
  }
  prepare_kernels(draft.device, kernels);
  for (const std::size_t s : firsts) {
    const StepReport& report = draft.report.steps.emplace_back(std::move(draft.steps[s].report));
    const CodeOrigin origin = report.build.origin;
    const bool is_made = origin == CodeOrigin::generated || origin == CodeOrigin::quick;
    if (is_made && !report.was_cached) ++draft.report.kernels_generated;
  }
  Program& out = draft.out;
  out.steps.reserve(draft.steps.size());
  for (StepDraft& step : draft.steps) out.steps.push_back(std::move(step.out));
  for (ProgramStep& step : out.steps) prepare_launch(step, out.threads);
  out.safe_steps = out.steps.size();
  for (const std::size_t s : firsts) {
    for (const ProgramStep& step : std::span(out.steps).subspan(s, out.steps[s].together)) {
      out.can_fail |= step.effect == Effect::may_fail;
      if (step.overwrites || step.effect == Effect::ordered)
        out.safe_steps = std::min(out.safe_steps, s);
    }
  }
  specialise(draft.device, out.steps, firsts, draft.report.steps);
}

/// Whether all that may fail comes before what is ordered.
bool may_fail_first(const Graph& graph) {
  bool is_after = false;
  for (const Node& node : graph.nodes) {
    if (node.kind != Node::Kind::op) continue;
    if (is_after && node.op->effect == Effect::may_fail) return false;
    is_after |= node.op->effect == Effect::ordered;
  }
  return true;
}

void sum_up_memory(ProgramDraft& draft) {
  draft.report.arena_bytes = draft.out.arena_bytes;
  for (const OutputMemory& memory : draft.out.memory) {
    (memory.donation >= 0 ? draft.report.in_place_bytes : draft.report.result_bytes) +=
        memory.bytes;
  }
}

/// Lets runs be replays where that gains something; else the report says why not.
void let_replay(Program& program, bool is_wanted, Report& report) {
  if (!program.device->can_record()) return;
  constexpr std::size_t least = 3;  // what one launch takes the place of
  const std::size_t launches = report.steps.size();
  std::string& why_not = report.replays.why_not;
  if (!is_wanted) {
    why_not = "it is left out";
  } else if (program.has_ordered) {
    why_not = "some steps wait for other processes";
  } else if (!program.kept.empty()) {
    why_not = "some operands stay packed";
  } else if (launches < least) {
    why_not = fmt::format("{} {} too few", launches, launches == 1 ? "step is" : "steps are");
  } else {
    program.replays = std::make_shared<Replays>(program);
  }
}

}  // namespace

std::shared_ptr<const Program> make_program(Graph graph, Backend& device, const Options& options,
                                            Report& report) {
  if (!may_fail_first(graph)) return nullptr;
  ProgramDraft draft = {
      .device = device, .options = options, .report = report, .graph = std::move(graph)};
  draft.out.device = &device;
  draft.out.threads = options.threads;
  draft.out.is_gated = device.is_asynchronous();
  draft.out.has_ordered = has_ordered(draft.graph);
  if (options.trims) trim_images(draft);
  const double start = precise_now();
  std::optional<profiling::Span> span(std::in_place, EventKind::compile, "fusion");
  draft.fusion = fusion::fuse(draft.graph, options.fuses, device.limits());
  const std::vector<fusion::Unit> units =
      fusion::units_in_order(draft.graph, draft.fusion, options.overlaps);
  report.fusion_s = precise_now() - start;
  span.reset();
  place_inputs(draft);
  if (!place_outputs(draft)) return nullptr;
  draft.steps.reserve(units.size());
  for (const fusion::Unit& unit : units) {
    if (!add_steps(draft, unit)) return nullptr;
  }
  if (options.packs) pack_operands(draft);
  accept_donations(draft);
  if (options.joins) join_launches(draft);
  if (draft.out.has_ordered && options.overlaps) let_go_on(draft);
  share_places(draft);
  place_temporaries(draft);
  place_numbers(draft);
  note_addresses(draft);
  finish_steps(draft);
  sum_up_memory(draft);
  draft.out.described = std::make_shared<const profiling::Steps>(
      profiling::Steps{report.steps, options.places, device.device(), options.threads});
  draft.out.graph = std::move(draft.graph);
  const auto program = std::make_shared<Program>(std::move(draft.out));
  let_replay(*program, options.replays, report);
  return program;
}

std::size_t bytes_of(const Spec& spec) {
  return static_cast<std::size_t>(element_count(spec.shape)) * size_of(spec.dtype);
}

uint64_t bits_of(const Scalar& scalar, DType dtype) {
  if (dtype == f64) return std::bit_cast<uint64_t>(scalar.to_double());
  if (dtype == boolean) return scalar.to_integer() != 0 ? 1 : 0;
  return dtype == u64 ? scalar.bits() : static_cast<uint64_t>(scalar.to_integer());
}

}  // namespace nitinol::program
