// Graph: the IR, a list of op applications in the order they were made (SSA).
//
// Text form, one statement per node, which parses back:
//   x: f32[4, 3] = input; c: f32[] = constant 0.5; y: f32[4, 3] = mul x c; s: f32[4] = sum y
//   axes=[1] keepdims=false; return s
//
// An op of several results is followed by its parts: t: f32[3] = top x; u: f32[3] = part t 0;
//   v: i64[3] = part t 1
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// Number of the node that makes a value.
using Value = uint32_t;

/// Of what nobody has applied.
inline constexpr uint32_t no_origin = UINT32_MAX;

/// An input, a constant, the application of an op to earlier values, or a result of such.
struct Node {
  enum class Kind : uint8_t {
    input,
    constant,
    op,
    part,  ///< the result number attrs[0] of inputs[0], an op of several results
  };
  Kind kind = Kind::op;
  const Op* op = nullptr;  ///< Kind::op only
  std::vector<Value> inputs;
  Attrs attrs;
  Spec spec;        ///< of an op of several results: that of the first
  Strides strides;  ///< Kind::input: the layout of the argument
  Tensor constant;  ///< Kind::constant
  /// Where the user's code applied the op that this comes from: a number of the Trace's places.
  /// Rewriting keeps it; it is no part of what the graph says, nor of its text.
  uint32_t origin = no_origin;
  /// Which repetition of a function this is part of, 0 for none: what checkpoint() computes again
  /// is not what it has computed, which would have to be kept. No part of the text, either.
  uint32_t repetition = 0;
};

/// Invariants: see verify().
struct Graph {
  std::vector<Node> nodes;
  std::vector<Value> inputs;   ///< nodes of Kind::input, in the order in which arguments are given
  std::vector<Value> outputs;  ///< results, then the new values of Variables; repetitions allowed

  [[nodiscard]] const Node& operator[](Value value) const { return nodes[value]; }
};

/// Whether the node is a view of its operand.
[[nodiscard]] inline bool is_view(const Node& node) {
  return node.kind == Node::Kind::op && node.op->kind == OpKind::view;
}
/// Whether the node is an op that does more than compute.
[[nodiscard]] inline bool has_effect(const Node& node) {
  return node.kind == Node::Kind::op && node.op->effect != Effect::none;
}
/// Whether the node is an op whose results are its parts, the nodes that follow it; it has no value
/// itself.
[[nodiscard]] inline bool has_parts(const Node& node) {
  return node.op != nullptr && node.op->infer_all != nullptr;
}
/// The parts of node `v`; none if it has none.
[[nodiscard]] std::span<const Node> parts_of(const Graph& graph, Value v);

/// The graph as text. Constants of more than 16 elements print as `constant @hash`, which does not
/// parse back.
[[nodiscard]] std::string to_string(const Graph& graph);
/// That text with one statement a line, which parses back, too.
[[nodiscard]] std::string by_lines(std::string graph_text);
/// Nodes that to_dot() draws in one box.
struct GraphCluster {
  std::string label;
  std::vector<Value> nodes;  ///< the first cluster that names a node has it
};
/// The graph in the language of Graphviz, whose `dot -Tsvg` draws it.
[[nodiscard]] std::string to_dot(const Graph& graph, std::span<const GraphCluster> clusters = {});
/// The graph that prints as `text`. `ops` is the vocabulary. Throws Error(value) with line and
/// column.
[[nodiscard]] Graph parse(std::string_view text, std::span<const Op* const> ops);
/// Throws Error(internal) naming `stage` unless every invariant holds; the comment of graph.cpp
/// lists them.
void verify(const Graph& graph, std::string_view stage);
/// The device that all values but numbers lie on; the host if there are none.
[[nodiscard]] Device device_of(const Graph& graph);
/// Whether it has ops that are ordered (Op::effect).
[[nodiscard]] bool has_ordered(const Graph& graph);
/// How often each value is used, as an operand or as an output.
[[nodiscard]] std::vector<int> use_counts(const Graph& graph);

}  // namespace nitinol

#pragma GCC visibility pop
