// Greedy grouping, in the order of the program.
//
// Each elementwise or reduce node starts a group of its own and then tries to pull in the groups
// that its operands come from. Two groups may merge if (1) the values that pass between them are
// read at the very point at which they are computed, or the producer can be computed at the
// reader's points instead (a view between them, and nobody else reads it), (2) no path leads from
// one to the other through a third, and (3) a loop nest can express the result: every operand has
// strides over the domain, and the reduced axes merge into one loop.
//
// Example: softmax(x) = e / sum(e), e = exp(x - max(x)). max starts a reduction over x; `-` reads x
// at the points of that reduction's domain and max once per row, so it joins; exp and sum follow,
// then `/`: one group, three passes over each row while it is in cache.
//
// A value is never computed in two groups; within one it may be computed again in a later pass over
// the row.
// Being greedy has a price, part of which sink.cpp gives back.
#include "jit/fusion.h"

#include "core/one_op.h"
#include "jit/sink.h"

#include <algorithm>
#include <numeric>

namespace nitinol::jit {
namespace {

constexpr std::size_t most_streams = 24;  ///< operands in memory
/// Several passes over one long row would be neither parallel nor in cache.
constexpr int64_t longest_lone_row = 65536;

Shape squeezed(const Shape& shape) {
  Shape out;
  for (const int64_t size : shape) {
    if (size != 1) out.push_back(size);
  }
  return out;
}

/// Strides of the dimensions that are not of size 1.
Strides squeezed(const Access& access) {
  Strides out;
  for (int i = 0; i < access.shape.size(); ++i) {
    if (access.shape[i] != 1) out.push_back(access.strides[i]);
  }
  return out;
}

bool contains(const Dims& axes, int axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

bool is_arg(Combine combine) {
  return combine == Combine::arg_maximum || combine == Combine::arg_minimum;
}

class Fuser {
 public:
  explicit Fuser(const Graph& graph) : graph_(graph), uses_(use_counts(graph)) {
    const std::size_t count = graph.nodes.size();
    fusion_.group_of.assign(count, -1);
    fusion_.is_uniform.assign(count, false);
    fusion_.is_materialised.assign(count, false);
    seen_.assign(count, 0);
    first_of_group_.resize(count);
    std::iota(first_of_group_.begin(), first_of_group_.end(), Value{0});
  }

  Fusion run(bool is_enabled) {
    for (Value v = 0; v < graph_.nodes.size(); ++v) place(v, is_enabled);
    if (is_enabled) sink(graph_, fusion_, [this](const Group& group) { return validate(group); });
    for (const Value output : graph_.outputs) materialise(base_of(graph_, output));
    for (Value v = 0; v < graph_.nodes.size(); ++v) materialise_operands(v);
    return std::move(fusion_);
  }

 private:
  [[nodiscard]] bool needs_no_memory(Value v) const {
    return jit::needs_no_memory(graph_, fusion_, v);
  }

  [[nodiscard]] bool is_groupable(const Node& node) const {
    if (node.kind != Node::Kind::op || element_count(node.spec.shape) == 0) return false;
    for (const Value input : node.inputs) {
      if (element_count(graph_[input].spec.shape) == 0) return false;
    }
    if (node.op->kind == OpKind::reduce)
      return !is_arg(node.op->combine) && reduced_loops_merge(node);
    if (node.op->has_checks) return false;
    return (node.op->kind == OpKind::elementwise || node.op->kind == OpKind::create) &&
           node.op->formula.emit != nullptr;
  }

  [[nodiscard]] static Dims axes_of(const Node& node) { return std::get<Dims>(node.attrs[0]); }

  /// The domain of a reduce node: its input's shape without sizes 1, and which of its axes are
  /// reduced.
  [[nodiscard]] std::pair<Shape, Dims> reduction_domain(const Node& node) const {
    const Shape& shape = graph_[node.inputs[0]].spec.shape;
    const Dims axes = normalize_axes(node.op->name, axes_of(node), shape.size());
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

  [[nodiscard]] bool reduced_loops_merge(const Node& node) const {
    const auto [domain, reduced] = reduction_domain(node);
    if (reduced.empty()) return false;
    for (int i = 1; i < reduced.size(); ++i) {
      if (reduced[i] != reduced[i - 1] + 1) return false;
    }
    return true;
  }

  [[nodiscard]] bool is_uniform(const Node& node) const {
    return node.op->kind == OpKind::elementwise && element_count(node.spec.shape) == 1 &&
           !node.inputs.empty() &&
           std::ranges::all_of(node.inputs, [&](Value input) { return needs_no_memory(input); });
  }

  void place(Value v, bool is_enabled) {
    const Node& node = graph_[v];
    if (!is_groupable(node)) return;
    if (is_uniform(node)) {
      fusion_.is_uniform[v] = true;
      return;
    }
    Group group;
    if (node.op->kind == OpKind::reduce) {
      std::tie(group.domain, group.reduced) = reduction_domain(node);
      const Shape& shape = graph_[node.inputs[0]].spec.shape;
      group.order =
          reduction_order_for(shape, normalize_axes(node.op->name, axes_of(node), shape.size()));
      group.members.push_back({.value = v, .level = Stage::Level::row, .stage = 0, .maps = {}});
      if (!validate(group)) return;
    } else {
      group.domain = squeezed(node.spec.shape);
      group.members.push_back({.value = v, .level = Stage::Level::element, .stage = 0, .maps = {}});
    }
    fusion_.group_of[v] = static_cast<int>(fusion_.groups.size());
    fusion_.groups.push_back(std::move(group));
    if (!is_enabled) return;
    for (const Value input : node.inputs) try_join(v, input);
  }

  /// Tries to bring the group that makes `input` together with the group of `v`, which reads it.
  void try_join(Value v, Value input) {
    std::vector<Map> maps;
    const Value base = base_of(graph_, input, &maps);
    const int from = fusion_.group_of[base];
    const int to = fusion_.group_of[v];
    if (from < 0 || from == to || has_path_through_others(from, to)) return;
    const bool reduces = graph_[v].op->kind == OpKind::reduce;
    if (!reduces) maps.push_back({nullptr, graph_[v].spec.shape});
    std::optional<Group> merged = merge(to, from, v, base, maps);
    if (!merged) return;
    for (const Member& member : merged->members) fusion_.group_of[member.value] = to;
    note_extent(merged->members.front().value, merged->members.back().value);
    fusion_.groups[static_cast<std::size_t>(to)] = std::move(*merged);
    fusion_.groups[static_cast<std::size_t>(from)] = {};
  }

  [[nodiscard]] std::optional<Group> merge(int to, int from, Value v, Value base,
                                           const std::vector<Map>& maps) const {
    const Group& reader = fusion_.groups[static_cast<std::size_t>(to)];
    Group producer = fusion_.groups[static_cast<std::size_t>(from)];
    const Member& read_by = *reader.find(v);
    const Member& made = *producer.find(base);
    if (!made.maps.empty()) return std::nullopt;
    const bool reduces = graph_[v].op->kind == OpKind::reduce;
    const bool reads_elements = reduces || read_by.level == Stage::Level::element;
    const Shape& seen = reduces ? graph_[graph_[v].inputs[0]].spec.shape : graph_[v].spec.shape;
    const bool same_points = is_identity(graph_[base].spec.shape, maps, seen);

    if (producer.order != Order::none && reader.order == Order::none) {
      return reader_joins_reduction(reader, producer, made, same_points, maps, seen);
    }
    if (producer.order == Order::none) {
      if (same_points && read_by.maps.empty()) {
        return unite(reader, producer, reads_elements ? Stage::Level::element : Stage::Level::row);
      }
      if (!reads_elements || !is_private(producer, base, graph_[v], maps)) return std::nullopt;
      for (Member& member : producer.members) {
        member.maps.insert(member.maps.end(), maps.begin(), maps.end());
        member.maps.insert(member.maps.end(), read_by.maps.begin(), read_by.maps.end());
      }
      return unite(reader, producer, Stage::Level::element);
    }
    // Two reductions: the reader's goes over the same domain as the producer's.
    if (reader.domain != producer.domain || reader.reduced != producer.reduced ||
        reader.order != producer.order) {
      return std::nullopt;
    }
    if (made.level == Stage::Level::element && reads_elements && !same_points) return std::nullopt;
    if (made.level == Stage::Level::row && reads_elements &&
        !reads_rows(producer, made, maps, seen))
      return std::nullopt;
    if (made.level == Stage::Level::row && !reads_elements && !same_points) return std::nullopt;
    return unite(reader, producer, std::nullopt);
  }

  /// `reader`, elementwise, takes part in the reduction that makes what it reads.
  [[nodiscard]] std::optional<Group> reader_joins_reduction(const Group& reader,
                                                            const Group& producer,
                                                            const Member& made, bool same_points,
                                                            const std::vector<Map>& maps,
                                                            const Shape& seen) const {
    const bool has_maps =
        std::ranges::any_of(reader.members, [](const Member& m) { return !m.maps.empty(); });
    if (has_maps) return std::nullopt;
    if (made.level == Stage::Level::element) {
      if (!same_points) return std::nullopt;
      return unite(producer, reader, Stage::Level::element);
    }
    if (same_points && reader.domain == row_shape(producer))
      return unite(producer, reader, Stage::Level::row);
    if (!reads_rows(producer, made, maps, seen)) return std::nullopt;
    return unite(producer, reader, Stage::Level::element);
  }

  static Shape row_shape(const Group& group) {
    Shape rows;
    for (int i = 0; i < group.domain.size(); ++i) {
      if (!contains(group.reduced, i)) rows.push_back(group.domain[i]);
    }
    return rows;
  }

  /// True if `made`, once per row, is read at each point of the domain by the value of its own row.
  [[nodiscard]] bool reads_rows(const Group& group, const Member& made,
                                const std::vector<Map>& maps, const Shape& seen) const {
    if (squeezed(seen) != squeezed(group.domain)) return false;
    const Shape& shape = graph_[made.value].spec.shape;
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

  [[nodiscard]] int uses_of(const Map& map) const {
    return uses_[static_cast<std::size_t>(map.view - graph_.nodes.data())];
  }

  /// True if nothing but this one reader looks at what the group makes, so that it can be made
  /// where it is read.
  [[nodiscard]] bool is_private(const Group& group, Value made, const Node& reader,
                                const std::vector<Map>& maps) const {
    if (element_count(graph_[made].spec.shape) < element_count(reader.spec.shape)) return false;
    for (const Map& map : maps) {
      if (map.view != nullptr && uses_of(map) != 1) return false;
    }
    std::vector<int> inside(group.members.size(), 0);
    for (const Member& member : group.members) {
      for (const Value input : graph_[member.value].inputs) {
        std::vector<Map> views;
        const Member* const read = group.find(base_of(graph_, input, &views));
        if (read == nullptr) continue;
        if (std::ranges::all_of(views, [&](const Map& map) { return uses_of(map) == 1; }))
          ++inside[static_cast<std::size_t>(read - group.members.data())];
      }
    }
    for (std::size_t m = 0; m < group.members.size(); ++m) {
      const Value value = group.members[m].value;
      if (uses_[value] != (value == made ? 1 : inside[m])) return false;
    }
    return true;
  }

  /// Both groups as one, if a loop nest can express it. Members of `other` that are elementwise get
  /// `level`.
  [[nodiscard]] std::optional<Group> unite(const Group& main, const Group& other,
                                           std::optional<Stage::Level> level) const {
    if (main.members.size() + other.members.size() > most_members) return std::nullopt;
    Group united = main;
    const Shape& expected = level == Stage::Level::row ? row_shape(main) : main.domain;
    if (other.order == Order::none && level && other.members.front().maps.empty() &&
        squeezed(other.domain) != squeezed(expected)) {
      return std::nullopt;
    }
    for (Member member : other.members) {
      if (other.order == Order::none && level) member.level = *level;
      united.members.push_back(std::move(member));
    }
    std::ranges::sort(united.members, {}, &Member::value);
    set_stages(united);
    if (!validate(united)) return std::nullopt;
    return united;
  }

  /// Numbers the passes over the row: see Member::stage.
  void set_stages(Group& group) const {
    for (Member& member : group.members) {
      const Node& node = graph_[member.value];
      const bool reads_elements =
          member.level == Stage::Level::element || node.op->kind == OpKind::reduce;
      member.stage = 0;
      for (const Value input : node.inputs) {
        const Member* read = group.find(base_of(graph_, input));
        if (read == nullptr) continue;
        const int after = read->level == Stage::Level::row && reads_elements ? 1 : 0;
        member.stage = std::max(member.stage, read->stage + after);
      }
    }
  }

  [[nodiscard]] bool validate(const Group& group) const {
    int passes = 0;
    for (const Member& member : group.members) passes = std::max(passes, member.stage);
    if (group.order == Order::sequential) {
      // Rows are visited many at a time: only producers and what follows per row take part.
      const bool is_simple =
          std::ranges::all_of(group.members, [](const Member& m) { return m.stage == 0; });
      if (!is_simple) return false;
    }
    if (passes > 0 &&
        element_count(group.domain) / std::max<int64_t>(element_count(row_shape(group)), 1) >
            longest_lone_row &&
        element_count(row_shape(group)) < 8) {
      return false;
    }
    std::vector<Value> leaves;
    for (const Member& member : group.members) {
      const Node& node = graph_[member.value];
      if (node.op->kind == OpKind::create &&
          !is_walkable(group, member, position_access(graph_, member)))
        return false;
      for (const Value input : node.inputs) {
        if (!is_readable(group, member, input)) return false;
        const Value base = base_of(graph_, input);
        if (group.find(base) == nullptr && !needs_no_memory(base) &&
            std::ranges::find(leaves, base) == leaves.end()) {
          leaves.push_back(base);
        }
      }
    }
    return leaves.size() <= most_streams;
  }

  /// True if what the member reads of another member is the value at the very point, or of the very
  /// row, that is being computed. In y - transpose(y) it reads y at two points: only one of them is
  /// at hand, so y must be in memory.
  [[nodiscard]] bool reads_present_point(const Group& group, const Member& member,
                                         Value input) const {
    std::vector<Map> maps;
    const Value base = base_of(graph_, input, &maps);
    const Member& made = *group.find(base);
    const bool reduces = graph_[member.value].op->kind == OpKind::reduce;
    if (!reduces) maps.push_back({nullptr, graph_[member.value].spec.shape});
    maps.insert(maps.end(), member.maps.begin(), member.maps.end());
    const Shape& shape = graph_[base].spec.shape;
    const Access whole = {shape, strides_of(shape), 0};
    const std::optional<Access> seen = through(whole, maps, f32);
    if (!seen) return false;
    const bool at_elements = reduces || member.level == Stage::Level::element;
    if (made.level == Stage::Level::element) {
      const std::optional<Access> present = through(whole, made.maps, f32);
      return at_elements && present && present->offset == seen->offset &&
             squeezed(*present) == squeezed(*seen);
    }
    const Strides rows = strides_of(row_shape(group));
    Strides expected;
    int row = 0;
    for (int i = 0; i < group.domain.size(); ++i) {
      const bool is_reduced = contains(group.reduced, i);
      const int64_t stride = is_reduced ? 0 : rows[row++];
      if (group.domain[i] != 1 && (at_elements || !is_reduced)) expected.push_back(stride);
    }
    return seen->offset == 0 && squeezed(*seen) == expected;
  }

  /// True if the member can read this input from memory (or need not), with the reduced axes as one
  /// loop.
  [[nodiscard]] bool is_readable(const Group& group, const Member& member, Value input) const {
    if (needs_no_memory(input)) return true;
    if (group.find(base_of(graph_, input)) != nullptr) {
      return reads_present_point(group, member, input);
    }
    return is_walkable(group, member, leaf_access(graph_, member, input));
  }

  /// True if the member can walk through the loops of the group like this: strides express it, with
  /// the reduced axes as one loop.
  [[nodiscard]] bool is_walkable(const Group& group, const Member& member,
                                 const std::optional<Access>& access) const {
    if (!access) return false;
    const bool is_row =
        member.level == Stage::Level::row && graph_[member.value].op->kind != OpKind::reduce;
    if (is_row || group.reduced.size() < 2) return true;
    const Strides strides = squeezed(*access);
    for (int i = 1; i < group.reduced.size(); ++i) {
      const int axis = static_cast<int>(group.reduced[i]);
      if (strides[axis - 1] != strides[axis] * group.domain[axis]) return false;
    }
    return true;
  }

  /// True if what one group makes reaches the other by way of a node outside both.
  [[nodiscard]] bool has_path_through_others(int a, int b) const {
    return reaches(a, b) || reaches(b, a);
  }

  /// A value before which nothing depends on `value`: no group has members on both sides of it.
  [[nodiscard]] Value start_of(Value value) const {
    while (first_of_group_[value] < value) value = first_of_group_[value];
    return value;
  }

  void note_extent(Value first, Value last) {
    for (Value v = first; v <= last; ++v) first_of_group_[v] = std::min(first_of_group_[v], first);
  }

  /// True if going up from the operands of group `start`, leaving it, one comes to `goal` through a
  /// third.
  [[nodiscard]] bool reaches(int start, int goal) const {
    const std::vector<Member>& goals = fusion_.groups[static_cast<std::size_t>(goal)].members;
    const Value end = start_of(goals.front().value);
    ++search_;
    std::vector<Value> open;
    const auto push_operands = [&](Value v, bool is_direct) {
      for (const Value input : graph_[v].inputs) {
        const Value base = base_of(graph_, input);
        if (base < end) continue;
        const int group = fusion_.group_of[base];
        if (is_direct && (group == start || group == goal)) continue;
        if (seen_[base] != search_) {
          seen_[base] = search_;
          open.push_back(base);
        }
      }
    };
    for (const Member& member : fusion_.groups[static_cast<std::size_t>(start)].members)
      push_operands(member.value, true);
    while (!open.empty()) {
      const Value v = open.back();
      open.pop_back();
      const int group = fusion_.group_of[v];
      if (group == goal) return true;
      if (group < 0) {
        push_operands(v, false);
        continue;
      }
      for (const Member& member : fusion_.groups[static_cast<std::size_t>(group)].members)
        push_operands(member.value, false);
    }
    return false;
  }

  void materialise(Value v) {
    fusion_.is_materialised[v] = true;
    if (fusion_.is_uniform[v] && fusion_.group_of[v] < 0) {
      fusion_.group_of[v] = static_cast<int>(fusion_.groups.size());
      fusion_.groups.push_back(
          {.order = Order::none,
           .domain = {},
           .reduced = {},
           .members = {{.value = v, .level = Stage::Level::element, .stage = 0, .maps = {}}}});
    }
  }

  void materialise_operands(Value v) {
    const Node& node = graph_[v];
    if (node.kind != Node::Kind::op || node.op->kind == OpKind::view) return;
    const int group = fusion_.group_of[v];
    for (const Value input : node.inputs) {
      const Value base = base_of(graph_, input);
      if (group >= 0 && (needs_no_memory(input) || fusion_.group_of[base] == group)) continue;
      if (fusion_.is_uniform[v] && needs_no_memory(input)) continue;
      materialise(base);
    }
    if (group < 0 && !fusion_.is_uniform[v]) materialise(v);
  }

  const Graph& graph_;
  std::vector<int> uses_;
  Fusion fusion_;
  std::vector<Value> first_of_group_;   ///< per value: of those groups that reach across it
  mutable std::vector<uint64_t> seen_;  ///< per value: the last search that came by
  mutable uint64_t search_ = 0;
};

}  // namespace

const Member* Group::find(Value value) const {
  const auto found = std::ranges::lower_bound(members, value, {}, &Member::value);
  return found != members.end() && found->value == value ? &*found : nullptr;
}

bool needs_no_memory(const Graph& graph, const Fusion& fusion, Value value) {
  const Node& node = graph[value];
  const bool is_scalar = (node.kind == Node::Kind::input && node.spec.is_weak) ||
                         (node.kind == Node::Kind::constant && element_count(node.spec.shape) == 1);
  return is_scalar || fusion.is_uniform[value];
}

std::optional<Access> position_access(const Graph& graph, const Member& member) {
  const Shape& shape = graph[member.value].spec.shape;
  return through(Access{shape, strides_of(shape), 0}, member.maps, i64);
}

std::optional<Access> leaf_access(const Graph& graph, const Member& member, Value input) {
  std::vector<Map> maps;
  const Value base = base_of(graph, input, &maps);
  const Node& source = graph[base];
  if (graph[member.value].op->kind != OpKind::reduce)
    maps.push_back({nullptr, graph[member.value].spec.shape});
  maps.insert(maps.end(), member.maps.begin(), member.maps.end());
  const Strides strides = source.kind == Node::Kind::input ? source.strides
                          : source.kind == Node::Kind::constant
                              ? source.constant.internals().strides
                              : strides_of(source.spec.shape);
  return through(Access{source.spec.shape, strides, 0}, maps, source.spec.dtype);
}

Fusion fuse(const Graph& graph, bool is_enabled) {
  return Fuser(graph).run(is_enabled);
}

}  // namespace nitinol::jit
