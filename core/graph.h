// Graph: the IR, a list of op applications in the order they were made (SSA).
//
// Text form, one statement per node, which parses back:
//   x: f32[4, 3] = input; c: f32[] = constant 0.5; y: f32[4, 3] = mul x c; s: f32[4] = sum y
//   axes=[1] keepdims=false; return s
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

/// An input, a constant, or the application of an op to earlier values.
struct Node {
  enum class Kind : uint8_t { input, constant, op };
  Kind kind = Kind::op;
  const Op* op = nullptr;  ///< Kind::op only
  std::vector<Value> inputs;
  Attrs attrs;
  Spec spec;
  Strides strides;  ///< Kind::input: the layout of the argument
  Tensor constant;  ///< Kind::constant
  /// Where the user's code applied the op that this comes from: a number of the Trace's places.
  /// Rewriting keeps it; it is no part of what the graph says, nor of its text.
  uint32_t origin = no_origin;
};

/// Invariants: see verify().
struct Graph {
  std::vector<Node> nodes;
  std::vector<Value> inputs;   ///< nodes of Kind::input, in the order in which arguments are given
  std::vector<Value> outputs;  ///< results, then the new values of Variables; repetitions allowed

  [[nodiscard]] const Node& operator[](Value value) const { return nodes[value]; }
};

/// The graph as text. Constants of more than 16 elements print as `constant @hash`, which does not
/// parse back.
[[nodiscard]] std::string to_string(const Graph& graph);
/// The graph that prints as `text`. `ops` is the vocabulary. Throws Error(value) with line and
/// column.
[[nodiscard]] Graph parse(std::string_view text, std::span<const Op* const> ops);
/// Throws Error(internal) naming `stage` unless every invariant holds; the comment of graph.cpp
/// lists them.
void verify(const Graph& graph, std::string_view stage);
/// The device that all values but numbers lie on; the host if there are none.
[[nodiscard]] Device device_of(const Graph& graph);
/// How often each value is used, as an operand or as an output.
[[nodiscard]] std::vector<int> use_counts(const Graph& graph);

}  // namespace nitinol

#pragma GCC visibility pop
