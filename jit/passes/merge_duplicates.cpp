// Nodes are in topological order, so one walk suffices: when we reach a node its operands already
// have their final numbers, and two nodes are duplicates exactly if they now look the same.
//
// Attributes and numbers are compared bit by bit: 0.0 and -0.0 are different, a NaN is the same as
// itself.
#include "jit/passes/merge_duplicates.h"

#include "core/hash.h"
#include "jit/passes/rewrite.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <variant>
#include <vector>

namespace nitinol::jit {
namespace {

uint64_t word_of(const void* address) {
  return std::bit_cast<uint64_t>(address);
}

void add_attr(const Attr& attr, Hash& hash) {
  struct Adder {
    Hash& hash;
    void operator()(bool value) const { hash.add(value); }
    void operator()(int64_t value) const { hash.add(value); }
    void operator()(double value) const { hash.add(std::bit_cast<uint64_t>(value)); }
    void operator()(DType value) const { hash.add(value); }
    void operator()(const Dims& value) const { hash.add_all(value); }
  };
  hash.add(attr.index());
  std::visit(Adder{hash}, attr);
}

/// A number of the code, of which each x / 2 has its own. It stays one, since another call may have
/// other numbers and the same kernels; but two ops are the same that take equal ones.
bool is_number(const Node& node) {
  return node.kind == Node::Kind::constant && node.constant.internals().is_number();
}

uint64_t number_of(const Node& node) {
  return node.constant.internals().number;
}

std::size_t hash_of(const Graph& graph, const Node& node) {
  Hash hash;
  hash.add(word_of(node.op));
  hash.add(node.repetition);
  hash.add(word_of(node.constant.handle().get()));
  for (const Value input : node.inputs)
    hash.add(is_number(graph[input]) ? number_of(graph[input]) : uint64_t{input});
  for (const Attr& attr : node.attrs) add_attr(attr, hash);
  return hash.result();
}

bool same_input(const Graph& graph, Value a, Value b) {
  if (a == b) return true;
  const Node &x = graph[a], &y = graph[b];
  return is_number(x) && is_number(y) && x.spec == y.spec && number_of(x) == number_of(y);
}

bool same_attr(const Attr& a, const Attr& b) {
  const auto* const number = std::get_if<double>(&a);
  if (number == nullptr || b.index() != a.index()) return a == b;
  return std::bit_cast<uint64_t>(*number) == std::bit_cast<uint64_t>(std::get<double>(b));
}

bool are_duplicates(const Graph& graph, const Node& a, const Node& b) {
  return a.kind == b.kind && a.op == b.op && a.constant.handle() == b.constant.handle() &&
         a.repetition == b.repetition &&
         std::ranges::equal(a.inputs, b.inputs,
                            [&](Value x, Value y) { return same_input(graph, x, y); }) &&
         std::ranges::equal(a.attrs, b.attrs, same_attr);
}

/// The values of a graph by what they look like: a table of their numbers, at most half full.
class Seen {
 public:
  explicit Seen(std::size_t count) : slots_(std::bit_ceil(2 * count + 1)), hashes_(count) {}

  /// The first value that looks like `node`, or `otherwise`, which it becomes.
  Value find(const Graph& graph, const Node& node, Value otherwise) {
    const std::size_t hash = hash_of(graph, node);
    std::size_t at = hash;
    for (;; ++at) {
      Value& slot = slots_[at & (slots_.size() - 1)];
      if (slot == 0) slot = otherwise + 1;
      if (slot == otherwise + 1) break;
      if (hashes_[slot - 1] == hash && are_duplicates(graph, graph[slot - 1], node))
        return slot - 1;
    }
    hashes_[otherwise] = hash;
    return otherwise;
  }

 private:
  std::vector<Value> slots_;         ///< a value and 1, or 0
  std::vector<std::size_t> hashes_;  ///< per value
};

}  // namespace

Graph merge_duplicates(Graph graph) {
  Seen seen(graph.nodes.size());
  return drop(std::move(graph), [&seen](const Graph& all, Value v, Value next) {
    const Node& node = all[v];
    const Value found = has_effect(node) ? next : seen.find(all, node, next);
    return found == next ? std::nullopt : std::optional(found);
  });
}

}  // namespace nitinol::jit
