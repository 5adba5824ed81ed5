// Example: softmax of x[n, m] expands to exp(x - max) / sum of that: five ops, one group, one
// kernel.
//
// Each thread remembers the calls that it has seen in a small direct-mapped table, by all that a
// kernel and its launch depend on. A call that comes once costs a look at the table; generating
// code takes some milliseconds, once for all layouts that share a kernel (core/executables.h).
#include "eager/composite.h"

#include "core/backend.h"
#include "core/executables.h"
#include "core/hash.h"
#include "core/interpreter.h"
#include "core/kernel.h"
#include "core/library.h"
#include "core/parallel.h"
#include "core/short_array.h"
#include "eager/at_hand.h"
#include "fusion/lowering.h"
#include "fusion/units.h"
#include "tracer/recorder.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace nitinol::eager {
namespace {

struct Layout {
  Spec spec;
  Strides strides;
};

/// All that calls may differ in but addresses.
struct Call {
  const Op* op = nullptr;
  Attrs attrs = {};
  std::vector<Layout> inputs = {};

  [[nodiscard]] bool is(const Op& given, Inputs tensors, const Attrs& with) const {
    const auto matches = [](const Layout& layout, const Tensor* tensor) {
      const TensorData& data = tensor->internals();
      return layout.strides == data.strides && layout.spec == data.spec;
    };
    return op == &given && std::ranges::equal(inputs, tensors, matches) && attrs == with;
  }
};

/// Where an operand's elements are.
struct Place {
  enum class Kind : uint8_t { nowhere, input, memory };
  Kind kind = Kind::nowhere;
  std::size_t index = 0;  ///< of the inputs, or of Fused::memory
  int64_t byte_offset = 0;
};

/// One kernel, with what it is launched with.
struct Step {
  fusion::Lowered lowered;
  std::vector<Place> places;      ///< per operand
  std::vector<uint64_t> scalars;  ///< per operand
  std::shared_ptr<const Executable> executable;
};

/// A composite op as launches of kernels.
struct Fused {
  std::vector<Step> steps;
  std::vector<Spec> memory;       ///< what they store; the result is part of
  std::size_t result_memory = 0;  ///< this one, where it lies so:
  Spec result;
  fusion::Access access;
};

struct Entry {
  Call call;
  bool is_known = false;  ///< whether kernels can do it
  std::unique_ptr<const Fused> fused = nullptr;
};

std::size_t hash_of(const Op& op, Inputs inputs) {
  Hash hash;
  hash.add(reinterpret_cast<uintptr_t>(&op));
  for (const Tensor* input : inputs) {
    hash.add(input->dtype());
    hash.add_all(input->shape());
  }
  return hash.result();
}

/// The memory that `base`, which a kernel makes, is stored to.
std::size_t memory_of(const Graph& graph, Value base, std::vector<Value>& stored, Fused& fused) {
  const auto known = std::ranges::find(stored, base);
  if (known != stored.end()) return static_cast<std::size_t>(known - stored.begin());
  stored.push_back(base);
  fused.memory.push_back(graph[base].spec);
  return stored.size() - 1;
}

/// Adds the launch of `group`. `stored` are the values of fused.memory. False if it reads what no
/// kernel makes.
bool add_step(const Graph& graph, fusion::Lowered lowered, std::vector<Value>& stored,
              Fused& fused) {
  Step step = {.lowered = std::move(lowered), .places = {}, .scalars = {}, .executable = nullptr};
  for (std::size_t k = 0; k < step.lowered.origins.size(); ++k) {
    const fusion::OperandOrigin& origin = step.lowered.origins[k];
    const DType dtype = step.lowered.kernel.operands[k].dtype;
    Place place = {.byte_offset = origin.offset * static_cast<int64_t>(size_of(dtype))};
    if (origin.kind == fusion::OperandOrigin::Kind::memory) {
      const auto input = std::ranges::find(graph.inputs, origin.value);
      const bool is_input = input != graph.inputs.end();
      if (!is_input && graph[origin.value].kind != Node::Kind::op) return false;
      place.kind = is_input ? Place::Kind::input : Place::Kind::memory;
      place.index = is_input ? static_cast<std::size_t>(input - graph.inputs.begin())
                             : memory_of(graph, origin.value, stored, fused);
    }
    step.places.push_back(place);
    step.scalars.push_back(origin.bits);
  }
  fused.steps.push_back(std::move(step));
  return true;
}

/// The graph, of one output, as launches; null if kernels alone cannot do it.
std::unique_ptr<const Fused> fuse(const Graph& graph, Backend& device) {
  const fusion::Fusion fusion = fusion::fuse(graph);
  auto fused = std::make_unique<Fused>();
  std::vector<Value> stored;
  for (const fusion::Unit& unit : fusion::units_in_order(graph, fusion)) {
    if (unit.group < 0) return nullptr;
    const fusion::Group& group = fusion.groups[static_cast<std::size_t>(unit.group)];
    if (!fusion::is_needed(graph, fusion, group)) continue;
    fusion::Lowered lowered = fusion::lower(graph, fusion, group, device.limits());
    if (has_checks(lowered.kernel)) return nullptr;
    if (!add_step(graph, std::move(lowered), stored, *fused)) return nullptr;
  }
  const Value output = graph.outputs[0], base = fusion.bases[output];
  const std::optional<fusion::Access> access = fusion::memory_access(graph, output);
  if (!access || fusion.group_of[base] < 0) return nullptr;
  fused->result_memory = memory_of(graph, base, stored, *fused);
  fused->result = graph[output].spec;
  fused->access = *access;
  for (Step& step : fused->steps) step.executable = executable_for(device, step.lowered.kernel);
  return fused;
}

void launch(const Step& step, Inputs inputs, std::span<const Tensor> memory) {
  ShortArray<void*, 16> buffers(step.places.size());
  for (std::size_t k = 0; k < step.places.size(); ++k) {
    const Place& place = step.places[k];
    if (place.kind == Place::Kind::nowhere) continue;
    const Tensor& tensor =
        place.kind == Place::Kind::memory ? memory[place.index] : *inputs[place.index];
    buffers[k] = static_cast<std::byte*>(tensor.internals().address()) + place.byte_offset;
  }
  step.executable->launch({.buffers = buffers.span(),
                           .sizes = step.lowered.sizes,
                           .strides = step.lowered.strides,
                           .offsets = step.lowered.offsets,
                           .scalars = step.scalars,
                           .threads = num_threads()});
}

Tensor launch(const Fused& fused, Inputs inputs) {
  ShortArray<Tensor, 4> memory(fused.memory.size());
  for (std::size_t i = 0; i < fused.memory.size(); ++i)
    memory[i] = allocate_tensor(fused.memory[i]);
  for (const Step& step : fused.steps) launch(step, inputs, memory.span());
  const Tensor& whole = memory[fused.result_memory];
  const fusion::Access& access = fused.access;
  if (fused.result.shape == whole.shape() && access.strides == whole.internals().strides)
    return whole;
  return make_tensor(fused.result, access.strides, access.offset, whole.internals().storage);
}

bool depends_on_operands_alone(const tracer::Trace& trace) {
  const auto is_operand = [](const tracer::TraceInput& input) {
    return input.kind == tracer::TraceInput::Kind::tensor;
  };
  return !trace.obstacle && trace.guards.empty() && trace.assigned.empty() &&
         trace.cleared.empty() && trace.empty.empty() &&
         std::ranges::all_of(trace.inputs, is_operand);
}

/// Runs what the op expands to, and finds out whether kernels alone can do that.
Tensor learn(const Op& op, Inputs inputs, const Attrs& attrs, Entry& entry) {
  entry.is_known = true;
  Backend& device = backend(inputs[0]->device());
  if (!device.can_generate_code()) return op.expand(inputs, attrs);
  std::vector<Tensor> stand_ins;  // whose places in the trace are nobody else's
  for (const Tensor* input : inputs) stand_ins.push_back(bare_copy(*input));
  std::vector<const Tensor*> operands;
  for (const Tensor& stand_in : stand_ins) operands.push_back(&stand_in);
  tracer::Recorder recorder;
  recorder.declare_arguments(stand_ins, {}, {});
  Tensor result;
  {
    const InterpreterScope scope(recorder);
    result = op.expand(operands, attrs);
  }
  const Tensor* const results[] = {&result};
  const tracer::Trace trace = recorder.finish(results);
  recorder.commit();
  const auto is_result = [&](const Tensor& tensor) { return tensor.handle() == result.handle(); };
  const auto input = std::ranges::find_if(stand_ins, is_result);
  if (input != stand_ins.end())  // nothing was done
    return *inputs[static_cast<std::size_t>(input - stand_ins.begin())];
  if (depends_on_operands_alone(trace)) entry.fused = fuse(trace.graph, device);
  return result;
}

/// Numbers have no memory, and of nothing there is nothing to compute.
bool may_be_fused(Inputs inputs) {
  return !inputs.empty() && std::ranges::all_of(inputs, [](const Tensor* input) {
    const TensorData& data = input->internals();
    return !data.is_number && !data.spec.is_weak && element_count(data.spec.shape) > 0;
  });
}

}  // namespace

Tensor run_composite(const Op& op, Inputs inputs, const Attrs& attrs) {
  Entry* const entry =
      may_be_fused(inputs) ? AtHand<Entry, 256>::find(hash_of(op, inputs)) : nullptr;
  if (entry == nullptr) return op.expand(inputs, attrs);
  if (entry->call.is(op, inputs, attrs)) {
    if (entry->fused) return launch(*entry->fused, inputs);
    return entry->is_known ? op.expand(inputs, attrs) : learn(op, inputs, attrs, *entry);
  }
  *entry = {.call = {.op = &op, .attrs = attrs}};
  for (const Tensor* input : inputs)
    entry->call.inputs.push_back({input->spec(), input->internals().strides});
  return op.expand(inputs, attrs);
}

}  // namespace nitinol::eager
