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
#include "jit/group_order.h"
#include "jit/nest_rules.h"
#include "jit/pieces.h"
#include "jit/sink.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace nitinol::jit {
namespace {

/// Operations on numbers that are done again wherever the result is read.
constexpr std::size_t largest_uniform = 16;
/// Operands of a kernel; backends take some more.
constexpr std::size_t most_operands = 120;
/// Members of each part of a group that needs more operands. One reads at most three values.
constexpr std::size_t members_of_part = most_operands / 4;

bool contains(const Dims& axes, int axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

class Fuser {
 public:
  explicit Fuser(const Graph& graph)
      : graph_(graph),
        uses_(use_counts(graph)),
        fusion_({.bases = bases_of(graph)}),
        rules_(graph, fusion_),
        reads_(graph, fusion_.bases),
        order_(reads_) {
    const std::size_t count = graph.nodes.size();
    uniform_size_.assign(count, 0);
    fusion_.group_of.assign(count, -1);
    fusion_.is_uniform.assign(count, false);
    fusion_.is_materialised.assign(count, false);
  }

  Fusion run(bool is_enabled) {
    for (Value v = 0; v < graph_.nodes.size(); ++v) place(v, is_enabled);
    if (is_enabled) {
      sink(graph_, fusion_, [this](const Group& group) { return rules_.check(group).has_value(); });
    }
    for (const Value output : graph_.outputs) materialise(fusion_.bases[output]);
    materialise_what_steps_read();
    if (cut_large_groups()) materialise_what_steps_read();
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
    if (node.op->has_checks) return node.op->check.emit != nullptr || node.op->lookup != nullptr;
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

  /// How many operations on numbers make `node`, if it is a number made of numbers: else 0.
  [[nodiscard]] std::size_t size_as_uniform(const Node& node) const {
    if (node.op->kind != OpKind::elementwise || element_count(node.spec.shape) != 1 ||
        node.inputs.empty())
      return 0;
    std::size_t size = 1;
    for (const Value input : node.inputs) {
      if (!needs_no_memory(input)) return 0;
      size += uniform_size_[input];
    }
    return size;
  }

  /// The group that `v` is by itself; no members if no kernel does that.
  [[nodiscard]] Group alone(Value v) const {
    const Node& node = graph_[v];
    Group group;
    if (node.op->kind == OpKind::reduce) {
      std::tie(group.domain, group.reduced) = reduction_domain(node);
      const Shape& shape = graph_[node.inputs[0]].spec.shape;
      group.order =
          reduction_order_for(shape, normalize_axes(node.op->name, axes_of(node), shape.size()));
      group.members.push_back({.value = v, .level = Stage::Level::row, .stage = 0, .maps = {}});
    } else {
      group.domain = squeezed(node.spec.shape);
      group.members.push_back({.value = v, .level = Stage::Level::element, .stage = 0, .maps = {}});
    }
    return group;
  }

  int add_group(Group group, Contents contents) {
    const int number = static_cast<int>(fusion_.groups.size());
    for (const Member& member : group.members) fusion_.group_of[member.value] = number;
    fusion_.groups.push_back(std::move(group));
    contents_.push_back(std::move(contents));
    return number;
  }

  void place(Value v, bool is_enabled) {
    const Node& node = graph_[v];
    if (node.kind == Node::Kind::op && node.op->kind != OpKind::view) order_.add(v);
    if (!is_groupable(node)) return;
    uniform_size_[v] = size_as_uniform(node);
    if (uniform_size_[v] > 0 && uniform_size_[v] <= largest_uniform) {
      fusion_.is_uniform[v] = true;
      return;
    }
    uniform_size_[v] = 0;
    Group group = alone(v);
    std::optional<Contents> contents = rules_.check(group);
    if (!contents) return;
    add_group(std::move(group), std::move(*contents));
    if (!is_enabled) return;
    const std::size_t first = node.op->lookup != nullptr ? 1 : 0;  // what is looked up is in memory
    for (std::size_t k = first; k < node.inputs.size(); ++k) try_join(v, node.inputs[k]);
  }

  /// Tries to bring the group that makes `input` together with the group of `v`, which reads it.
  void try_join(Value v, Value input) {
    const Value base = fusion_.bases[input];
    const int from = fusion_.group_of[base];
    const int to = fusion_.group_of[v];
    if (from < 0 || from == to || would_be_too_large(from, to) ||
        order_.has_path_through_others(base, v))
      return;
    std::vector<Map> maps;
    static_cast<void>(base_of(graph_, input, &maps));
    if (append(v, from, base, maps)) return;
    const bool reduces = graph_[v].op->kind == OpKind::reduce;
    if (!reduces) maps.push_back(broadcast_to(graph_[v]));
    std::optional<Group> merged = merge(to, from, v, base, maps);
    if (!merged) return;
    std::optional<Contents> contents = rules_.check(*merged);
    if (!contents) return;
    for (const Member& member : merged->members) fusion_.group_of[member.value] = to;
    order_.merge(base, v);
    group(to) = std::move(*merged);
    contents_[static_cast<std::size_t>(to)] = std::move(*contents);
    group(from) = {};
    contents_[static_cast<std::size_t>(from)] = {};
  }

  [[nodiscard]] Group& group(int number) {
    return fusion_.groups[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] const Group& group(int number) const {
    return fusion_.groups[static_cast<std::size_t>(number)];
  }

  [[nodiscard]] bool would_be_too_large(int a, int b) const {
    if (group(a).members.size() + group(b).members.size() > most_members) return true;
    Contents both;
    both.instructions = contents_[static_cast<std::size_t>(a)].instructions +
                        contents_[static_cast<std::size_t>(b)].instructions;
    return !both.is_small_enough();
  }

  /// What most merges are, in time that does not depend on the group's size: `v`, elementwise and
  /// in a group by itself, becomes the last member of group `from`, whose `base` it reads as it is.
  bool append(Value v, int from, Value base, const std::vector<Map>& maps) {
    const int own = fusion_.group_of[v];
    Group& into = group(from);
    const bool is_plain = maps.empty() && graph_[base].spec.shape == graph_[v].spec.shape;
    if (!is_plain || into.order != Order::none || group(own).order != Order::none ||
        group(own).members.size() != 1 || !into.find(base)->maps.empty())
      return false;
    Contents grown = contents_[static_cast<std::size_t>(from)];
    into.members.push_back(group(own).members[0]);
    if (!rules_.add(into, into.members.back(), grown) || !grown.is_small_enough()) {
      into.members.pop_back();
      return false;
    }
    contents_[static_cast<std::size_t>(from)] = std::move(grown);
    fusion_.group_of[v] = from;
    fusion_.groups.pop_back();  // v's own is the newest
    contents_.pop_back();
    order_.merge(base, v);
    return true;
  }

  [[nodiscard]] std::optional<Group> merge(int to, int from, Value v, Value base,
                                           const std::vector<Map>& maps) const {
    const Group& reader = group(to);
    Group producer = group(from);
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
      const bool may_repeat = graph_[v].op->lookup != nullptr && is_cheap(from);
      if (!reads_elements || has_checks(producer) ||
          !is_private(producer, base, graph_[v], maps, may_repeat)) {
        return std::nullopt;
      }
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

  /// A view may not see all that has to be checked.
  [[nodiscard]] bool has_checks(const Group& group) const {
    return std::ranges::any_of(group.members, [this](const Member& member) {
      return graph_[member.value].op->has_checks;
    });
  }

  [[nodiscard]] int uses_of(const Map& map) const {
    return uses_[static_cast<std::size_t>(map.view - graph_.nodes.data())];
  }

  /// Indices are computed again for each element of a row, or by code generators once for it.
  [[nodiscard]] bool is_cheap(int number) const {
    return contents_[static_cast<std::size_t>(number)].instructions <= largest_uniform;
  }

  /// True if nothing but this one reader looks at what the group makes, so that it can be made
  /// where it is read; which is no oftener than now, or may be.
  [[nodiscard]] bool is_private(const Group& group, Value made, const Node& reader,
                                const std::vector<Map>& maps, bool may_repeat) const {
    const bool repeats = element_count(graph_[made].spec.shape) < element_count(reader.spec.shape);
    if (repeats && !may_repeat) return false;
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
        const Member* read = group.find(fusion_.bases[input]);
        if (read == nullptr) continue;
        const int after = read->level == Stage::Level::row && reads_elements ? 1 : 0;
        member.stage = std::max(member.stage, read->stage + after);
      }
    }
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
    if (node.op->lookup != nullptr) materialise(fusion_.bases[node.inputs[0]]);
    for (const Value input : node.inputs) {
      const Value base = fusion_.bases[input];
      if (group >= 0 && (needs_no_memory(input) || fusion_.group_of[base] == group)) continue;
      if (fusion_.is_uniform[v] && needs_no_memory(input)) continue;
      materialise(base);
    }
    if (group < 0 && !fusion_.is_uniform[v]) materialise(v);
  }

  void materialise_what_steps_read() {
    for (Value v = 0; v < graph_.nodes.size(); ++v) materialise_operands(v);
  }

  // ---- groups that need more operands than a kernel has

  /// True if there were such. What a group stores is known only when all have been made.
  bool cut_large_groups() {
    bool has_cut = false;
    for (int number = 0; number < static_cast<int>(fusion_.groups.size()); ++number) {
      if (rules_.operands_of(group(number)) <= most_operands || group(number).members.size() == 1)
        continue;
      cut(number);
      has_cut = true;
    }
    return has_cut;
  }

  /// Elementwise groups become parts in the order of the program, others what each member is alone.
  void cut(int number) {
    const Group whole = std::exchange(group(number), {});
    const bool has_maps =
        std::ranges::any_of(whole.members, [](const Member& m) { return !m.maps.empty(); });
    if (whole.order == Order::none && !has_maps) {
      for (std::size_t i = 0; i < whole.members.size(); i += members_of_part) {
        Group part = {.order = Order::none, .domain = whole.domain, .reduced = {}, .members = {}};
        const std::size_t end = std::min(i + members_of_part, whole.members.size());
        part.members.assign(whole.members.begin() + static_cast<std::ptrdiff_t>(i),
                            whole.members.begin() + static_cast<std::ptrdiff_t>(end));
        add_group(std::move(part), {});
      }
      return;
    }
    for (const Member& member : whole.members) {
      fusion_.group_of[member.value] = -1;
      Group group = alone(member.value);
      if (rules_.check(group)) add_group(std::move(group), {});
    }
  }

  const Graph& graph_;
  std::vector<int> uses_;
  Fusion fusion_;
  NestRules rules_;
  Reads reads_;
  GroupOrder order_;
  std::vector<Contents> contents_;         ///< per group
  std::vector<std::size_t> uniform_size_;  ///< per value: see size_as_uniform
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
  const Node& reader = graph[member.value];
  const DType dtype = graph[input].spec.dtype;
  std::optional<Access> access = memory_access(graph, input);
  if (access && reader.op->kind != OpKind::reduce)
    access = through(*access, broadcast_to(reader), dtype);
  if (!access || member.maps.empty()) return access;
  return through(*access, member.maps, dtype);
}

std::optional<LookedUp> looked_up(const Graph& graph, const Member& member) {
  const Node& node = graph[member.value];
  const Node& table = graph[node.inputs[0]];
  const std::optional<Access> whole = memory_access(graph, node.inputs[0]);
  if (!whole) return std::nullopt;
  const Lookup lookup =
      node.op->lookup(table.spec.shape, whole->strides, node.spec.shape, node.attrs);
  const Access chosen = {node.spec.shape, lookup.strides, whole->offset};
  const std::optional<Access> access = through(chosen, member.maps, table.spec.dtype);
  if (!access) return std::nullopt;
  return LookedUp{.rows = lookup.rows, .step = lookup.step, .access = *access};
}

Fusion fuse(const Graph& graph, bool is_enabled) {
  Fusion fusion = Fuser(graph).run(is_enabled);
  if (is_enabled) fusion.pieces = pieces_of(graph, fusion);
  return fusion;
}

}  // namespace nitinol::jit
