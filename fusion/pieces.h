// Pieces: values that are stored right where a concat, stack, pad or place wants them.
#pragma once

#include "core/graph.h"
#include "core/op.h"
#include "fusion/access.h"
#include "fusion/fuse.h"

#include <map>
#include <vector>

namespace nitinol::fusion {

/// True of concat, pad and the like, whose inputs are stored to regions of the result.
[[nodiscard]] bool has_windows(const Node& node);

/// Where `value` is stored: where `pieces` say, or in memory of its own.
[[nodiscard]] Piece place_of(const Graph& graph, const std::map<Value, Piece>& pieces, Value value);

/// Per input of `node`, which has windows and lies at `place`: the region of that memory that the
/// input is stored to.
[[nodiscard]] std::vector<Window> windows_of(const Graph& graph, const Node& node,
                                             const Access& place);

/// The values that are made for nothing but one region of another's memory, by value: by groups of
/// `fusion`, or of pieces of their own.
[[nodiscard]] std::map<Value, Piece> pieces_of(const Graph& graph, const Fusion& fusion);

}  // namespace nitinol::fusion
