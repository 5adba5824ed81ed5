#include "autograd/custom.h"

#include "autograd/sweep.h"
#include "core/autocast.h"
#include "core/error.h"
#include "tracer/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace nitinol::autograd {
namespace {

/// Values of Variables as a function first read them.
using Reads = std::unordered_map<const VariableCell*, std::pair<Variable, Tensor>>;

/// What an op that is ordered (Op::effect) has given.
struct Acted {
  const Op* op = nullptr;
  std::vector<Tensor> results;
};

/// What a function did that is not done again when it is run again.
struct First {
  Reads reads;
  std::vector<Acted> acted;  ///< in order
  DType autocast = autocast_dtype();
};

std::vector<Tensor> bare_copies(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(bare_copy(tensor));
  return copies;
}

/// Notes that on the way.
class Noting final : public tracer::Transaction {
 public:
  explicit Noting(const char* name) { order(name, {}, false); }
  First first;
  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override {
    Tensor result = Transaction::run(op, inputs, attrs, spec);
    if (op.effect == Effect::ordered) first.acted.push_back({&op, {bare_copy(result)}});
    return result;
  }
  std::vector<Tensor> run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                              std::span<const Spec> specs) override {
    std::vector<Tensor> results = Transaction::run_all(op, inputs, attrs, specs);
    if (op.effect == Effect::ordered) first.acted.push_back({&op, bare_copies(results)});
    return results;
  }
  Tensor get(const Variable& variable) override {
    if (assigned(variable) != nullptr || is_local(variable)) return Transaction::get(variable);
    // What is not learned counts, draws or gathers: it will be assigned.
    if (!variable.tracks_gradient()) own(variable, true);
    Tensor value = Transaction::get(variable);
    first.reads.try_emplace(&variable.cell(), variable, value);
    return value;
  }
};

/// Reads what was noted, and gives what has acted; assignments are forgotten.
class Repeating final : public tracer::Transaction {
 public:
  explicit Repeating(const First& first) : first_(first) {}
  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override {
    if (op.effect == Effect::ordered) return next_of(op)[0];
    return Transaction::run(op, inputs, attrs, spec);
  }
  std::vector<Tensor> run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                              std::span<const Spec> specs) override {
    if (op.effect == Effect::ordered) return next_of(op);
    return Transaction::run_all(op, inputs, attrs, specs);
  }
  Tensor get(const Variable& variable) override {
    const auto found = first_.reads.find(&variable.cell());
    const bool is_first = assigned(variable) == nullptr && found != first_.reads.end();
    return is_first ? found->second.second : Transaction::get(variable);
  }

 private:
  std::vector<Tensor> next_of(const Op& op) {
    if (next_ == first_.acted.size() || first_.acted[next_].op != &op)
      throw_does_otherwise(fmt::format("did {} another time", op.name));
    return bare_copies(first_.acted[next_++].results);
  }

  const First& first_;
  std::size_t next_ = 0;  ///< of `acted`
};

/// A function of the user's, run again as it ran at first, with a tape. `builds_tape`: gradients of
/// it will be differentiated, which those of a Plan cannot be.
template <class F>
auto repeated(const First& first, bool builds_tape, F&& f) {
  Repeating repeating(first);
  const InterpreterScope scope(repeating);
  const tracer::ComputingScope computing;
  const EnabledScope enabled(true);
  const AutocastScope autocast(first.autocast);
  const DifferentiationScope depth(builds_tape ? 2 : 0);
  return f();
}

OfInputs<Handle<TensorSlot>> nodes_of(const std::vector<Tensor>& tensors) {
  OfInputs<Handle<TensorSlot>> nodes;
  for (const Tensor& tensor : tensors) nodes.push_back(tensor.internals().gradient);
  return nodes;
}

