// What lies there must not be read after the step that stores over it, nor be an output; and all
// that can fail must come before, since a run that fails has changed nothing. A kernel may read the
// very elements that it writes.
#include "program/in_place.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace nitinol::program {
namespace {

/// What is asked about each donation, found once for all.
struct Uses {
  static constexpr std::size_t never = SIZE_MAX;

  std::vector<int> outputs;              ///< per value: how many outputs it is
  std::vector<int> base_of_outputs;      ///< per value: how many are it or a view of it
  std::vector<std::size_t> first, last;  ///< per value: the steps that touch it
  std::size_t last_failing = never;      ///< the last step that may fail
  std::size_t last_acting = never;       ///< the last with an effect: what is ordered may throw
};

Uses uses_of(const ProgramDraft& draft) {
  const std::size_t count = draft.out.places.size();
  Uses uses = {.outputs = std::vector<int>(count, 0),
               .base_of_outputs = std::vector<int>(count, 0),
               .first = std::vector<std::size_t>(count, Uses::never),
               .last = std::vector<std::size_t>(count, 0)};
  for (const Value output : draft.graph.outputs) {
    ++uses.outputs[output];
    ++uses.base_of_outputs[draft.fusion.bases[output]];
  }
  for (std::size_t s = 0; s < draft.steps.size(); ++s) {
    const ProgramStep& step = draft.steps[s].out;
    if (step.effect == Effect::may_fail) uses.last_failing = s;
    if (step.effect != Effect::none) uses.last_acting = s;
    for (const std::vector<Value>* touched : {&step.reads, &step.writes}) {
      for (const Value v : *touched) {
        uses.first[v] = std::min(uses.first[v], s);
        uses.last[v] = s;
      }
    }
  }
  return uses;
}

/// The first operand of the step that is in the memory of `value`.
std::size_t operand_of(const ProgramStep& step, Value value) {
  const auto found =
      std::ranges::find(step.operands, static_cast<int64_t>(value), &StepOperand::value);
  return static_cast<std::size_t>(found - step.operands.begin());
}

bool reads(const ProgramStep& step, Value value) {
  return std::ranges::find(step.reads, value) != step.reads.end();
}

/// True if every read of `input` in the step is of the very element being written: one pass, the
/// same strides. A reduction may read it again after it has stored.
bool reads_where_it_writes(const StepDraft& draft, Value input, std::size_t written) {
  const ProgramStep& step = draft.out;
  const bool is_one_pass = draft.kernel && draft.kernel->order == Order::none;
  if (!is_one_pass || step.operands[written].byte_offset != 0) return false;
  const std::size_t rank = step.sizes.size();
  const auto strides = [&](std::size_t k) {
    return std::span(step.strides).subspan(k * rank, rank);
  };
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    if (step.operands[k].value != static_cast<int64_t>(input)) continue;
    if (step.operands[k].byte_offset != 0) return false;
    if (!std::ranges::equal(strides(k), strides(written))) return false;
  }
  // Along a reduced dimension the output does not move; then it is no elementwise update.
  return std::ranges::none_of(strides(written), [](int64_t s) { return s == 0; });
}

/// True if `input` is the first operand, from its start on, and no other one is in its memory.
bool is_first_alone(const ProgramStep& step, Value input) {
  const StepOperand& first = step.operands.front();
  return first.value == static_cast<int64_t>(input) && first.byte_offset == 0 &&
         std::ranges::count(step.operands, first.value, &StepOperand::value) == 1;
}

/// Whether the step, which is the first to write operand number `written`, may store it where
/// `input` lies.
bool may_overwrite(const Graph& graph, const Uses& uses, const StepDraft& step, std::size_t number,
                   std::size_t written, Value input) {
  const Node& node = graph[input];
  if (!is_contiguous(node.spec.shape, node.strides) || uses.base_of_outputs[input] > 0 ||
      uses.last[input] > number)
    return false;
  if (!reads(step.out, input)) return true;
  if (step.updates_first) return is_first_alone(step.out, input);
  return reads_where_it_writes(step, input, written);
}

/// What the step has to do if it stores where `input` lies. (A run may find that it must not.)
void note_in_place(const Graph& graph, Value input, StepDraft& step) {
  if (!reads(step.out, input)) return;
  if (step.updates_first) {
    step.report.bytes_read -= bytes_of(graph[input].spec);
    step.report.bytes_written = step.arriving_bytes;
  } else if (step.is_copy) {
    step.out.may_be_needless = true;
    step.report.bytes_read = step.report.bytes_written = 0;
  }
}

/// Whether a view is all of its base, in another shape.
bool is_whole(const Output& view, const Spec& base) {
  return view.offset == 0 && element_count(view.spec.shape) == element_count(base.shape) &&
         is_contiguous(view.spec.shape, view.strides);
}

