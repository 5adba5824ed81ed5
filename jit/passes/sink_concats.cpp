// Example: the columns of x rolled by one, and what a matrix product will read:
//   r: f32[4, 8] = concat (slice x 7:8) (slice x 0:7); t: f32[4, 8] = tanh r; p = matmul t w
// A piece is stored where a concat wants it, but nothing joins the kernels before a concat from
// behind it: r is written, read, and t is written. As
//   t: f32[4, 8] = concat (tanh (slice x 7:8)) (tanh (slice x 0:7))
// t alone is written.
//
// Where several concats meet, as in a sum of rolled tensors, a round does so for one of them: what
// it leaves are pieces with parts of the others, and concats in concats, of which the outermost is
// what is stored to (fusion/pieces.h).
//
// The values between a concat and the one that takes its place are a region: elementwise operations
// and views that leave the joined axis alone. One value of it, which is in memory whatever becomes
// of it, is all that others read; else more would be written than before.
#include "jit/passes/sink_concats.h"

#include "eager/all_ops.h"
#include "jit/passes/remove_dead.h"
#include "jit/passes/rewrite.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace nitinol::jit {
namespace {

/// More pieces than that stay: each operation is there once for each of them.
constexpr std::size_t most_pieces = 8;
/// Of operations and concats that make an operand: beyond it parts of what is there are read.
constexpr int most_depth = 4;
/// Each sinks a concat of those that an operation joins, as a sum of rolled tensors does.
constexpr int most_rounds = 8;

bool is_concat(const Node& node) {
  return node.op == &ops::concat();
}

/// Elements of the axes behind this one.
int64_t elements_behind(const Shape& shape, int axis) {
  int64_t elements = 1;
  for (int i = axis + 1; i < shape.size(); ++i) elements *= shape[i];
  return elements;
}

/// Where a view of shape `to` has what is axis `axis` of its operand, alone and whole; nothing if
/// it has not.
std::optional<int> axis_through(const Node& view, const Shape& from, int axis) {
  const Shape& to = view.spec.shape;
  if (view.op == &ops::permute()) {
    const Dims& order = std::get<Dims>(view.attrs[0]);
    return static_cast<int>(std::ranges::find(order, axis) - order.begin());
  }
  if (view.op == &ops::expand()) {
    const int there = axis + to.size() - from.size();
    return to[there] == from[axis] ? std::optional(there) : std::nullopt;
  }
  if (view.op != &ops::reshape()) return std::nullopt;
  for (int there = 0; there < to.size(); ++there) {
    if (to[there] == from[axis] && elements_behind(to, there) == elements_behind(from, axis))
      return there;
  }
  return std::nullopt;
}

/// What is made of one concat.
struct Region {
  Value concat = 0, last = 0;
  std::vector<int64_t> sizes;  ///< of the pieces along the axis
};

/// Finds regions of the graph that can be made piece by piece.
class Regions {
 public:
  static constexpr int none = -1;

  explicit Regions(const Graph& graph)
      : graph_(graph), axis_(graph.nodes.size(), none), region_(graph.nodes.size(), none) {
    const auto has_any = std::ranges::any_of(graph.nodes, is_concat);
    if (!has_any) return;
    find_readers();
    for (Value v = 0; v < graph.nodes.size(); ++v) {
      if (is_concat(graph[v]) && region_[v] == none) try_concat(v);
    }
  }

  [[nodiscard]] bool empty() const { return regions_.empty(); }
  /// The region that makes `v` in pieces; null if none does. Its concat is of it.
  [[nodiscard]] const Region* of(Value v) const {
    return region_[v] == none ? nullptr : &regions_[static_cast<std::size_t>(region_[v])];
  }
  /// The joined axis of a value of a region.
  [[nodiscard]] int axis(Value v) const { return axis_[v]; }
  /// Whether a part of `v` is what it is made of in parts: nobody else reads it, or it is a concat
  /// of what lies in memory.
  [[nodiscard]] bool is_divisible(Value v) const {
    const bool is_read_once = readers_[v].size() == 1 && !is_result_[v];
    const std::vector<Value>& inputs = graph_[v].inputs;
    if (!is_concat(graph_[v])) return is_elementwise(graph_[v]) && is_read_once;
    return inputs.size() <= most_pieces &&
           (is_read_once ||
            std::ranges::all_of(inputs, [&](Value piece) { return is_in_memory(piece); }));
  }

