// Layouts: where the values of a graph lie in memory when a Plan runs.
#pragma once

#include "core/graph.h"

#include <vector>

namespace nitinol::jit {

/// How the elements of a value lie in the storage that it starts in or views.
struct Layout {
  Strides strides;
  int64_t offset = 0;
  /// False for a view that strides cannot express: eager copies before it. Its strides are those of
  /// the view of a contiguous copy.
  bool is_possible = true;
};

/// The layout of `node`'s value, given those of all earlier values: arguments and constants lie as
/// they were given, results are contiguous, views follow from what they view.
[[nodiscard]] Layout layout_of(const Graph& graph, const Node& node,
                               const std::vector<Layout>& earlier);

/// Whether others, not of size 1, lie between the axes that `node`, a reduction of a tensor of this
/// shape, reduces.
[[nodiscard]] bool reduces_apart(const Node& node, const Shape& shape);

/// True if `node`, a reduction of a tensor that lies like this, reduces neighbouring axes that are
/// not one loop in memory.
[[nodiscard]] bool reduces_split_loop(const Node& node, const Layout& input, const Shape& shape);

/// Whether the kernel of `node`, a reduction of one of these two kinds, brings its rows together by
/// itself.
[[nodiscard]] bool copies_rows(const Node& node, const Layout& input, const Shape& shape);

}  // namespace nitinol::jit
