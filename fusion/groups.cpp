#include "fusion/groups.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace nitinol::fusion {
namespace {

using Level = Stage::Level;

Dims reduced_axes(const Graph& graph, const Node& node) {
  return normalize_axes(node.op->name, std::get<Dims>(node.attrs[0]),
                        graph[node.inputs[0]].spec.shape.size());
}

/// The domain of a reduce node: its input's shape without sizes 1, and which of its axes are
/// reduced.
std::pair<Shape, Dims> reduction_domain(const Graph& graph, const Node& node) {
  const Shape& shape = graph[node.inputs[0]].spec.shape;
  const Dims axes = reduced_axes(graph, node);
  Shape domain;
  Dims reduced;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (contains(axes, i)) reduced.push_back(domain.size());
    domain.push_back(shape[i]);
  }
  if (reduced.empty() && domain.size() < max_rank) {  // only sizes 1 are reduced: a loop of one
    reduced.push_back(domain.size());
    domain.push_back(1);
  }
  return {domain, reduced};
}

/// The group of a reduce node, without members.
Group alone_reducing(const Graph& graph, const Node& node) {
  Group group;
  std::tie(group.domain, group.reduced) = reduction_domain(graph, node);
  group.order = reduction_order_for(graph[node.inputs[0]].spec.shape, reduced_axes(graph, node));
  return group;
}

bool are_neighbours(const Dims& axes) {
  for (int i = 1; i < axes.size(); ++i) {
    if (axes[i] != axes[i - 1] + 1) return false;
  }
  return true;
}

/// The shape through which a node reads its operands.
const Shape& shape_seen(const Graph& graph, const Node& node) {
  return reduces(node) ? graph[node.inputs[0]].spec.shape : node.spec.shape;
}

/// Numbers the passes over the row: see Member::stage.
void set_stages(const Graph& graph, const std::vector<Value>& bases, Group& group) {
  for (Member& member : group.members) {
    const Node& node = graph[member.value];
    const bool reads_elements = member.level == Level::element || reduces(node);
    member.stage = 0;
    for (const Value input : node.inputs) {
      const Member* read = group.find(bases[input]);
      if (read == nullptr) continue;
      const int after = read->level == Level::row && reads_elements ? 1 : 0;
      member.stage = std::max(member.stage, read->stage + after);
    }
  }
}

/// Both groups as one, if their domains agree. Members of `other` that are elementwise get `level`.
std::optional<Group> united(const Graph& graph, const std::vector<Value>& bases, const Group& main,
                            const Group& other, std::optional<Level> level) {
  const Shape& expected = level == Level::row ? row_shape(main) : main.domain;
  if (other.order == Order::none && level && other.members.front().maps.empty() &&
      squeezed(other.domain) != squeezed(expected)) {
    return std::nullopt;
  }
  Group both = {.order = main.order, .domain = main.domain, .reduced = main.reduced, .members = {}};
  both.members.reserve(main.members.size() + other.members.size());
  both.members = main.members;
  for (const Member& member : other.members) {
    both.members.push_back(member);
    if (other.order == Order::none && level) both.members.back().level = *level;
  }
  std::ranges::sort(both.members, {}, &Member::value);
  set_stages(graph, bases, both);
  return both;
}

/// A view may not see all that has to be checked.
bool has_checks(const Graph& graph, const Group& group) {
  return std::ranges::any_of(group.members, [&](const Member& member) {
    return graph[member.value].op->effect == Effect::may_fail;
  });
}

bool has_maps(const Group& group) {
  return std::ranges::any_of(group.members, [](const Member& m) { return !m.maps.empty(); });
}

/// True if nothing but the group of this reader looks at what the producer makes, so that it can be
/// made where it is read; which is no oftener than now, or may be.
bool is_private(const Graph& graph, const std::vector<int>& uses, const Reading& reading) {
  const Group& group = reading.producer;
  const bool repeats =
      element_count(graph[reading.made].spec.shape) < element_count(graph[reading.v].spec.shape);
  if (repeats && !reading.may_repeat) return false;
  const auto is_read_once = [&](const Map& map) {
    return uses[static_cast<std::size_t>(map.view - graph.nodes.data())] == 1;
  };
  for (const Map& map : reading.maps) {
    if (map.view != nullptr && !is_read_once(map)) return false;
  }
  std::vector<int> reads(group.members.size(), 0);
  for (const Group* const readers : {&group, &reading.reader}) {
    for (const Member& member : readers->members) {
      for (const Value input : graph[member.value].inputs) {
        std::vector<Map> views;
        const Member* const read = group.find(base_of(graph, input, &views));
        if (read != nullptr && std::ranges::all_of(views, is_read_once))
          ++reads[static_cast<std::size_t>(read - group.members.data())];
      }
    }
  }
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    if (uses[group.members[m].value] != reads[m]) return false;
  }
  return true;
}

