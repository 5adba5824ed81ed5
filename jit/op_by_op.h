// A graph's values one by one, each by eager's own op: what a compiled call is compared with, and
// how it is found which op fails.
#pragma once

#include "core/graph.h"

#include <cstddef>
#include <span>
#include <vector>

namespace nitinol::jit {

class OpByOp {
 public:
  /// Of the graph's first `count` nodes. The graph must outlive it.
  OpByOp(const Graph& graph, std::size_t count) : graph_(graph), values_(count) {}

  /// What an input is.
  void set(Value v, Tensor value) { values_[v] = std::move(value); }
  /// Computes a node that is no input, whose operands are there. Throws what its op throws.
  void compute(Value v);
  [[nodiscard]] const Tensor& operator[](Value v) const { return values_[v]; }
  /// Lets go of a value.
  void drop(Value v) { values_[v] = {}; }
  [[nodiscard]] std::vector<Tensor> take() { return std::move(values_); }

 private:
  const Graph& graph_;
  std::vector<Tensor> values_;
  std::vector<Tensor> parts_;  ///< of the latest op of several results
};

/// The values of all nodes; undefined for those that have none.
[[nodiscard]] std::vector<Tensor> values_op_by_op(const Graph& graph,
                                                  std::span<const Tensor> inputs);
/// The outputs alone, without keeping the others for longer than they are needed.
[[nodiscard]] std::vector<Tensor> outputs_op_by_op(const Graph& graph,
                                                   std::span<const Tensor> inputs);

}  // namespace nitinol::jit