 private:
  void find_readers() {
    readers_.resize(graph_.nodes.size());
    is_stored_.assign(graph_.nodes.size(), false);
    is_result_.assign(graph_.nodes.size(), false);
    std::vector<bool> is_used(graph_.nodes.size(), false);  // passes before leave others behind
    for (const Value output : graph_.outputs)
      is_stored_[output] = is_result_[output] = is_used[output] = true;
    for (Value v = static_cast<Value>(graph_.nodes.size()); v-- > 0;) {
      if (!is_used[v] && !has_effect(graph_[v])) continue;
      for (const Value input : graph_[v].inputs) {
        is_used[input] = true;
        readers_[input].push_back(v);
      }
    }
    for (Value v = static_cast<Value>(graph_.nodes.size()); v-- > 0;) {
      is_stored_[v] = is_stored_[v] || std::ranges::any_of(readers_[v], [&](Value reader) {
                        return has_in_memory(graph_[reader], v, is_stored_[reader]);
                      });
    }
  }

  /// Whether a reader has `v` in memory: a piece has a place there, if nobody else reads it.
  [[nodiscard]] bool has_in_memory(const Node& reader, Value v, bool is_stored) const {
    if (reader.kind != Node::Kind::op) return false;
    if (is_view(reader)) return is_stored;
    if (is_concat(reader)) return readers_[v].size() == 1;
    return reader.op->kind != OpKind::elementwise && reader.op->windows == nullptr &&
           (reader.op->kind != OpKind::reduce || reader.op->call != nullptr);
  }

  void try_concat(Value concat) {
    const Node& node = graph_[concat];
    const auto axis = static_cast<int>(std::get<int64_t>(node.attrs[0]));
    Region region = {.concat = concat, .last = concat, .sizes = {}};
    for (const Value piece : node.inputs) region.sizes.push_back(graph_[piece].spec.shape[axis]);
    const bool has_empty = std::ranges::find(region.sizes, 0) != region.sizes.end();
    if (has_empty || region.sizes.size() < 2 || region.sizes.size() > most_pieces) return;
    const int number = static_cast<int>(regions_.size());
    std::vector<Value> members;
    std::set<Value> readers;  // in the graph's order: their operands have joined, or never will
    const auto join = [&](Value v, int there) {
      axis_[v] = there;
      region_[v] = number;
      members.push_back(v);
      readers.insert(readers_[v].begin(), readers_[v].end());
    };
    for (join(concat, axis); !readers.empty();) {
      const Value reader = *readers.begin();
      readers.erase(readers.begin());
      if (region_[reader] != none) continue;
      if (const std::optional<int> there = joined_axis(reader, number)) join(reader, *there);
    }
    if (const std::optional<Value> last = only_last(members, number)) {
      region.last = *last;
      if (fills_vectors(region)) {
        regions_.push_back(std::move(region));
        return;
      }
    }
    for (const Value member : members) axis_[member] = region_[member] = none;
  }

  /// The joined axis of a reader that can be made in pieces; nothing if it cannot.
  [[nodiscard]] std::optional<int> joined_axis(Value reader, int number) const {
    const Node& node = graph_[reader];
    if (is_view(node))
      return axis_through(node, graph_[node.inputs[0]].spec.shape, axis_[node.inputs[0]]);
    if (!is_elementwise(node) || has_parts(node)) return std::nullopt;
    const int rank = node.spec.shape.size();
    std::optional<int> joined;
    for (const Value input : node.inputs) {
      if (region_[input] != number) continue;
      const int there = axis_[input] + rank - graph_[input].spec.shape.size();
      if (joined && *joined != there) return std::nullopt;
      joined = there;
    }
    for (const Value input : node.inputs) {
      if (region_[input] != number && !can_be_sliced(input, *joined - rank)) return std::nullopt;
    }
    return joined;
  }