/// Whether the output may be stored to the memory that is donated; kernels are told what may be the
/// same.
bool accept(ProgramDraft& draft, const Uses& uses, const Donation& donation) {
  const Output& output = draft.out.outputs[donation.output];
  // Several outputs of one value are one tensor: it can be in only one place.
  const bool is_alone = output.is_base ? uses.outputs[output.base] == 1
                                       : uses.base_of_outputs[output.base] == 1 &&
                                             is_whole(output, draft.graph[output.base].spec);
  if (!is_alone || draft.place(output.base).kind != Place::Kind::output ||
      uses.first[output.base] == Uses::never)
    return false;
  const std::size_t s = uses.first[output.base];
  if (uses.last_acting != Uses::never && uses.last_acting >= s) return false;
  const bool is_checked = uses.last_failing != Uses::never;
  StepDraft& step = draft.steps[s];
  // A gate holds back kernels alone.
  if (is_checked && draft.out.is_gated && !step.kernel) return false;
  if (donation.input < 0) return true;
  const Value input = draft.graph.inputs[static_cast<std::size_t>(donation.input)];
  const std::size_t written = operand_of(step.out, output.base);
  if (!may_overwrite(draft.graph, uses, step, s, written, input)) return false;
  note_in_place(draft.graph, input, step);
  if (step.kernel && reads(step.out, input))
    step.kernel->operands[written].alias = static_cast<int16_t>(operand_of(step.out, input));
  return true;
}

/// The values of which nobody but kernels knows where they lie, each at its time. What a step goes
/// on with beside others is none of them.
std::vector<bool> own_temporaries(const ProgramDraft& draft) {
  std::vector<bool> is_own(draft.graph.nodes.size());
  for (Value v = 0; v < is_own.size(); ++v)
    is_own[v] = draft.out.places[v].kind == Place::Kind::none;
  for (const StepDraft& step : draft.steps) {
    if (step.out.until == 0) continue;
    for (const std::vector<Value>* touched : {&step.out.reads, &step.out.writes}) {
      for (const Value v : *touched) {
        if (v < is_own.size()) is_own[v] = false;
      }
    }
  }
  return is_own;
}

/// What is smaller stays in the cache anyway, and a kernel in place is another kernel.
constexpr std::size_t least_shared = std::size_t{64} << 10;

/// Finds a place for each temporary that step `s`, launched alone, is the first to write.
void share_places_of(ProgramDraft& draft, const Uses& uses, const std::vector<bool>& is_own,
                     std::size_t s) {
  StepDraft& step = draft.steps[s];
  if (!step.kernel) return;
  std::vector<Value> taken;
  for (std::size_t k = 0; k < step.out.operands.size(); ++k) {
    Operand& operand = step.kernel->operands[k];
    const auto v = static_cast<Value>(step.out.operands[k].value);
    if (operand.role != Role::output || operand.alias >= 0 || !is_own[v] || uses.first[v] != s ||
        bytes_of(draft.graph[v].spec) < least_shared)
      continue;
    const auto is_free = [&](Value input) {
      return input < is_own.size() && is_own[input] && uses.last[input] == s &&
             uses.first[input] < s && std::ranges::find(taken, input) == taken.end() &&
             bytes_of(draft.graph[input].spec) == bytes_of(draft.graph[v].spec) &&
             reads_where_it_writes(step, input, k);
    };
    const auto found = std::ranges::find_if(step.out.reads, is_free);
    if (found == step.out.reads.end()) continue;
    taken.push_back(*found);
    operand.alias = static_cast<int16_t>(operand_of(step.out, *found));
    draft.place_of[v] = draft.place_of[*found];
  }
}

}  // namespace

void accept_donations(ProgramDraft& draft) {
  const std::vector<Donation>& donations = draft.options.donations;
  if (donations.empty()) return;
  const Uses uses = uses_of(draft);
  for (std::size_t d = 0; d < donations.size(); ++d) {
    if (!accept(draft, uses, donations[d])) continue;
    const Place& place = draft.place(draft.out.outputs[donations[d].output].base);
    draft.out.memory[static_cast<std::size_t>(place.index)].donation = static_cast<int>(d);
  }
  for (StepDraft& step : draft.steps) {
    std::vector<Value>& writes = step.out.writes;
    for (std::size_t k = writes.size(); k-- > 0;) {
      const Place& place = draft.place(writes[k]);
      if (place.kind != Place::Kind::output) continue;
      const int d = draft.out.memory[static_cast<std::size_t>(place.index)].donation;
      if (d < 0) continue;
      step.out.overwrites = true;
      const int input = donations[static_cast<std::size_t>(d)].input;
      if (input >= 0) writes.push_back(draft.graph.inputs[static_cast<std::size_t>(input)]);
    }
  }
}

void share_places(ProgramDraft& draft) {
  draft.place_of.resize(draft.out.places.size());
  std::iota(draft.place_of.begin(), draft.place_of.end(), Value{0});
  const Uses uses = uses_of(draft);
  const std::vector<bool> is_own = own_temporaries(draft);
  for (std::size_t s = 0; s < draft.steps.size(); s += draft.steps[s].out.together) {
    if (draft.steps[s].out.together == 1) share_places_of(draft, uses, is_own, s);
  }
}

}  // namespace nitinol::program
