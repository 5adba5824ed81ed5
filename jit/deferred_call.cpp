#include "jit/deferred_call.h"

#include "core/interpreter.h"
#include "eager/all_ops.h"
#include "jit/op_by_op.h"
#include "jit/passes/rewrite.h"
#include "program/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace nitinol::jit {
namespace {

/// The op that fails, and with what.
struct Failure {
  Value value;
  Error error;
};

/// The Variable's value when all calls that have assigned it are known, and those that failed have
/// given back what it held: they may follow the one whose error is looked for.
Tensor known_value(const Variable& variable) {
  constexpr int most_tries = 1000;  // other threads may go on assigning it
  VariableCell& cell = variable.cell();
  for (int tries = 0; tries < most_tries; ++tries) {
    Handle<DeferredCheck> check;
    {
      const std::lock_guard lock(cell.mutex);
      check = check_of(cell.value);
      if (!check) check = cell.check;
      if (!check || check->state() == DeferredCheck::State::passed) return cell.value;
    }
    check->wait();
  }
  return {};
}

Tensor input_of(const Deferral& call, const tracer::TraceInput& input, const Spec& spec) {
  const auto leaf = static_cast<std::size_t>(std::max(input.leaf, 0));
  switch (input.kind) {
    case tracer::TraceInput::Kind::tensor:
      return call.tensors[leaf];
    case tracer::TraceInput::Kind::scalar:
      return make_number(spec, program::bits_of(call.scalars[leaf], spec.dtype));
    case tracer::TraceInput::Kind::variable: {
      const Variable& variable = input.leaf >= 0 ? call.variables[leaf] : input.captured;
      return known_value(input.is_gradient ? *variable.cell().gradient : variable);
    }
    case tracer::TraceInput::Kind::seed:
      break;
  }
  return {};
}

/// Runs what the checks of the call need, op by op, until one fails.
std::optional<Failure> first_failure(const Deferral& call) {
  const tracer::Trace& trace = *call.trace;
  const Graph& graph = trace.graph;
  const std::size_t count = trace.backward ? trace.backward->first : graph.nodes.size();
  std::vector<bool> is_needed = that_may_fail(graph, count);
  mark_operands(graph, is_needed);
  OpByOp run(graph, count);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value v = graph.inputs[i];
    if (v < count && is_needed[v]) run.set(v, input_of(call, trace.inputs[i], graph[v].spec));
  }
  const InterpreterScope scope(base_interpreter());
  for (Value v = 0; v < count; ++v) {
    const Node& node = graph[v];
    if (!is_needed[v] || node.kind == Node::Kind::input) continue;
    try {
      run.compute(v);
    } catch (const Error& error) {
      if (has_effect(node) && node.op->effect == Effect::may_fail) return Failure{v, error};
      throw;
    }
  }
  return std::nullopt;
}

const char* words_of(Status::Code code) {
  switch (code) {
    case Status::index_out_of_range:
      return "an index is out of range";
    case Status::division_by_zero:
      return "an integer is divided by zero";
    case Status::number_out_of_range:
      return "a number is out of range";
    case Status::ok:
      break;
  }
  return "a check failed";
}

/// What the user applied: a number is looked at by an op of its own before it meets a tensor.
std::string asked_by(const Graph& graph, Value failed, const std::string& where) {
  if (graph[failed].op != &ops::check_fits()) return where;
  for (Value v = failed + 1; v < graph.nodes.size(); ++v) {
    const Node& node = graph[v];
    if (node.op != nullptr && std::ranges::count(node.inputs, failed) > 0)
      return std::string(node.op->name);
  }
  return where;
}

std::string at(const std::string& place) {
  return place.empty() ? "" : " at " + place;
}

}  // namespace

DeferredCall::DeferredCall(Backend& device, Handle<DeferredCheck> followed, Deferral made_with)
    : DeferredCheck(device, std::move(followed)), made_with_(std::move(made_with)) {}

void DeferredCall::note_assigned(const Variable& variable, const Tensor& before,
                                 Handle<DeferredCheck> earlier) {
  VariableCell& cell = variable.cell();
  const auto memory_of = [](const Tensor& tensor) {
    return tensor.is_defined() ? tensor.internals().storage.get() : nullptr;
  };
  const bool is_in_place =
      memory_of(before) != nullptr && memory_of(before) == memory_of(cell.value);
  // A handle of a buffer that is lent would keep it from being lent to the next call.
  assigned_.push_back({variable, is_in_place ? Tensor() : before, is_in_place, std::move(earlier)});
  cell.check = Handle<DeferredCheck>(this);
}

void DeferredCall::discard() noexcept {
  for (const Assigned& assigned : assigned_) give_back(assigned.variable);
  made_with_.failures->fetch_add(is_cause() ? 1 : 0, std::memory_order_relaxed);
}

/// Unless it has been assigned since by who does not follow this call.
void DeferredCall::give_back(const Variable& variable) noexcept {
  const auto found = std::ranges::find(assigned_, variable, &Assigned::variable);
  if (found == assigned_.end()) return;
  VariableCell& cell = variable.cell();
  Tensor old = found->before;
  Handle<DeferredCheck> earlier = found->earlier, mine;
  if (earlier && earlier->state() == State::passed) earlier.reset();
  {
    const std::lock_guard lock(cell.mutex);
    if (cell.check.get() != this) return;
    mine = std::move(cell.check);
    if (found->is_in_place) {
      replace_mark(*cell.value.internals().storage, *this, earlier.get());
    } else {
      cell.swap_value(old);
    }
    cell.check = earlier;
  }
  // It may have been discarded before this call, which followed it, had assigned the Variable.
  if (earlier && earlier->state() == State::failed)
    static_cast<DeferredCall&>(*earlier).give_back(variable);
}

Error DeferredCall::error(Status::Code code, int followed_by) {
  std::unique_lock lock(mutex_);
  const Deferral call = made_with_;
  lock.unlock();
  std::optional<Failure> failure;
  if (call.trace) {
    try {
      failure = first_failure(call);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): no memory to run it again
    }
  }
  ErrorReport report = {.where = call.function, .what = words_of(code)};
  ErrorKind kind = ErrorKind::value;
  std::string op;
  if (failure) {
    kind = failure->error.kind();
    report = failure->error.report();
    const Node& node = call.trace->graph[failure->value];
    report.where = asked_by(call.trace->graph, failure->value, report.where);
    op = fmt::format(", which does {}{},", node.op->name, at(call.trace->place_of(node.origin)));
  }
  std::string late =
      fmt::format("Found when the call of `{}`{}{} had returned. It has changed nothing",
                  call.function, at(call.site.text()), op);
  if (followed_by > 0) {
    late += fmt::format(
        ", nor {} after it that {} what it gives",
        followed_by == 1 ? "has the call" : fmt::format("have the {} calls", followed_by),
        followed_by == 1 ? "takes" : "take");
  }
  late += '.';
  report.fix += (report.fix.empty() ? "" : "\n") + late;
  return Error(kind, std::move(report));
}

void DeferredCall::let_go() noexcept {
  Deferral arguments;  // destroyed after the lock
  std::vector<Assigned> assigned;
  const std::lock_guard lock(mutex_);
  arguments.tensors.swap(made_with_.tensors);
  arguments.variables.swap(made_with_.variables);
  arguments.scalars.swap(made_with_.scalars);
  arguments.trace.swap(made_with_.trace);  // without it there is nothing to run again
  if (state() == State::passed) assigned.swap(assigned_);
}

}  // namespace nitinol::jit