  /// Whether a value, or what it is a view of, lies in memory that no kernel makes.
  [[nodiscard]] bool is_in_memory(Value v) const {
    while (is_view(graph_[v])) v = graph_[v].inputs[0];
    const Node& node = graph_[v];
    if (node.kind != Node::Kind::op) return node.kind != Node::Kind::part;
    return node.op->kind == OpKind::library || node.op->kind == OpKind::index;
  }

  /// Whether parts of a value along an axis (counted from the end) are there: it is broadcast along
  /// it, or lies in memory, or elementwise operations make it of such for this one reader.
  [[nodiscard]] bool can_be_sliced(Value v, int from_end, int depth = most_depth) const {
    const Node& node = graph_[v];
    const int axis = from_end + node.spec.shape.size();
    if (axis < 0 || node.spec.shape[axis] == 1) return true;
    if (is_in_memory(v)) return true;
    if (depth == 0 || !is_elementwise(node) || !is_divisible(v)) return false;
    return std::ranges::all_of(
        node.inputs, [&](Value input) { return can_be_sliced(input, from_end, depth - 1); });
  }

  /// Whether all but an eighth of the elements lie in rows that a vector can take: tanh of 3
  /// columns beside 4 took twice as long in pieces as in whole rows of 7, of 8 beside 9 less.
  [[nodiscard]] bool fills_vectors(const Region& region) const {
    constexpr int64_t enough = 8;
    const int64_t behind = elements_behind(graph_[region.last].spec.shape, axis_[region.last]);
    int64_t all = 0, narrow = 0;
    for (const int64_t size : region.sizes) {
      all += size;
      if (size * behind < enough) narrow += size;
    }
    return narrow * 8 <= all;
  }

  /// The value whose memory others read, if it is one, is not the concat, and lies in memory.
  [[nodiscard]] std::optional<Value> only_last(const std::vector<Value>& members,
                                               int number) const {
    std::optional<Value> last;
    for (const Value member : members) {
      const bool is_read =
          is_result_[member] ||
          std::ranges::any_of(readers_[member], [&](Value v) { return region_[v] != number; });
      if (!is_read) continue;
      Value made = member;
      while (is_view(graph_[made])) made = graph_[made].inputs[0];
      if (last && *last != made) return std::nullopt;
      last = made;
    }
    const bool is_gain = last && *last != members[0] && is_stored_[*last];
    return is_gain ? last : std::nullopt;
  }

  const Graph& graph_;
  std::vector<int> axis_, region_;
  std::vector<std::vector<Value>> readers_;
  std::vector<bool> is_stored_, is_result_;
  std::vector<Region> regions_;
};

/// Parts of operands of the new graph.
class Slicer {
 public:
  /// A part of this value is what it is made of in parts.
  void add_divisible(Value v) { divisible_.insert(v); }

  /// Elements [start, start + size) of an operand along an axis, counted from the end.
  Value part_of(Graph& out, Value operand, int from_end, int64_t start, int64_t size,
                int depth = most_depth) const {
    Node part = out[operand];
    Shape& shape = part.spec.shape;
    const int axis = from_end + shape.size();
    if (axis < 0 || shape[axis] == 1 || (start == 0 && size == shape[axis])) return operand;
    const bool is_divisible = depth > 0 && divisible_.contains(operand);
    if (is_divisible && is_concat(part))
      return joined_parts(out, part, from_end, start, size, depth - 1);
    shape[axis] = size;
    if (is_divisible) {
      for (Value& input : part.inputs)
        input = part_of(out, input, from_end, start, size, depth - 1);
      return append(out, std::move(part));
    }
    Dims starts = Dims::filled(shape.size(), 0);
    starts[axis] = start;
    return append(out, applied(out, ops::slice(), operand,
                               {starts, Dims(shape), Dims::filled(shape.size(), 1)}));
  }

