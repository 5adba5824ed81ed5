// Example: softmax of x[n, m] expands to exp(x - max) / sum of that: five ops, one group, a Program
// of one step.
//
// Each thread remembers the calls that it has seen in a small direct-mapped table, by all that a
// kernel and its launch depend on. A call that comes once costs a look at the table; generating
// code takes some milliseconds, once for all layouts that share a kernel (core/executables.h).
#include "eager/composite.h"

#include "core/backend.h"
#include "core/hash.h"
#include "core/interpreter.h"
#include "core/parallel.h"
#include "eager/at_hand.h"
#include "program/running.h"
#include "tracer/recorder.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace nitinol::eager {
namespace {

/// An operand but for its address. Of a number: its value, too, which becomes part of the Program.
struct Layout {
  explicit Layout(const TensorData& data)
      : spec(data.spec), strides(data.strides), is_number(data.is_number()), number(data.number) {}
  Spec spec;
  Strides strides;
  bool is_number;
  uint64_t number;

  [[nodiscard]] bool is(const TensorData& data) const {
    return strides == data.strides && spec == data.spec && number == data.number &&
           is_number == data.is_number();
  }
};

/// All that calls may differ in but addresses.
struct Call {
  Expand expand = nullptr;
  int threads = 1;
  Attrs attrs = {};
  std::vector<Layout> inputs = {};

  [[nodiscard]] bool is(Expand given, Inputs tensors, const Attrs& with) const {
    const auto matches = [](const Layout& layout, const Tensor* tensor) {
      return layout.is(tensor->internals());
    };
    return expand == given && threads == num_threads() &&
           std::ranges::equal(inputs, tensors, matches) && attrs == with;
  }
};

struct Entry {
  Call call;
  bool is_known = false;                                      ///< whether a Program can do it
  std::shared_ptr<const program::Program> program = nullptr;  ///< of one output; null: none can
};

/// The entry of a call in the thread's table, or null if it cannot be fused: numbers alone have no
/// memory, and of nothing there is nothing to compute.
Entry* entry_of(Expand expand, Inputs inputs) {
  Hash hash;
  hash.add(reinterpret_cast<uintptr_t>(expand));
  bool has_tensor = false;
  for (const Tensor* input : inputs) {
    const TensorData& data = input->internals();
    hash.add(data.spec.dtype);
    if (data.is_number()) {
      hash.add(data.number);
      continue;
    }
    if (data.spec.is_weak || element_count(data.spec.shape) == 0) return nullptr;
    hash.add_all(data.spec.shape);
    has_tensor = true;
  }
  return has_tensor ? AtHand<Entry, 256>::find(hash.result()) : nullptr;
}

/// The graph, of one output, as a Program; null if it does more than compute that from its inputs.
std::shared_ptr<const program::Program> program_of(Graph graph, Backend& device) {
  using Kind = program::Place::Kind;
  program::Report unread;
  std::shared_ptr<const program::Program> program = program::make_program(
      std::move(graph), device, {.threads = num_threads(), .packs = false}, unread);
  if (!program || program->can_fail || program->has_ordered || !program->numbers_in_memory.empty())
    return nullptr;
  const auto is_read_constant = [&](Value v) { return program->places[v].kind == Kind::constant; };
  const auto reads_constant = [&](const program::ProgramStep& step) {
    return std::ranges::any_of(step.reads, is_read_constant);
  };
  if (std::ranges::any_of(program->steps, reads_constant)) return nullptr;
  return program->places[program->outputs[0].base].kind == Kind::output ? program : nullptr;
}

Tensor run(const program::Program& program, Inputs inputs) {
  program::Running running(program);
  std::size_t next = 0;
  for (const Tensor* input : inputs) {
    const TensorData& data = input->internals();
    if (data.is_number()) continue;
    running.address(program.graph.inputs[next++]) = static_cast<std::byte*>(data.address());
  }
  running.allocate([](const program::OutputMemory&) { return Tensor(); });
  running.launch_safe({});  // all: nothing is donated
  const program::Output& output = program.outputs[0];
  Tensor whole = running.tensor_of(output.base);
  if (output.is_base) return whole;
  return make_tensor(output.spec, output.strides, output.offset, whole.internals().storage);
}

bool depends_on_operands_alone(const tracer::Trace& trace) {
  const auto is_operand = [](const tracer::TraceInput& input) {
    return input.kind == tracer::TraceInput::Kind::tensor;
  };
  return !trace.obstacle && trace.guards.empty() && trace.assigned.empty() &&
         trace.cleared.empty() && trace.empty.empty() &&
         std::ranges::all_of(trace.inputs, is_operand);
}

/// Runs the ops, and finds out whether a Program can do that.
Tensor learn(Expand expand, Inputs inputs, const Attrs& attrs, Entry& entry) {
  entry.is_known = true;
  std::vector<Tensor> stand_ins;  // whose places in the trace are nobody else's
  std::vector<const Tensor*> originals, operands;
  for (const Tensor* input : inputs) {
    if (input->internals().is_number()) continue;
    stand_ins.push_back(bare_copy(*input));
    originals.push_back(input);
  }
  Backend& device = backend(originals[0]->device());
  if (!device.can_generate_code()) return expand(inputs, attrs);
  std::size_t next = 0;
  for (const Tensor* input : inputs)
    operands.push_back(input->internals().is_number() ? input : &stand_ins[next++]);
  tracer::Recorder recorder;
  recorder.declare_arguments(stand_ins, {}, {});
  Tensor result;
  {
    const InterpreterScope scope(recorder);
    result = expand(operands, attrs);
  }
  const Tensor* const results[] = {&result};
  tracer::Trace trace = recorder.finish(results);
  recorder.commit();
  const auto is_result = [&](const Tensor& tensor) { return tensor.handle() == result.handle(); };
  const auto input = std::ranges::find_if(stand_ins, is_result);
  if (input != stand_ins.end())  // nothing was done
    return *originals[static_cast<std::size_t>(input - stand_ins.begin())];
  if (depends_on_operands_alone(trace)) entry.program = program_of(std::move(trace.graph), device);
  return result;
}

}  // namespace

Tensor run_composite(Expand expand, Inputs inputs, const Attrs& attrs) {
  Entry* const entry = entry_of(expand, inputs);
  if (entry == nullptr) return expand(inputs, attrs);
  if (entry->call.is(expand, inputs, attrs)) {
    if (entry->program) return run(*entry->program, inputs);
    return entry->is_known ? expand(inputs, attrs) : learn(expand, inputs, attrs, *entry);
  }
  *entry = {.call = {.expand = expand, .threads = num_threads(), .attrs = attrs}};
  for (const Tensor* input : inputs) entry->call.inputs.emplace_back(input->internals());
  return expand(inputs, attrs);
}

}  // namespace nitinol::eager