/// True if all members are seen in this very shape: what is read through a view may have its sizes
/// 1 elsewhere than the member that it was computed from, to which the view means something else.
bool all_have_shape(const Graph& graph, const Group& group, const Shape& shape) {
  return std::ranges::all_of(group.members, [&](const Member& member) {
    if (member.maps.empty()) return graph[member.value].spec.shape == shape;
    const Map& last = member.maps.back();
    return (last.view != nullptr ? last.view->spec.shape : last.shape) == shape;
  });
}

/// True if `made`, once per row, is read at each point of the domain by the value of its own row.
bool reads_rows(const Graph& graph, const Group& group, Value made, const std::vector<Map>& maps,
                const Shape& seen) {
  if (squeezed(seen) != squeezed(group.domain)) return false;
  const Shape& shape = graph[made].spec.shape;
  const std::optional<Access> access = through(Access{shape, strides_of(shape), 0}, maps, f32);
  if (!access || access->offset != 0) return false;
  const Strides strides = squeezed(*access);
  const Strides expected = strides_of(row_shape(group));
  int row = 0;
  for (int i = 0; i < strides.size(); ++i) {
    if (strides[i] != (contains(group.reduced, i) ? 0 : expected[row++])) return false;
  }
  return true;
}

/// True if what is seen of `made` through `maps` at each point of `seen` is what is made there.
bool sees_present_points(const Graph& graph, const Member& made, const std::vector<Map>& maps,
                         const Shape& seen) {
  const Shape& shape = graph[made.value].spec.shape;
  if (made.maps.empty()) return is_identity(shape, maps, seen);
  const Access whole = {shape, strides_of(shape), 0};
  const std::optional<Access> read = through(whole, maps, f32);
  const std::optional<Access> present = through(whole, made.maps, f32);
  return read && present && read->offset == present->offset &&
         squeezed(read->shape) == squeezed(present->shape) && squeezed(*read) == squeezed(*present);
}

/// Whether the reader, whose rows are lanes, visits each point of the producer once, seen through
/// `maps`: then others may read what is made there, as it can be stored in rows.
bool visits_all_once(const Group& reader, const Group& producer, const Shape& shape,
                     const std::vector<Map>& maps) {
  if (reader.order != Order::lanes || has_maps(producer) || !order_of_axes(shape, maps))
    return false;
  const std::optional<Access> seen = through(Access{shape, strides_of(shape), 0}, maps, f32);
  return seen && reduced_axes_merge(reader, *seen);
}

/// The reader, elementwise, at the points of the producer's domain, if it reads all of `made`, or a
/// value of each row, with axes in another order than that.
std::optional<Group> in_order_of(const Graph& graph, const Group& producer, const Member& made,
                                 const Reading& reading) {
  const Shape& shape = graph[made.value].spec.shape;
  const Shape& points = graph[reading.v].spec.shape;
  const std::optional<Dims> order = order_of_axes(shape, reading.maps);
  if (producer.order != Order::lanes || !order || order->size() != points.size() ||
      !order_of_axes(shape, made.maps) || !all_have_shape(graph, reading.reader, points))
    return std::nullopt;
  Dims back = *order;
  for (int i = 0; i < order->size(); ++i) back[(*order)[i]] = i;
  std::vector<Map> maps = {{.view = nullptr, .shape = along(points, back), .order = back}};
  maps.insert(maps.end(), made.maps.begin(), made.maps.end());
  const std::optional<Access> seen = through(Access{points, strides_of(points), 0}, maps, f32);
  if (!seen || squeezed(seen->shape) != squeezed(producer.domain) ||
      !reduced_axes_merge(producer, *seen))
    return std::nullopt;
  Group moved = reading.reader;
  for (Member& member : moved.members) member.maps = maps;
  return moved;
}

}  // namespace

Order reduction_order_for(const Shape& shape, const Dims& axes) {
  for (int i = shape.size() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    return contains(axes, i) ? Order::lanes : Order::sequential;
  }
  return Order::lanes;
}

bool may_copy_rows(Order order, const Dims& sizes, const Dims& strides,
                   const DeviceLimits& limits) {
  constexpr int64_t long_run = 256, few_runs = 256;
  if (order != Order::lanes || limits.rows_of_vectors == 0 || strides.back() < 0 ||
      strides.back() > 1)
    return false;
  const int64_t length = element_count(sizes);
  int64_t run = sizes.back();
  for (int i = sizes.size() - 1; i > 0 && strides[i - 1] == strides[i] * sizes[i]; --i)
    run *= sizes[i - 1];
  return length > longest_turned_row &&
         (length <= reduction_order::lanes_block || run >= long_run || length <= run * few_runs);
}

