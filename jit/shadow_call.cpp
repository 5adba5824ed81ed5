#include "jit/shadow_call.h"

#include "core/error.h"
#include "core/parallel.h"
#include "core/unseen.h"
#include "eager/all_ops.h"
#include "eager/ops/cast.h"
#include "jit/op_by_op.h"
#include "jit/shadow.h"
#include "jit/shadow_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace nitinol::jit {
namespace {

/// The places of what may be stored over.
std::vector<InPlace> in_place_of(const tracer::Trace& trace) {
  std::vector<InPlace> pairs;
  const auto add = [&](std::size_t output, const auto& is_it) {
    const auto input = std::ranges::find_if(trace.inputs, is_it);
    if (input != trace.inputs.end())
      pairs.push_back({output, static_cast<std::size_t>(input - trace.inputs.begin())});
  };
  for (std::size_t i = 0; i < trace.assigned.size(); ++i) {
    add(trace.result_count + i,
        [&](const tracer::TraceInput& input) { return input == trace.assigned[i]; });
  }
  for (const tracer::Replacement& replacement : trace.replacements) {
    add(replacement.result, [&](const tracer::TraceInput& input) {
      return input.kind == tracer::TraceInput::Kind::tensor && input.leaf == replacement.leaf;
    });
  }
  return pairs;
}

/// What output number `i` is to the user.
std::string name_of_output(const tracer::Trace& trace, std::size_t i) {
  if (i >= trace.result_count)
    return fmt::format("the new value of Variable {}", i - trace.result_count + 1);
  return trace.result_count == 1 ? "the result" : fmt::format("result {}", i + 1);
}

/// Where the user applied what is left of the graph: "net.cpp:12, net.cpp:14".
std::string places_of(const Graph& graph, const tracer::Trace& trace) {
  std::vector<std::string> places;
  for (const Node& node : graph.nodes) {
    std::string place = trace.place_of(node.origin);
    if (!place.empty() && std::ranges::find(places, place) == places.end())
      places.push_back(std::move(place));
  }
  constexpr std::size_t most = 5;
  places.resize(std::min(places.size(), most));
  return fmt::format("{}", fmt::join(places, ", "));
}

std::string text_of(const Finding& finding, const tracer::Trace& trace,
                    const std::string& function) {
  std::string text = fmt::format("The cause: {}.", finding.cause);
  const std::string graph = to_string(finding.smallest.graph);
  constexpr std::size_t readable = 600;
  if (finding.is_repeated && graph.size() <= readable) {
    const std::string places = places_of(finding.smallest.graph, trace);
    text += fmt::format("\nThe smallest graph that shows it{}:\n{}",
                        places.empty() ? "" : ", of " + places, graph);
  }
  try {
    text += fmt::format(
        "\nPlease report it with {}, where repro.cpp is a program that shows it.\n"
        "Until then: .eager(), or NITINOL_COMPILE=0. Nothing has been assigned.",
        write_repro(finding, function));
  } catch (const Error& error) {
    text += fmt::format("\nNo program that shows it could be written: {}", error.message());
  }
  return text;
}

}  // namespace

Shadow::Shadow(const tracer::Trace& trace, const Plan::Options& options)
    : trace_(trace), options_(options), in_place_(in_place_of(trace)) {}

std::string Shadow::look_for_cause(std::vector<Tensor> inputs) const {
  const Unseen unseen;
  const Variation variation = {.left_out = {},
                               .updates_in_place = !in_place_.empty(),
                               .threads = options_.threads,
                               .quick_code = options_.quick_code};
  try {
    const Finding finding = find_cause({trace_.graph, std::move(inputs), in_place_}, variation);
    return text_of(finding, trace_, options_.name);
  } catch (const std::exception& error) {  // no memory for the search
    return fmt::format("The cause was not found: {}", error.what());
  }
}

void Shadow::fail(const std::string& what, std::vector<Tensor> inputs) const {
  const std::lock_guard lock(mutex_);
  if (found_.empty()) found_ = look_for_cause(std::move(inputs));
  throw Error(ErrorKind::internal, {.where = options_.name.empty() ? "Plan" : options_.name,
                                    .what = what,
                                    .expected = "the same bits compiled and op by op",
                                    .got = "others, by a mistake of this library",
                                    .fix = found_});
}

ShadowCall::ShadowCall(const Shadow& shadow, std::vector<Tensor> inputs)
    : shadow_(shadow), inputs_(std::move(inputs)) {
  const Unseen unseen;
  try {
    outputs_ = outputs_op_by_op(shadow.trace().graph, inputs_);
  } catch (const Error& error) {
    failure_ = error.message();
  }
}

void ShadowCall::expect(std::span<const Tensor> outputs) const {
  if (!failure_.empty())
    shadow_.fail("a compiled call in which no check fails, but op by op: " + failure_, inputs_);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::optional<std::string> difference;
    {
      const Unseen unseen;
      difference = first_difference(outputs[i], outputs_[i]);
    }
    if (!difference) continue;
    shadow_.fail(fmt::format("a compiled call: of {}, {}, {}", name_of_output(shadow_.trace(), i),
                             describe(outputs_[i].spec()), *difference),
                 inputs_);
  }
}

void ShadowCall::expect_failure() const {
  if (failure_.empty())
    shadow_.fail("a compiled call in which a check fails, and none op by op", inputs_);
}

}  // namespace nitinol::jit

namespace nitinol {

std::string shadow_difference(std::string_view graph, std::span<const Tensor> inputs) {
  jit::Experiment experiment = {.graph = parse(graph, all_ops()), .inputs = {}, .in_place = {}};
  const std::vector<Value>& expected = experiment.graph.inputs;
  const auto refuse = [](std::string what, std::string wanted, std::string got) {
    throw Error(ErrorKind::value, {.where = "shadow_difference",
                                   .what = std::move(what),
                                   .expected = std::move(wanted),
                                   .got = std::move(got)});
  };
  if (inputs.size() != expected.size()) {
    refuse("the inputs", fmt::format("{}, as the graph has", expected.size()),
           std::to_string(inputs.size()));
  }
  const Unseen unseen;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Node& node = experiment.graph[expected[i]];
    const bool is_stand_in =
        node.spec.dtype == bf16 && inputs[i].is_defined() && inputs[i].dtype() == f32;
    if (!inputs[i].is_defined() || inputs[i].shape() != node.spec.shape ||
        (inputs[i].dtype() != node.spec.dtype && !is_stand_in)) {
      refuse(fmt::format("input {}", i), describe(node.spec),
             inputs[i].is_defined() ? describe(inputs[i].spec()) : "an undefined tensor");
    }
    Tensor input = is_stand_in ? cast(inputs[i], bf16) : inputs[i];
    experiment.inputs.push_back(jit::laid_out(input, node.spec, node.strides));
  }
  const std::optional<jit::Difference> found =
      jit::difference(experiment, {.left_out = {}, .threads = num_threads()});
  return found ? fmt::format("output {}: {}", found->output, found->text) : "";
}

}  // namespace nitinol
