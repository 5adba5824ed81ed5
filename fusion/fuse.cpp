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
// the row. At the end groups that read the same, as sin(x) and cos(x) do, become one.
// Being greedy has a price, part of which postpone.cpp gives back.
#include "fusion/fuse.h"

#include "core/loop_nest.h"
#include "fusion/group_order.h"
#include "fusion/groups.h"
#include "fusion/nest_rules.h"
#include "fusion/pieces.h"
#include "fusion/postpone.h"
#include "fusion/siblings.h"

#include <algorithm>
#include <span>
#include <utility>

namespace nitinol::fusion {
namespace {

/// Operations on numbers that are done again wherever the result is read.
constexpr std::size_t largest_recomputed = 16;
/// Operands of a kernel; backends take some more.
constexpr std::size_t most_operands = 120;
/// Members of each part of a group that needs more operands. One reads at most three values.
constexpr std::size_t members_of_part = most_operands / 4;

/// Groups in the making.
struct Grouping {
  const Graph& graph;
  const DeviceLimits& limits;
  std::vector<int> uses = use_counts(graph);
  Fusion fusion = {.bases = bases_of(graph),
                   .group_of = std::vector<int>(graph.nodes.size(), -1),
                   .is_recomputed = std::vector<bool>(graph.nodes.size(), false),
                   .is_materialised = std::vector<bool>(graph.nodes.size(), false)};
  NestRules rules = NestRules(graph, fusion, limits);
  Reads reads = Reads(graph, fusion.bases);
  GroupOrder order = GroupOrder(reads);
  std::vector<Contents> contents = {};  ///< per group
  /// Per value: how many operations on numbers make it, if it is a number made of numbers.
  std::vector<std::size_t> recomputed_size = std::vector<std::size_t>(graph.nodes.size(), 0);