 private:
  /// The same of a concat: parts of its pieces, joined if they are several.
  Value joined_parts(Graph& out, const Node& concat, int from_end, int64_t start, int64_t size,
                     int depth) const {
    const int axis = from_end + concat.spec.shape.size();
    const bool is_joined = std::get<int64_t>(concat.attrs[0]) == axis;
    Node parts = concat;
    parts.inputs.clear();
    parts.spec.shape[axis] = size;
    for (const Value piece : concat.inputs) {
      const int64_t length = out[piece].spec.shape[axis];
      const int64_t first = std::max<int64_t>(start, 0), last = std::min(start + size, length);
      if (first < last)
        parts.inputs.push_back(part_of(out, piece, from_end, first, last - first, depth));
      if (is_joined) start -= length;
    }
    return parts.inputs.size() == 1 ? parts.inputs[0] : append(out, std::move(parts));
  }

  std::set<Value> divisible_;
};

/// Sinks the concats that can be; nothing, and the graph as it was, if none can.
std::optional<Graph> sink_once(Graph& graph) {
  const Regions regions(graph);
  if (regions.empty()) return std::nullopt;
  // rewrite() takes the graph apart.
  std::vector<Value> asked;
  std::vector<std::vector<Value>> inputs;
  std::vector<bool> is_divisible;
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    if (graph[v].kind != Node::Kind::input) asked.push_back(v);
    inputs.push_back(graph[v].inputs);
    is_divisible.push_back(regions.is_divisible(v));
  }
  std::vector<std::vector<Value>> pieces(graph.nodes.size());  // of old values, in the new graph
  Slicer slicer;
  std::size_t next = 0;
  Graph result = rewrite(std::move(graph), [&](Graph& out, Node& node) -> std::optional<Value> {
    const Value old = asked[next++];
    const Region* const region = regions.of(old);
    if (is_divisible[old]) slicer.add_divisible(static_cast<Value>(out.nodes.size()));
    if (region == nullptr) return std::nullopt;
    if (old == region->concat) {
      pieces[old] = node.inputs;
      return std::nullopt;
    }
    const int axis = regions.axis(old), from_end = axis - node.spec.shape.size();
    int64_t start = 0;
    for (std::size_t k = 0; k < region->sizes.size(); ++k) {
      Node part = node;
      part.spec.shape[axis] = region->sizes[k];
      const bool has_shape = node.op == &ops::reshape() || node.op == &ops::expand();
      if (has_shape) part.attrs[0] = Dims(part.spec.shape);
      for (std::size_t i = 0; i < part.inputs.size(); ++i) {
        const Value given = inputs[old][i];
        part.inputs[i] = regions.of(given) == region ? pieces[given][k]
                                                     : slicer.part_of(out, node.inputs[i], from_end,
                                                                      start, region->sizes[k]);
      }
      pieces[old].push_back(append(out, std::move(part)));
      start += region->sizes[k];
    }
    if (old != region->last) return std::nullopt;
    Node whole;
    whole.op = &ops::concat();
    whole.inputs = pieces[old];
    whole.attrs = {int64_t{axis}};
    whole.spec = node.spec;
    return append(out, std::move(whole));
  });
  return remove_dead(std::move(result));
}

}  // namespace

Graph sink_concats(Graph graph) {
  // Nine pieces of a stencil of two axes, and twenty-seven of three, are well below.
  const std::size_t enough = 32 * graph.nodes.size();
  for (int round = 0; round < most_rounds && graph.nodes.size() < enough; ++round) {
    std::optional<Graph> sunk = sink_once(graph);
    if (!sunk) break;
    graph = std::move(*sunk);
  }
  return graph;
}

}  // namespace nitinol::jit
