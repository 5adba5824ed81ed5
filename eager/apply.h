// apply: the one funnel that every operation goes through.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <initializer_list>
#include <vector>

namespace nitinol {

/// The result of `op`: infers its spec, asks the thread's interpreter, and has autograd note what
/// it needs (core/interpreter.h). Composite ops are expanded. Throws what Op::infer and the
/// interpreter throw, with the place in the user's code.
[[nodiscard]] Tensor apply(const Op& op, Inputs inputs, const Attrs& attrs = {});
[[nodiscard]] Tensor apply(const Op& op, std::initializer_list<const Tensor*> inputs,
                           const Attrs& attrs = {});

/// What a gradient rule, written as `expand`, makes of the inputs: as one kernel, as composite ops
/// are, if no trace and no tape is to see its ops, and no NaN is looked for in what they give.
[[nodiscard]] Tensor apply_at_once(Expand expand, Inputs inputs, const Attrs& attrs = {});
/// Whether it would be one kernel. If not, a rule may share what it computes for several inputs
/// (GradientCall::kept).
[[nodiscard]] bool runs_at_once(Inputs inputs);

using GradientRule = Tensor (*)(const GradientCall&, int);
/// The rule for input k of an application whose inputs, result (if the rule looks at it) and
/// gradient are the operands, one after another.
[[nodiscard]] Tensor apply_rule(GradientRule rule, bool looks_at_result, int k, Inputs operands,
                                const Attrs& attrs);

/// The results of an op of several.
[[nodiscard]] std::vector<Tensor> apply_all(const Op& op, Inputs inputs, const Attrs& attrs = {});

/// The op on both arguments as their common dtype (eager/promotion.h).
[[nodiscard]] Tensor apply_binary(const Op& op, const Argument& a, const Argument& b);

}  // namespace nitinol
