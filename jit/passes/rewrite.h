// Rewriting: the walk that all passes share.
#pragma once

#include "core/function_ref.h"
#include "core/graph.h"

#include <optional>
#include <vector>

namespace nitinol::jit {

/// What a rule makes of one node: an earlier value of the new graph that stands for it, or nothing:
/// it is kept. `node` has its operands in the new graph's numbers and may be changed.
using Rule = FunctionRef<std::optional<Value>(Graph& out, Node& node)>;

/// Builds a graph node by node, in order; inputs and outputs stay what they are. `rule` is asked
/// about applications and constants: inputs are always kept, because their position is their
/// meaning.
[[nodiscard]] Graph rewrite(Graph in, Rule rule);

/// What makes node `v`, whose operands have their new numbers, superfluous: the earlier value that
/// stands for it (any, if nobody reads it), or nothing: it is kept, as number `next`.
using Dropping = FunctionRef<std::optional<Value>(const Graph& graph, Value v, Value next)>;

/// Leaves nodes out, within the graph's own memory; inputs and outputs stay what they are. `rule`
/// is asked about applications and constants.
[[nodiscard]] Graph drop(Graph graph, Dropping rule);

/// Per value of the first `count`: whether it is an op that may fail (Op::effect).
[[nodiscard]] std::vector<bool> that_may_fail(const Graph& graph, std::size_t count);
/// Marks, of the first is_marked.size() values, what those that are marked are computed from, and
/// the parts of an op that is.
void mark_operands(const Graph& graph, std::vector<bool>& is_marked);

/// Whether the node is an elementwise op that does nothing besides computing.
[[nodiscard]] bool is_elementwise(const Node& node);

/// The node of an op of one operand.
[[nodiscard]] Node applied(const Graph& graph, const Op& op, Value input, Attrs attrs = {});
/// Appends a node and returns its number.
Value append(Graph& graph, Node node);

}  // namespace nitinol::jit
