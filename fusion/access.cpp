#include "fusion/access.h"

#include <algorithm>

namespace nitinol::fusion {

Map broadcast_to(const Node& reader) {
  return {.view = nullptr,
          .shape = reader.spec.shape,
          .leads = reader.op != nullptr && reader.op->lookup != nullptr};
}

std::optional<Access> through(const Access& access, const Map& map, DType dtype) {
  if (!map.order.empty()) return Access{map.shape, along(access.strides, map.order), access.offset};
  if (map.view == nullptr) {
    Shape shape = access.shape;
    Strides strides = access.strides;
    while (map.leads && shape.size() < map.shape.size()) {
      shape.push_back(1);
      strides.push_back(0);
    }
    return Access{map.shape, broadcast_strides(shape, strides, map.shape), access.offset};
  }
  const Spec input = {.dtype = dtype, .shape = access.shape, .is_weak = false, .device = {}};
  const ViewMap view = map.view->op->view(input, access.strides, map.view->attrs);
  if (!view.is_possible) return std::nullopt;
  return Access{map.view->spec.shape, view.strides, access.offset + view.offset};
}

std::optional<Access> through(Access access, const std::vector<Map>& maps, DType dtype) {
  for (const Map& map : maps) {
    std::optional<Access> next = through(access, map, dtype);
    if (!next) return std::nullopt;
    access = *next;
  }
  return access;
}

Value base_of(const Graph& graph, Value value, std::vector<Map>* maps) {
  Value base = value;
  std::vector<const Node*> views;
  while (is_view(graph[base])) {
    views.push_back(&graph[base]);
    base = graph[base].inputs[0];
  }
  if (maps != nullptr) {
    for (auto view = views.rbegin(); view != views.rend(); ++view)
      maps->push_back({*view, (*view)->spec.shape});
  }
  return base;
}

std::optional<Access> memory_access(const Graph& graph, Value value) {
  std::vector<Map> maps;
  const Node& base = graph[base_of(graph, value, &maps)];
  const Strides strides = base.kind == Node::Kind::input      ? base.strides
                          : base.kind == Node::Kind::constant ? base.constant.internals().strides
                                                              : strides_of(base.spec.shape);
  return through(Access{base.spec.shape, strides, 0}, maps, base.spec.dtype);
}

std::vector<Value> bases_of(const Graph& graph) {
  std::vector<Value> bases(graph.nodes.size());
  for (Value v = 0; v < bases.size(); ++v) {
    const Node& node = graph[v];
    bases[v] = is_view(node) ? bases[node.inputs[0]] : v;
  }
  return bases;
}

std::optional<Dims> order_of_axes(const Shape& shape, const std::vector<Map>& maps) {
  const Access whole = {shape, strides_of(shape), 0};
  const std::optional<Access> seen = through(whole, maps, f32);
  if (!seen || seen->offset != 0 || seen->shape.size() != shape.size()) return std::nullopt;
  Dims order, left;  // those of size 1 are left, and come as they are
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) left.push_back(axis);
  }
  int ones = 0;
  for (int i = 0; i < seen->shape.size(); ++i) {
    if (seen->shape[i] == 1) {
      if (ones == left.size()) return std::nullopt;
      order.push_back(left[ones++]);
      continue;
    }
    int axis = 0;
    while (axis < shape.size() && (shape[axis] != seen->shape[i] || contains(order, axis) ||
                                   whole.strides[axis] != seen->strides[i]))
      ++axis;
    if (axis == shape.size()) return std::nullopt;
    order.push_back(axis);
  }
  return order;
}

bool is_identity(const Shape& from, const std::vector<Map>& maps, const Shape& to) {
  if (element_count(from) != element_count(to)) return false;
  const std::optional<Access> access = through(Access{from, strides_of(from), 0}, maps, f32);
  return access && access->offset == 0 && same_but_ones(access->shape, to) &&
         is_contiguous(access->shape, access->strides);
}

Shape squeezed(const Shape& shape) {
  Shape out;
  for (const int64_t size : shape) {
    if (size != 1) out.push_back(size);
  }
  return out;
}

Strides squeezed(const Access& access) {
  Strides out;
  for (int i = 0; i < access.shape.size(); ++i) {
    if (access.shape[i] != 1) out.push_back(access.strides[i]);
  }
  return out;
}

bool same_but_ones(const Shape& a, const Shape& b) {
  int i = 0;
  int j = 0;
  while (true) {
    while (i < a.size() && a[i] == 1) ++i;
    while (j < b.size() && b[j] == 1) ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (a[i++] != b[j++]) return false;
  }
}

bool comes_after(const Node& node) {
  switch (node.kind) {
    case Node::Kind::input:
    case Node::Kind::constant:
      return false;
    case Node::Kind::op:
      return node.op->kind != OpKind::view;
    case Node::Kind::part:
      return true;
  }
  return false;
}

Reads::Reads(const Graph& graph, std::span<const Value> bases) {
  std::vector<Value> before_ordered;  // what may fail; later the last that is ordered
  begin_.reserve(graph.nodes.size() + 1);
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    const Node& node = graph[v];
    begin_.push_back(values_.size());
    if (!comes_after(node)) continue;
    for (const Value input : node.inputs) values_.push_back(bases[input]);
    if (!has_effect(node)) continue;
    if (node.op->effect == Effect::ordered) {
      values_.insert(values_.end(), before_ordered.begin(), before_ordered.end());
      before_ordered.clear();
    }
    before_ordered.push_back(v);
  }
  begin_.push_back(values_.size());
}

}  // namespace nitinol::fusion
