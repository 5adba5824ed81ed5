// Inputs of a node with windows are stored in order, so that a later one may lie over an earlier. A
// group stores its piece before the node's turn comes. That is right where no two windows overlap,
// and for the first input always: what lies over it is stored at the node's turn.
//
// Example: y = exp a; z = exp b; c = concat y z. Both kernels store into c, and there is no copy.
// If c is a piece of d, and read by nobody else, they store into d.
#include "fusion/pieces.h"

namespace nitinol::fusion {
namespace {

/// True if all windows together have as many elements as what they cover.
bool are_disjoint(const Node& node, const std::vector<Window>& windows) {
  int64_t count = 0;
  for (const Window& window : windows) count += element_count(window.shape);
  return count == element_count(node.spec.shape);
}

/// True if `value`, perhaps seen through views that only add or drop axes of size 1, and what it is
/// made of, are read by one node alone.
bool is_read_once(const Graph& graph, const std::vector<int>& uses, Value value) {
  std::vector<Map> maps;
  const Value base = base_of(graph, value, &maps);
  const Shape &made = graph[base].spec.shape, &stored = graph[value].spec.shape;
  if (!same_but_ones(made, stored) || !is_identity(made, maps, stored)) return false;
  for (; value != base; value = graph[value].inputs[0]) {
    if (uses[value] != 1) return false;
  }
  return uses[base] == 1;
}

/// Whether the group of `value` can store it there.
bool is_walkable(const Fusion& fusion, Value value, const Access& access) {
  const Group& group = fusion.groups[static_cast<std::size_t>(fusion.group_of[value])];
  return group.find(value)->level == Stage::Level::row || reduced_axes_merge(group, access);
}

/// The window over `shape`, which differs from its own by axes of size 1.
Access region(const Shape& shape, const Window& window) {
  Access access = {shape, Dims::filled(shape.size(), 0), window.map.offset};
  int from = 0;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    while (window.shape[from] == 1) ++from;
    access.strides[i] = window.map.strides[from++];
  }
  return access;
}

}  // namespace

bool has_windows(const Node& node) {
  return node.kind == Node::Kind::op && node.op->windows != nullptr &&
         element_count(node.spec.shape) > 0;
}

Piece place_of(const Graph& graph, const std::map<Value, Piece>& pieces, Value value) {
  if (const auto found = pieces.find(value); found != pieces.end()) return found->second;
  const Shape& shape = graph[value].spec.shape;
  return {.whole = value, .access = {shape, strides_of(shape), 0}};
}

std::vector<Window> windows_of(const Graph& graph, const Node& node, const Access& place) {
  std::vector<Tensor> placeholders;
  for (const Value input : node.inputs) {
    const Spec& spec = graph[input].spec;
    placeholders.push_back(make_tensor(spec, strides_of(spec.shape), 0, {}));
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& placeholder : placeholders) inputs.push_back(&placeholder);
  std::vector<Window> windows = node.op->windows(node.spec, place.strides, inputs, node.attrs);
  for (Window& window : windows) window.map.offset += place.offset;
  return windows;
}

std::map<Value, Piece> pieces_of(const Graph& graph, const Fusion& fusion) {
  std::map<Value, Piece> pieces;
  const std::vector<int> uses = use_counts(graph);
  // From the last on: what has windows may be a piece itself, and its place is known by then.
  for (Value v = static_cast<Value>(graph.nodes.size()); v-- > 0;) {
    const Node& node = graph[v];
    if (!has_windows(node)) continue;
    const Piece place = place_of(graph, pieces, v);
    const std::vector<Window> windows = windows_of(graph, node, place.access);
    const std::size_t early = are_disjoint(node, windows) ? windows.size() : 1;
    for (std::size_t k = 0; k < early; ++k) {
      const Value base = fusion.bases[node.inputs[k]];
      const bool is_made_so = fusion.group_of[base] >= 0 || has_windows(graph[base]);
      if (!is_made_so || !is_read_once(graph, uses, node.inputs[k]) ||
          windows[k].shape != graph[node.inputs[k]].spec.shape)
        continue;
      const Access access = region(graph[base].spec.shape, windows[k]);
      if (fusion.group_of[base] < 0 || is_walkable(fusion, base, access))
        pieces[base] = {.whole = place.whole, .access = access};
    }
  }
  return pieces;
}

}  // namespace nitinol::fusion
