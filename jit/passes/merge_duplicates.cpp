// Nodes are in topological order, so one walk suffices: when we reach a node its operands already
// have their final numbers, and two nodes are duplicates exactly if they now look the same.
//
// Attributes are compared bit by bit: 0.0 and -0.0 are different, a NaN is the same as itself.
#include "jit/passes/merge_duplicates.h"

#include "core/hash.h"
#include "jit/passes/rewrite.h"

#include <bit>
#include <unordered_map>
#include <utility>

namespace nitinol::jit {
namespace {

/// The identity of a node as a list of numbers.
using Key = std::vector<uint64_t>;

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    Hash hash;
    hash.add_all(key);
    return hash.result();
  }
};

uint64_t word_of(const void* address) {
  return std::bit_cast<uint64_t>(address);
}

void add_attr(const Attr& attr, Key& key) {
  struct Adder {
    Key& key;
    void operator()(bool value) const { key.push_back(value ? 1 : 0); }
    void operator()(int64_t value) const { key.push_back(static_cast<uint64_t>(value)); }
    void operator()(double value) const { key.push_back(std::bit_cast<uint64_t>(value)); }
    void operator()(DType value) const { key.push_back(static_cast<uint64_t>(value)); }
    void operator()(const Dims& value) const {
      key.push_back(static_cast<uint64_t>(value.size()));
      for (const int64_t item : value) key.push_back(static_cast<uint64_t>(item));
    }
  };
  key.push_back(attr.index());
  std::visit(Adder{key}, attr);
}

Key key_of(const Node& node) {
  if (node.kind == Node::Kind::constant) return {word_of(node.constant.handle().get())};
  Key key = {word_of(node.op), node.inputs.size()};
  for (const Value input : node.inputs) key.push_back(input);
  for (const Attr& attr : node.attrs) add_attr(attr, key);
  return key;
}

}  // namespace

Graph merge_duplicates(Graph graph) {
  std::unordered_map<Key, Value, KeyHash> seen;
  seen.reserve(graph.nodes.size());
  return rewrite(std::move(graph), [&seen](Graph& out, Node& node) -> std::optional<Value> {
    if (node.kind == Node::Kind::op && node.op->has_checks) return std::nullopt;
    const auto [found, is_new] =
        seen.try_emplace(key_of(node), static_cast<Value>(out.nodes.size()));
    if (is_new) return std::nullopt;
    return found->second;
  });
}

}  // namespace nitinol::jit
