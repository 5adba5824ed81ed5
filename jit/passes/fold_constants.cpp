// Folding runs the eager op, so that there is no second arithmetic that could differ.
//
// The limits keep kernels alike from one call to the next. Example: exp(arange(n)) with n taken
// from x.shape. If it were folded up to 64 elements, x of 60 and of 70 elements would need two
// kernels, one that reads a table and one that computes. So a result that an op made larger than
// its operands is not folded, unless its shape is that of a number (rank 0), which no argument's
// size can change.
#include "jit/passes/fold_constants.h"

#include "core/error.h"
#include "core/interpreter.h"

#include <utility>
#include <vector>

namespace nitinol::jit {
namespace {

constexpr int64_t largest_folded = 64;

bool is_folded(const Graph& graph, const Node& node) {
  const int64_t size = element_count(node.spec.shape);
  if (node.kind != Node::Kind::op || has_effect(node) || size > largest_folded) return false;
  int64_t operand_size = 0;
  for (const Value input : node.inputs) {
    if (graph[input].kind != Node::Kind::constant) return false;
    const int64_t input_size = element_count(graph[input].spec.shape);
    if (input_size > largest_folded) return false;
    operand_size += input_size;
  }
  switch (node.op->kind) {
    case OpKind::elementwise:
    case OpKind::reduce:
      return true;
    case OpKind::view:
      return size <= operand_size;
    case OpKind::create:
      return node.spec.shape.empty();
    case OpKind::index:
    case OpKind::library:  // results may depend on the thread count
    case OpKind::transfer:
    case OpKind::composite:  // recorded expanded
      return false;
  }
  return false;
}

}  // namespace

Graph fold_constants(Graph graph) {
  for (Node& node : graph.nodes) {
    if (!is_folded(graph, node)) continue;
    std::vector<const Tensor*> operands;
    for (const Value input : node.inputs) operands.push_back(&graph[input].constant);
    Tensor result;
    try {
      result = current().run(*node.op, operands, node.attrs, node.spec);
    } catch (const Error&) {
      continue;  // it will fail where eager does: at the call
    }
    if (result.spec() != node.spec) continue;
    Node folded;
    folded.kind = Node::Kind::constant;
    folded.spec = node.spec;
    folded.constant = std::move(result);
    node = std::move(folded);
  }
  return graph;
}

}  // namespace nitinol::jit