  [[nodiscard]] Group& group(int number) { return fusion.groups[static_cast<std::size_t>(number)]; }
  [[nodiscard]] Contents& contents_of(int number) {
    return contents[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] bool needs_no_memory(Value v) const {
    return fusion::needs_no_memory(graph, fusion, v);
  }
};

/// How many operations on numbers make `node`, if it is a number made of numbers: else 0.
std::size_t recomputed_size_of(const Grouping& grouping, const Node& node) {
  if (node.op->kind != OpKind::elementwise || element_count(node.spec.shape) != 1 ||
      node.inputs.empty())
    return 0;
  std::size_t size = 1;
  for (const Value input : node.inputs) {
    if (!grouping.needs_no_memory(input)) return 0;
    size += grouping.recomputed_size[input];
  }
  return size;
}

void add_group(Grouping& grouping, Group group, Contents contents) {
  const int number = static_cast<int>(grouping.fusion.groups.size());
  for (const Member& member : group.members) grouping.fusion.group_of[member.value] = number;
  grouping.fusion.groups.push_back(std::move(group));
  grouping.contents.push_back(std::move(contents));
}

bool would_be_too_large(Grouping& grouping, int a, int b) {
  if (grouping.group(a).members.size() + grouping.group(b).members.size() > most_members)
    return true;
  Contents both;
  both.instructions = grouping.contents_of(a).instructions + grouping.contents_of(b).instructions;
  return !both.is_small_enough();
}

/// What most merges are, in time that does not depend on the group's size: `v`, elementwise and in
/// a group by itself, becomes the last member of group `from`, whose `base` it reads as it is.
bool append(Grouping& grouping, Value v, int from, Value base, const std::vector<Map>& maps) {
  const Group& own = grouping.group(grouping.fusion.group_of[v]);
  Group& into = grouping.group(from);
  const bool is_plain =
      maps.empty() && grouping.graph[base].spec.shape == grouping.graph[v].spec.shape;
  if (!is_plain || into.order != Order::none || own.order != Order::none ||
      own.members.size() != 1 || !into.find(base)->maps.empty())
    return false;
  Contents grown = grouping.contents_of(from);
  into.members.push_back(own.members[0]);
  if (!grouping.rules.add(into, into.members.back(), grown) || !grown.is_small_enough()) {
    into.members.pop_back();
    return false;
  }
  grouping.contents_of(from) = std::move(grown);
  grouping.fusion.group_of[v] = from;
  grouping.fusion.groups.pop_back();  // v's own is the newest
  grouping.contents.pop_back();
  grouping.order.merge(base, v);
  return true;
}

/// Tries to bring the group that makes `input` together with the group of `v`, which reads it.
void try_join(Grouping& grouping, Value v, Value input) {
  const Value base = grouping.fusion.bases[input];
  const int from = grouping.fusion.group_of[base];
  const int to = grouping.fusion.group_of[v];
  if (from < 0 || from == to || would_be_too_large(grouping, from, to) ||
      grouping.order.has_path_through_others(base, v))
    return;
  std::vector<Map> maps;
  static_cast<void>(base_of(grouping.graph, input, &maps));
  if (append(grouping, v, from, base, maps)) return;
  // Indices are computed again for each element of a row, or by code generators once for it.
  const bool may_repeat = grouping.graph[v].op->lookup != nullptr &&
                          grouping.contents_of(from).instructions <= largest_recomputed;
  std::optional<Group> both = merged(grouping.graph, grouping.fusion.bases, grouping.uses,
                                     {.reader = grouping.group(to),
                                      .producer = grouping.group(from),
                                      .v = v,
                                      .made = base,
                                      .maps = maps,
                                      .may_repeat = may_repeat});
  if (!both) return;
  std::optional<Contents> contents = grouping.rules.check(*both);
  if (!contents) return;
  for (const Member& member : both->members) grouping.fusion.group_of[member.value] = to;
  grouping.order.merge(base, v);
  grouping.group(to) = std::move(*both);
  grouping.contents_of(to) = std::move(*contents);
  grouping.group(from) = {};
  grouping.contents_of(from) = {};
}

/// True if `v` takes what another repetition of a function has made. Such sums go on as repetitions
/// end: in one kernel at the end of all, what each of them made would be in memory at once.
bool takes_from_repetition(const Grouping& grouping, const Node& node) {
  return std::ranges::any_of(node.inputs, [&](Value input) {
    const uint32_t made_by = grouping.graph[grouping.fusion.bases[input]].repetition;
    return made_by != 0 && made_by != node.repetition;
  });
}

void place(Grouping& grouping, Value v, bool is_enabled) {
  const Node& node = grouping.graph[v];
  if (comes_after(node)) grouping.order.add(v);
  if (!is_groupable(grouping.graph, node, grouping.limits)) return;
  const std::size_t recomputed = recomputed_size_of(grouping, node);
  if (recomputed > 0 && recomputed <= largest_recomputed) {
    grouping.recomputed_size[v] = recomputed;
    grouping.fusion.is_recomputed[v] = true;
    return;
  }
  Group group = alone(grouping.graph, v);
  std::optional<Contents> contents = grouping.rules.check(group);
  if (!contents) return;
  add_group(grouping, std::move(group), std::move(*contents));
  if (!is_enabled || takes_from_repetition(grouping, node)) return;
  const std::size_t first = node.op->lookup != nullptr ? 1 : 0;  // what is looked up is in memory
  for (std::size_t k = first; k < node.inputs.size(); ++k) try_join(grouping, v, node.inputs[k]);
}

/// Reductions that have come together since may be all that reads, through views, what another
/// group makes: the sums of x and of x * x over a permuted x.
void join_readers_of_views(Grouping& grouping) {
  for (Value v = 0; v < grouping.graph.nodes.size(); ++v) {
    const Node& node = grouping.graph[v];
    const bool is_grouped = node.kind == Node::Kind::op && grouping.fusion.group_of[v] >= 0;
    if (is_grouped && reduces(node) && is_view(grouping.graph[node.inputs[0]]))
      try_join(grouping, v, node.inputs[0]);
  }
}

// ---- what must be in memory

void materialise(Grouping& grouping, Value v) {
  grouping.fusion.is_materialised[v] = true;
  if (grouping.fusion.is_recomputed[v] && grouping.fusion.group_of[v] < 0)
    add_group(grouping, alone(grouping.graph, v), {});
}

void materialise_operands(Grouping& grouping, Value v) {
  const Node& node = grouping.graph[v];
  if (node.kind != Node::Kind::op || is_view(node)) return;
  const Fusion& fusion = grouping.fusion;
  const int group = fusion.group_of[v];
  if (node.op->lookup != nullptr) materialise(grouping, fusion.bases[node.inputs[0]]);
  for (const Value input : node.inputs) {
    const Value base = fusion.bases[input];
    const bool is_number = grouping.needs_no_memory(input);
    if (group >= 0 && (is_number || fusion.group_of[base] == group)) continue;
    if (fusion.is_recomputed[v] && is_number) continue;
    materialise(grouping, base);
  }
  if (group < 0 && !fusion.is_recomputed[v]) materialise(grouping, v);
}

void materialise_what_steps_read(Grouping& grouping) {
  for (Value v = 0; v < grouping.graph.nodes.size(); ++v) materialise_operands(grouping, v);
}

// ---- groups that need more operands than a kernel has

/// True if the member is computed at the points of the domain and needs the whole of no row: what
/// lies between two such can be left in memory.
bool is_cut_anywhere(const Grouping& grouping, const Member& member) {
  const bool is_of_points =
      member.level == Stage::Level::element || reduces(grouping.graph[member.value]);
  return is_of_points && member.stage == 0 && member.maps.empty();
}

/// These members of `whole`, which can be cut anywhere.
Group part_of(const Grouping& grouping, const Group& whole, std::span<const Member> members) {
  Group part = {.order = Order::none,
                .domain = whole.domain,
                .reduced = {},
                .members = {members.begin(), members.end()}};
  const bool has_reduction = std::ranges::any_of(
      members, [&](const Member& m) { return reduces(grouping.graph[m.value]); });
  if (has_reduction) {
    part.order = whole.order;
    part.reduced = whole.reduced;
  }
  return part;
}

/// Makes a group of each of these members.
void separate(Grouping& grouping, std::span<const Member> members) {
  for (const Member& member : members) {
    grouping.fusion.group_of[member.value] = -1;
    Group group = alone(grouping.graph, member.value);
    if (grouping.rules.check(group)) add_group(grouping, std::move(group), {});
  }
}

/// Makes parts, in the order of the program, of the members that can be cut anywhere, and of others
/// what each is alone. What the former read of the latter is of no reduction: neither waits for the
/// other in turn.
void cut(Grouping& grouping, int number) {
  Group whole = std::exchange(grouping.group(number), {});
  const bool has_maps =
      std::ranges::any_of(whole.members, [](const Member& m) { return !m.maps.empty(); });
  const auto others = std::ranges::stable_partition(
      whole.members, [&](const Member& m) { return !has_maps && is_cut_anywhere(grouping, m); });
  const std::span<const Member> of_points(whole.members.begin(), others.begin());
  for (std::size_t i = 0; i < of_points.size(); i += members_of_part) {
    const auto some = of_points.subspan(i, std::min(members_of_part, of_points.size() - i));
    Group part = part_of(grouping, whole, some);
    if (part.order != Order::none && !grouping.rules.check(part))
      separate(grouping, some);
    else
      add_group(grouping, std::move(part), {});
  }
  separate(grouping, others);
}

/// False if few members settle it: each has its inputs, a result, a value kept for a later pass,
/// and three numbers or places if it looks up.
bool may_need_many(const Grouping& grouping, const Group& group) {
  std::size_t most = 0;
  for (const Member& member : group.members) most += grouping.graph[member.value].inputs.size() + 5;
  return most > most_operands;
}

/// True if there were such. What a group stores is known only when all have been made.
bool cut_large_groups(Grouping& grouping) {
  bool has_cut = false;
  for (int number = 0; number < static_cast<int>(grouping.fusion.groups.size()); ++number) {
    const Group& group = grouping.group(number);
    if (group.members.size() == 1 || !may_need_many(grouping, group) ||
        grouping.rules.operands_of(group) <= most_operands)
      continue;
    cut(grouping, number);
    has_cut = true;
  }
  return has_cut;
}

}  // namespace

const Member* Group::find(Value value) const {
  const auto found = std::ranges::lower_bound(members, value, {}, &Member::value);
  return found != members.end() && found->value == value ? &*found : nullptr;
}

bool is_number(const Node& node) {
  return (node.kind == Node::Kind::input && node.spec.is_weak) ||
         (node.kind == Node::Kind::constant && element_count(node.spec.shape) == 1);
}

bool needs_no_memory(const Graph& graph, const Fusion& fusion, Value value) {
  return is_number(graph[value]) || fusion.is_recomputed[value];
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

bool reduced_axes_merge(const Group& group, const Access& access) {
  return group.reduced.size() < 2 ||
         walks_as_one(along(group.domain, group.reduced), along(squeezed(access), group.reduced));
}

Fusion fuse(const Graph& graph, bool is_enabled, const DeviceLimits& limits) {
  Grouping grouping = {.graph = graph, .limits = limits};
  for (Value v = 0; v < graph.nodes.size(); ++v) place(grouping, v, is_enabled);
  if (is_enabled) {
    join_readers_of_views(grouping);
    unite_siblings(graph, grouping.fusion, grouping.contents, grouping.order);
    postpone(graph, grouping.fusion,
             [&](const Group& group) { return grouping.rules.check(group).has_value(); });
  }
  for (const Value output : graph.outputs) materialise(grouping, grouping.fusion.bases[output]);
  materialise_what_steps_read(grouping);
  if (cut_large_groups(grouping)) materialise_what_steps_read(grouping);
  if (is_enabled) grouping.fusion.pieces = pieces_of(graph, grouping.fusion);
  grouping.fusion.reads = std::move(grouping.reads);
  return std::move(grouping.fusion);
}

}  // namespace nitinol::fusion
