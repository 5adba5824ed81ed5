// Access: how the elements of one value are read from the buffer of another, through views and
// broadcasts.
#pragma once

#include "core/graph.h"
#include "core/op.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace nitinol::fusion {

/// Whether an axis is among these.
[[nodiscard]] inline bool contains(const Dims& axes, int axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

/// What `dims` has for these axes.
[[nodiscard]] inline Dims along(const Dims& dims, const Dims& axes) {
  Dims chosen;
  for (const int64_t axis : axes) chosen.push_back(dims[axis]);
  return chosen;
}

/// Whether a node is a reduction.
[[nodiscard]] inline bool reduces(const Node& node) {
  return node.op->kind == OpKind::reduce;
}

/// Strides (in elements) and offset over some shape.
struct Access {
  Shape shape;
  Strides strides;
  int64_t offset = 0;
};

/// A step from the shape of a value to the shape of its reader: a view node, axes in another order,
/// or a broadcast.
struct Map {
  const Node* view = nullptr;  ///< null: one of the others
  Shape shape;
  bool leads = false;  ///< of a broadcast: the value's axes are the first of `shape`, not the last
  Dims order = {};     ///< axis i is the value's axis order[i]; empty: a broadcast
};

/// How an elementwise node, or the indices of an index op, are read from what has their shape.
[[nodiscard]] Map broadcast_to(const Node& reader);

/// `access` seen through `map`, or nothing if strides cannot express it (some reshapes).
[[nodiscard]] std::optional<Access> through(const Access& access, const Map& map, DType dtype);
[[nodiscard]] std::optional<Access> through(Access access, const std::vector<Map>& maps,
                                            DType dtype);

/// The value whose buffer `value` is a view of, following view nodes down; `maps` gets the views
/// from there up.
[[nodiscard]] Value base_of(const Graph& graph, Value value, std::vector<Map>* maps = nullptr);

/// base_of of every value.
[[nodiscard]] std::vector<Value> bases_of(const Graph& graph);

/// How `value`, perhaps a view, lies in the memory of its base; nothing if strides cannot express
/// that.
[[nodiscard]] std::optional<Access> memory_access(const Graph& graph, Value value);

/// The order in which `maps` show the axes of a value of this shape, if that is all they do.
[[nodiscard]] std::optional<Dims> order_of_axes(const Shape& shape, const std::vector<Map>& maps);

/// True if reading a contiguous tensor of `from` through `maps` visits the points of `to` in the
/// same order: the two have the same elements at the same places, but for dimensions of size 1.
[[nodiscard]] bool is_identity(const Shape& from, const std::vector<Map>& maps, const Shape& to);

/// The shape, or the strides, without the dimensions of size 1.
[[nodiscard]] Shape squeezed(const Shape& shape);
[[nodiscard]] Strides squeezed(const Access& access);

/// True if both shapes are equal once sizes 1 are dropped.
[[nodiscard]] bool same_but_ones(const Shape& a, const Shape& b);

/// Whether the node is made from others, and is no view: there is a time before it.
[[nodiscard]] bool comes_after(const Node& node);

/// Per value of a graph: the values that it comes after. Those whose memory it reads, views looked
/// through; a part after its op; and what is ordered (Op::effect) after what is ordered before it,
/// and after all that may fail.
class Reads {
 public:
  Reads() = default;
  /// `bases` is bases_of(graph). Nothing that may fail comes after what is ordered.
  Reads(const Graph& graph, std::span<const Value> bases);
  [[nodiscard]] std::span<const Value> operator[](Value value) const {
    return std::span(values_).subspan(begin_[value], begin_[value + 1] - begin_[value]);
  }
  [[nodiscard]] std::size_t size() const { return begin_.size() - 1; }

 private:
  std::vector<std::size_t> begin_;  ///< per value, and the end
  std::vector<Value> values_;
};

}  // namespace nitinol::fusion
