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
#include "jit/passes/rewrite.h"

#include <algorithm>
#include <utility>

namespace nitinol::jit {
namespace {

constexpr int64_t largest_folded = 64;

bool is_folded(const Graph& graph, const Node& node) {
  const int64_t size = element_count(node.spec.shape);
  if (node.kind != Node::Kind::op || node.op->has_checks || size > largest_folded) return false;
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
    case OpKind::library:    // results may depend on the thread count
    case OpKind::composite:  // recorded expanded
      return false;
  }
  return false;
}

}  // namespace

Graph fold_constants(Graph graph) {
  if (std::ranges::none_of(graph.nodes, [&](const Node& node) { return is_folded(graph, node); }))
    return graph;
  return rewrite(std::move(graph), [](Graph& out, Node& node) -> std::optional<Value> {
    if (!is_folded(out, node)) return std::nullopt;
    std::vector<const Tensor*> operands;
    for (const Value input : node.inputs) operands.push_back(&out[input].constant);
    Tensor result;
    try {
      result = current().run(*node.op, operands, node.attrs, node.spec);
    } catch (const Error&) {
      return std::nullopt;  // it will fail where eager does: at the call
    }
    if (result.spec() != node.spec) return std::nullopt;
    Node folded;
    folded.kind = Node::Kind::constant;
    folded.spec = node.spec;
    folded.constant = std::move(result);
    return append(out, std::move(folded));
  });
}

}  // namespace nitinol::jit
