// Experiment: a graph with its inputs, run as a Plan and op by op, and cut down to what is needed
// for a difference.
#pragma once

#include "core/graph.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nitinol::jit {

/// An output that may be stored where an input lies.
struct InPlace {
  std::size_t output = 0;
  std::size_t input = 0;
};

struct Experiment {
  Graph graph;
  std::vector<Tensor> inputs;     ///< one for each of the graph's
  std::vector<InPlace> in_place;  ///< of which a Variation may make use
};

/// How an Experiment is run.
struct Variation {
  std::vector<std::string> left_out;  ///< passes
  bool updates_in_place = false;
  int threads = 1;
  bool quick_code = false;
};

/// The first difference of two results, of one element, as a sentence: "element [3] is 1.5
/// (0x3fc00000) compiled and 1.25 (0x3fa00000) op by op; 2 of 10 differ". Nothing if they have the
/// same bits, where any NaN is any other.
[[nodiscard]] std::optional<std::string> first_difference(const Tensor& compiled,
                                                          const Tensor& op_by_op);

/// Of the outputs of an Experiment, the first that differs.
struct Difference {
  std::size_t output = 0;  ///< or their number: an Error that only one of both gives
  std::string text;
};
/// Runs both. Nothing also if no Plan can be made.
[[nodiscard]] std::optional<Difference> difference(const Experiment& experiment,
                                                   const Variation& variation);

/// What its Plan gives; nothing if none can be made, or a check fails.
[[nodiscard]] std::optional<std::vector<Tensor>> plan_outputs(const Experiment& experiment,
                                                              const Variation& variation);

/// What of the experiment `outputs` need, from the values that are `cut`, which become inputs with
/// `values`.
[[nodiscard]] Experiment part_of(const Experiment& experiment, std::span<const Tensor> values,
                                 const std::vector<bool>& cut, std::span<const Value> outputs);
/// The same on the device that interprets kernels, if it computes all of it by kernels.
[[nodiscard]] std::optional<Experiment> interpreted(const Experiment& experiment);

/// The tensor with these strides, in memory of spec.device; a number if the spec says so.
[[nodiscard]] Tensor laid_out(const Tensor& tensor, const Spec& spec, const Strides& strides);

/// "mul, add": what each step of its Plan does.
struct PlannedStep {
  std::string kind, ops;
};
[[nodiscard]] std::vector<PlannedStep> planned_steps(const Experiment& experiment,
                                                     const Variation& variation);

}  // namespace nitinol::jit
