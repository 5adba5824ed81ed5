// Example: y = conv2d x w makes images of 11 by 11, z = relu (add y b), and the largest of windows
// of 2 by 2 of z are 5 by 5: they leave the last row and column out. So y and z are made 10 by 10,
// for which y needs less of x, and so on, up to what is not a result of such operations or has
// another reader: that stays whole.
#include "program/trimming.h"

#include "program/steps.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace nitinol::program {
namespace {

using Size = std::array<int64_t, 2>;  ///< rows and columns

Size size_of_images(const Shape& shape) {
  return {shape[1], shape[2]};
}

/// Whether the shape, broadcast to images [n, h, w, c], has one number for all pixels.
bool is_same_for_all_pixels(const Shape& shape) {
  const auto rank = static_cast<int>(shape.size());
  const auto axis = [&](int from_end) { return rank < from_end ? 1 : shape[rank - from_end]; };
  return axis(3) == 1 && axis(2) == 1;
}

/// Images, and how much of them is made.
struct Part {
  Value value;
  Size size;
};

class Trimming {
 public:
  explicit Trimming(ProgramDraft& draft) : draft_(draft), uses_(use_counts(draft.graph)) {}

  /// Trims what node `v` reads, if these are windows.
  void trim_images_of(Value v) {
    const Node& node = draft_.graph[v];
    if (node.kind != Node::Kind::op || node.inputs.size() != 2) return;
    if (node.inputs[0] != node.inputs[1] || node.spec.shape.size() != 4) return;
    std::vector<Part> parts;
    const std::optional<LibraryCall> call = library_call_of(draft_, v);
    if (call && call->kind == LibraryCall::Kind::window_max)
      collect_images_of(*call, v, size_of_images(node.spec.shape), parts);
    for (const Part& part : parts) set_size(draft_.graph.nodes[part.value].spec.shape, part.size);
  }

 private:
  static void set_size(Shape& shape, const Size& size) {
    shape[1] = size[0];
    shape[2] = size[1];
  }

  /// Adds what can be smaller if the call, which is node v's, makes images of this size.
  void collect_images_of(const LibraryCall& call, Value v, const Size& size,
                         std::vector<Part>& parts) const {
    const Value images = draft_.graph[v].inputs[0];
    const Size whole = size_of_images(call.operands[0].shape);
    Size part;
    for (const int i : {0, 1}) {
      const auto axis = static_cast<std::size_t>(i);
      part[axis] = std::min(whole[axis], call.windows.reach(i, size[axis]));
    }
    std::vector<Part> more;
    if (part != whole && collect(images, v, part, more))
      parts.insert(parts.end(), more.begin(), more.end());
  }

  /// Adds `v`, which `reader` reads, and what has to be smaller for it. False if it stays whole.
  bool collect(Value v, Value reader, const Size& size, std::vector<Part>& parts) const {
    const Graph& graph = draft_.graph;
    const Node& node = graph[v];
    if (node.kind != Node::Kind::op || node.spec.shape.size() != 4) return false;
    if (uses_[v] != std::ranges::count(graph[reader].inputs, v)) return false;
    parts.push_back({v, size});
    if (node.op->kind != OpKind::elementwise || node.op->effect != Effect::none)
      return collect_windows(v, size, parts);
    return std::ranges::all_of(node.inputs, [&](Value input) {
      const Shape& shape = graph[input].spec.shape;
      if (is_same_for_all_pixels(shape) || std::ranges::count(parts, input, &Part::value) > 0)
        return true;
      return shape.size() == 4 && size_of_images(shape) == size_of_images(node.spec.shape) &&
             collect(input, v, size, parts);
    });
  }

  bool collect_windows(Value v, const Size& size, std::vector<Part>& parts) const {
    const std::optional<LibraryCall> whole = library_call_of(draft_, v);
    const bool has_windows = whole && (whole->kind == LibraryCall::Kind::conv2d ||
                                       whole->kind == LibraryCall::Kind::window_max);
    if (!has_windows) return false;
    LibraryCall call = *whole;
    OperandLayout& images = call.operands[2];
    set_size(images.shape, size);
    images.strides = strides_of(images.shape);
    if (!draft_.device.computes_part(call)) return false;
    const std::vector<Value>& inputs = draft_.graph[v].inputs;
    const bool reads_one = call.kind == LibraryCall::Kind::conv2d || inputs[0] == inputs[1];
    if (reads_one) collect_images_of(call, v, size, parts);
    return true;
  }

  ProgramDraft& draft_;
  const std::vector<int> uses_;
};

}  // namespace

void trim_images(ProgramDraft& draft) {
  Trimming trimming(draft);
  for (std::size_t v = draft.graph.nodes.size(); v-- > 0;)
    trimming.trim_images_of(static_cast<Value>(v));
}

}  // namespace nitinol::program
