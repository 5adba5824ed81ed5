// A temporary's place is free again after the last launch that reads it; each is put at the lowest
// free place that is large enough, in the order of definition.
#include "jit/temporaries.h"

#include "core/round_up.h"
#include "jit/arena.h"

#include <vector>

namespace nitinol::jit {
namespace {

constexpr std::size_t alignment = 64;

/// What launches define and use for the last time, each by its first step.
struct Lives {
  std::vector<std::vector<Value>> first, last;
};

/// Marks the temporaries, too.
Lives lives_of(PlanDraft& draft) {
  const std::size_t steps = draft.steps.size();
  Lives lives = {.first = std::vector<std::vector<Value>>(steps),
                 .last = std::vector<std::vector<Value>>(steps)};
  std::vector<Value> temporaries;
  std::vector<std::size_t> last_use(draft.impl.buffers.size(), 0);
  std::size_t launch = 0;
  for (std::size_t s = 0; s < steps; ++s) {
    if (s == launch + draft.steps[launch].plan.together) launch = s;
    for (const OperandPlan& operand : draft.steps[s].plan.operands) {
      if (operand.value < 0) continue;
      const auto v = static_cast<Value>(operand.value);
      last_use[v] = launch;
      if (draft.buffer(v).place != BufferPlan::Place::none) continue;
      draft.buffer(v).place = BufferPlan::Place::arena;
      lives.first[launch].push_back(v);
      temporaries.push_back(v);
    }
  }
  for (const Value v : temporaries) lives.last[last_use[v]].push_back(v);
  return lives;
}

}  // namespace

std::size_t bytes_of(const Spec& spec) {
  return static_cast<std::size_t>(element_count(spec.shape)) * size_of(spec.dtype);
}

void place_temporaries(PlanDraft& draft) {
  const Lives lives = lives_of(draft);
  const std::size_t nodes = draft.graph.nodes.size();
  const auto size = [&](Value v) {
    const std::size_t bytes =
        v < nodes ? bytes_of(draft.graph[v].spec) : draft.packed_bytes[v - nodes];
    return round_up(bytes, alignment);
  };
  Arena arena;
  for (std::size_t s = 0; s < draft.steps.size(); ++s) {
    for (const Value v : lives.first[s]) draft.buffer(v).offset = arena.place(size(v));
    for (const Value v : lives.last[s]) arena.free(draft.buffer(v).offset, size(v));
  }
  draft.impl.arena_bytes = arena.bytes();
}

}  // namespace nitinol::jit