OfInputs<Spec> specs_of(const std::vector<Tensor>& tensors) {
  OfInputs<Spec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

/// A function that is run again to go back through it, and what it was run on.
struct Checkpoint {
  TensorFunction f;
  std::vector<Tensor> arguments;
  std::vector<Tensor> captured;  ///< tracked tensors that f closes over
  First first;

  [[nodiscard]] bool is_tracked() const {
    return !captured.empty() || reads_variables() ||
           std::ranges::any_of(arguments, &Tensor::tracks_gradient);
  }
  [[nodiscard]] bool reads_variables() const {
    return std::ranges::any_of(
        first.reads, [](const auto& read) { return read.second.first.tracks_gradient(); });
  }
  /// Arguments, then what is captured.
  [[nodiscard]] std::vector<Tensor> inputs() const {
    std::vector<Tensor> all = arguments;
    all.insert(all.end(), captured.begin(), captured.end());
    return all;
  }
  [[nodiscard]] std::vector<Contribution> back(const CustomCall& call) const;
};

std::vector<Contribution> Checkpoint::back(const CustomCall& call) const {
  const uint64_t first_node = next_sequence();
  const tracer::RepetitionScope repetition;
  // Arguments of its own: where f closes over a tensor that it is given, too, these are two inputs.
  Arguments leaves;
  std::vector<Tensor> given;
  std::vector<const Node*> ends;  // per input
  for (const Tensor& argument : arguments) {
    given.push_back(argument.tracks_gradient() ? leaves.add(argument) : argument);
    ends.push_back(node_of(given.back()));
  }
  for (const Tensor& tensor : captured) ends.push_back(node_of(tensor));
  const std::vector<Tensor> results = repeated(first, call.builds_tape, [&] { return f(given); });
  Sweep sweep({.keeps_tape = call.builds_tape,
               .builds_tape = call.builds_tape,
               .keeps_parts = true,
               .first = first_node});
  sweep.end_at(ends);
  {
    const EnabledScope enabled(call.builds_tape);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (call.gradients[i].is_defined() && results[i].tracks_gradient()) {
        sweep.add(results[i].internals().gradient, call.gradients[i]);
      }
    }
  }
  sweep.run();
  std::vector<Contribution> contributions;
  for (const Sweep::Part& part : sweep.parts()) {
    const auto end = std::ranges::find(ends, part.node);
    const std::size_t input =
        part.node == nullptr ? 0 : static_cast<std::size_t>(end - ends.begin());
    contributions.push_back({input, part.gradient, part.variable});
  }
  return contributions;
}

}  // namespace

std::vector<Tensor> checkpointed(const TensorFunction& f, const std::vector<Tensor>& arguments) {
  if (!is_enabled()) return f(arguments);
  Checkpoint checkpoint = {.f = f, .arguments = arguments, .captured = {}, .first = {}};
  std::vector<Tensor> bare;
  for (const Tensor& argument : arguments) bare.push_back(stop_gradient(argument));
  Noting noting("checkpoint");
  std::vector<Tensor> results;
  {
    const InterpreterScope scope(noting);
    CaptureScope captures;
    results = f(bare);
    for (const Tensor& result : results) captures.note(result);
    checkpoint.captured = captures.captured();
  }
  noting.commit();
  checkpoint.first = std::move(noting.first);
  if (!checkpoint.is_tracked()) return results;
  const std::vector<Tensor> inputs = checkpoint.inputs();
  Node* node = nullptr;
  const Handle<TensorSlot> handle = make_custom_node("checkpoint", node);
  node->inputs = nodes_of(inputs);
  node->input_specs = specs_of(inputs);
  node->output_count = static_cast<int>(results.size());
  node->custom->reads_variables = checkpoint.reads_variables();
  node->custom->rule = [checkpoint = std::move(checkpoint)](const CustomCall& call) {
    return checkpoint.back(call);
  };
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (is_floating(results[i].dtype())) results[i] = as_output(results[i], handle, i);
  }
  return results;
}

Tensor customized(const CustomFunction& f, const std::vector<Tensor>& arguments) {
  const bool is_tracked = std::ranges::any_of(arguments, &Tensor::tracks_gradient);
  if (!is_enabled() || !is_tracked) return f(arguments).first;
  Noting noting("custom_gradient");
  std::pair<Tensor, Pull> made;
  {
    const InterpreterScope scope(noting);
    const EnabledScope disabled(false);
    made = f(arguments);
  }
  noting.commit();
  Node* node = nullptr;
  const Handle<TensorSlot> handle = make_custom_node("custom_gradient", node);
  node->inputs = nodes_of(arguments);
  node->input_specs = specs_of(arguments);
  node->custom->rule = [f, arguments, pull = std::move(made.second),
                        first = std::move(noting.first)](const CustomCall& call) {
    // To be differentiated itself, the rule must see tensors that are tracked: f runs again.
    const Pull pulled =
        call.builds_tape ? repeated(first, true, [&] { return f(arguments).second; }) : pull;
    const std::vector<Tensor> gradients = pulled(call.gradients[0]);
    if (gradients.size() != arguments.size()) {
      throw Error(ErrorKind::value,
                  {.where = "custom_gradient",
                   .what = "the gradient rule does not fit its function",
                   .expected = fmt::format("{} gradients, one for each argument", arguments.size()),
                   .got = fmt::format("{}", gradients.size()),
                   .fix = "Return an undefined Tensor() for arguments without a gradient."});
    }
    std::vector<Contribution> contributions;
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      contributions.push_back({k, gradients[k], {}});
    }
    return contributions;
  };
  return is_floating(made.first.dtype()) ? as_output(made.first, handle, 0) : made.first;
}

}  // namespace nitinol::autograd
