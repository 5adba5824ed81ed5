#include "bindings/python/src/tape.h"

#include "autograd/node.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace nitinol::python {
namespace {

using autograd::Node;

/// By number of the node, which no other node ever has.
struct Nodes {
  std::unordered_map<uint64_t, std::weak_ptr<HeldCallables>> held;
  std::size_t limit = 64;  ///< of entries, before those of nodes that are gone are dropped
};
Nodes& nodes() {
  static auto* all = new Nodes;
  return *all;
}

/// The custom node behind a result's own.
const Node* custom_of(const Node* node) {
  if (node != nullptr && node->kind == Node::Kind::output)
    node = static_cast<const Node*>(node->inputs[0].get());
  return node != nullptr && node->kind == Node::Kind::custom ? node : nullptr;
}

/// How many references to `slot` are this node's: as its inputs, and those of operands that it
/// alone has saved.
int references_by(const Node& node, const TensorSlot* slot) {
  const auto inputs = std::ranges::count_if(
      node.inputs, [&](const Handle<TensorSlot>& input) { return input.get() == slot; });
  int saved = 0;
  for (auto at = node.saved.begin(); at != node.saved.end(); ++at) {
    if (!at->is_defined() || at->internals().gradient.get() != slot) continue;
    const auto same = [&](const Tensor& other) { return other.handle() == at->handle(); };
    if (std::any_of(node.saved.begin(), at, same)) continue;
    saved += std::ranges::count_if(node.saved, same) == at->handle()->references.load();
  }
  return static_cast<int>(inputs) + saved;
}

int visit_held(const Node& custom, visitproc visit, void* arg) {
  const auto found = nodes().held.find(custom.sequence);
  if (found == nodes().held.end()) return 0;
  const std::shared_ptr<HeldCallables> held = found->second.lock();
  if (!held) return 0;
  for (const std::weak_ptr<PyObject>& callable : *held) {
    // Another owner, such as a rule that runs now, would not be seen.
    if (callable.use_count() == 1) Py_VISIT(callable.lock().get());
  }
  return 0;
}

}  // namespace

void note_held(const Tensor& result, const std::shared_ptr<HeldCallables>& held) {
  const Node* node = custom_of(autograd::node_of(result));
  if (node == nullptr) return;
  Nodes& all = nodes();
  if (all.held.size() >= all.limit) {
    std::erase_if(all.held, [](const auto& entry) { return entry.second.expired(); });
    all.limit = 2 * all.held.size() + 64;
  }
  all.held[node->sequence] = held;
}

int traverse_tape(const Tensor& tensor, visitproc visit, void* arg) {
  if (!is_unique(tensor.handle())) return 0;
  // Of a fixed size: the collector asks several times, and must get the same answer each time.
  static std::array<const Node*, 1024> waiting;
  std::size_t count = 0;
  const auto add = [&](const Handle<TensorSlot>& slot, int references) {
    if (slot && slot->references.load() == references && count < waiting.size())
      waiting[count++] = static_cast<const Node*>(slot.get());
  };
  add(tensor.internals().gradient, 1);
  while (count > 0) {
    const Node& node = *waiting[--count];
    if (node.kind == Node::Kind::custom) {
      if (const int stopped = visit_held(node, visit, arg)) return stopped;
    }
    for (auto at = node.inputs.begin(); at != node.inputs.end(); ++at) {
      if (std::find(node.inputs.begin(), at, *at) == at) add(*at, references_by(node, at->get()));
    }
  }
  return 0;
}

}  // namespace nitinol::python