bool may_copy_rows(const Group& group, const Strides& strides, const DeviceLimits& limits) {
  return may_copy_rows(group.order, along(group.domain, group.reduced),
                       along(strides, group.reduced), limits);
}

int64_t row_length(const Group& group) {
  return element_count(along(group.domain, group.reduced));
}

bool is_groupable(const Graph& graph, const Node& node, const DeviceLimits& limits) {
  if (node.kind != Node::Kind::op || element_count(node.spec.shape) == 0) return false;
  for (const Value input : node.inputs) {
    if (element_count(graph[input].spec.shape) == 0) return false;
  }
  if (reduces(node)) {
    const Group group = alone_reducing(graph, node);
    return !group.reduced.empty() && (are_neighbours(group.reduced) ||
                                      may_copy_rows(group, strides_of(group.domain), limits));
  }
  if (node.op->effect == Effect::may_fail)
    return node.op->check.emit != nullptr || node.op->lookup != nullptr;
  return (node.op->kind == OpKind::elementwise || node.op->kind == OpKind::create) &&
         node.op->formula.emit != nullptr;
}

Group alone(const Graph& graph, Value v) {
  const Node& node = graph[v];
  Group group;
  if (reduces(node)) {
    group = alone_reducing(graph, node);
    group.members.push_back({.value = v, .level = Level::row, .stage = 0, .maps = {}});
  } else {
    group.domain = squeezed(node.spec.shape);
    group.members.push_back({.value = v, .level = Level::element, .stage = 0, .maps = {}});
  }
  return group;
}

Shape row_shape(const Group& group) {
  Shape rows;
  for (int i = 0; i < group.domain.size(); ++i) {
    if (!contains(group.reduced, i)) rows.push_back(group.domain[i]);
  }
  return rows;
}

std::optional<Group> merged(const Graph& graph, const std::vector<Value>& bases,
                            const std::vector<int>& uses, const Reading& reading) {
  const Group &reader = reading.reader, &producer = reading.producer;
  const Member &reads = *reader.find(reading.v), &made = *producer.find(reading.made);
  const Node& node = graph[reading.v];
  std::vector<Map> maps = reading.maps;
  if (!reduces(node)) maps.push_back(broadcast_to(node));
  const bool reads_elements = reduces(node) || reads.level == Level::element;
  const bool is_element = made.level == Level::element;
  const Shape& seen = shape_seen(graph, node);
  const bool same_points = sees_present_points(graph, made, maps, seen);
  const auto unite = [&](const Group& main, const Group& other, std::optional<Level> level) {
    return united(graph, bases, main, other, level);
  };
  const auto sees_its_row = [&] { return reads_rows(graph, producer, reading.made, maps, seen); };

  if (producer.order != Order::none && reader.order == Order::none) {
    // The reader, elementwise, takes part in the reduction that makes what it reads.
    if (has_maps(reader)) return std::nullopt;
    if (is_element && same_points) return unite(producer, reader, Level::element);
    if (!is_element && same_points && reader.domain == row_shape(producer))
      return unite(producer, reader, Level::row);
    if (!is_element && sees_its_row()) return unite(producer, reader, Level::element);
    const std::optional<Group> moved = in_order_of(graph, producer, made, reading);
    return moved ? unite(producer, *moved, Level::element) : std::nullopt;
  }
  if (producer.order != Order::none) {  // two reductions, over one domain
    if (reader.domain != producer.domain || reader.reduced != producer.reduced ||
        reader.order != producer.order)
      return std::nullopt;
    const bool is_at_hand = !is_element && reads_elements  ? sees_its_row()
                            : is_element == reads_elements ? same_points
                                                           : true;
    return is_at_hand ? unite(reader, producer, std::nullopt) : std::nullopt;
  }
  if (!made.maps.empty()) return std::nullopt;
  if (same_points && reads.maps.empty())
    return unite(reader, producer, reads_elements ? Level::element : Level::row);
  const Shape& shape = graph[reading.made].spec.shape;
  if (!reads_elements || !all_have_shape(graph, producer, shape)) return std::nullopt;
  maps.insert(maps.end(), reads.maps.begin(), reads.maps.end());
  if (!visits_all_once(reader, producer, shape, maps) &&
      (has_checks(graph, producer) || !is_private(graph, uses, reading)))
    return std::nullopt;
  Group moved = producer;
  for (Member& member : moved.members)
    member.maps.insert(member.maps.end(), maps.begin(), maps.end());
  return unite(reader, moved, Level::element);
}

}  // namespace nitinol::fusion
