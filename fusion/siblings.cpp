// Grouping in the order of the program brings together what passes values on. What is left are
// groups that read the same values: of a rotation, c x - s y and s x + c y, which nothing after
// them reads together.
//
// A group runs as early as its first member. So the one that began later moves forward, and may, if
// (1) no library call after the earlier one makes what it reads, which would have to wait for it,
// and (2) it moves over no call, lest what it makes be in memory longer, or was the last to read as
// much as it makes.
//
// Groups that reduce are left: reading once gains little over loops that are as fast as memory, and
// what is updated in place may not be read again by a reduction (docs/decisions/0043).
#include "fusion/siblings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace nitinol::fusion {
namespace {

/// Values that a group of siblings reads from memory and stores, at most: processors follow about
/// as many at once.
constexpr std::size_t most_sibling_streams = 16;

class Siblings {
 public:
  Siblings(const Graph& graph, Fusion& fusion, std::vector<Contents>& contents, GroupOrder& order)
      : graph_(graph),
        fusion_(fusion),
        contents_(contents),
        order_(order),
        uses_(use_counts(graph)),
        last_reader_(graph.nodes.size(), 0) {
    calls_before_.reserve(graph.nodes.size());
    uint32_t calls = 0;
    for (Value v = 0; v < graph.nodes.size(); ++v) {
      const Node& node = graph[v];
      calls_before_.push_back(calls);
      if (node.kind != Node::Kind::op || is_view(node)) continue;
      for (const Value input : node.inputs) last_reader_[fusion.bases[input]] = v;
      if (is_call(v)) ++calls;
    }
    for (const Value output : graph.outputs) last_reader_[fusion.bases[output]] = UINT32_MAX;
  }

  void unite() {
    // By what is read: a member of the last group that reads it.
    std::vector<std::optional<Value>> readers(graph_.nodes.size());
    for (Value v = 0; v < graph_.nodes.size(); ++v) {
      if (fusion_.group_of[v] < 0 || first_of(v) != v || !may_unite(v)) continue;
      const std::vector<Value> reads = contents_of(v).reads;
      for (const Value read : reads) {
        if (!is_whole(read, group_of(v))) continue;
        std::optional<Value>& reader = readers[read];
        const bool is_one = reader && fusion_.group_of[*reader] == fusion_.group_of[v];
        if (!is_one && (!reader || !try_to_unite(*reader, v))) reader = v;
      }
    }
  }

 private:
  [[nodiscard]] Group& group_of(Value v) {
    return fusion_.groups[static_cast<std::size_t>(fusion_.group_of[v])];
  }
  [[nodiscard]] Contents& contents_of(Value v) {
    return contents_[static_cast<std::size_t>(fusion_.group_of[v])];
  }
  [[nodiscard]] Value first_of(Value v) { return group_of(v).members.front().value; }

  /// True if the group of `v` is elementwise, computes at its own points, and nothing that may
  /// fail.
  [[nodiscard]] bool may_unite(Value v) {
    const Group& group = group_of(v);
    return group.order == Order::none && std::ranges::all_of(group.members, [&](const Member& m) {
             return m.maps.empty() && graph_[m.value].op->effect == Effect::none;
           });
  }

  /// True if what is read has an element for each point, and is no repetition of fewer.
  [[nodiscard]] bool is_whole(Value read, const Group& group) const {
    const int64_t points = element_count(group.domain);
    return element_count(graph_[read].spec.shape) >= points &&
           element_count(graph_[fusion_.bases[read]].spec.shape) >= points;
  }

  /// Members that are read by others.
  [[nodiscard]] std::size_t outputs_of(const Group& group) const {
    std::map<Value, int> reads;
    for (const Member& member : group.members) {
      for (const Value input : graph_[member.value].inputs) ++reads[input];
    }
    const auto is_output = [&](const Member& m) { return uses_[m.value] > reads[m.value]; };
    return static_cast<std::size_t>(std::ranges::count_if(group.members, is_output));
  }

  /// True if the group is the last that reads as much as it makes, of what others have made.
  [[nodiscard]] bool stores_instead(const Group& group, const Contents& contents) const {
    const auto freed = std::ranges::count_if(contents.streams, [&](Value v) {
      return graph_[v].kind == Node::Kind::op && is_whole(v, group) &&
             last_reader_[v] <= group.members.back().value;
    });
    return static_cast<std::size_t>(freed) >= outputs_of(group);
  }

  [[nodiscard]] bool is_call(Value v) const {
    const Node& node = graph_[v];
    return node.kind == Node::Kind::op && !is_view(node) && fusion_.group_of[v] < 0 &&
           !fusion_.is_recomputed[v];
  }

  /// True if no call that comes after the value `place` makes what the group reads.
  [[nodiscard]] bool is_ready(const Contents& contents, Value place) const {
    return std::ranges::all_of(contents.streams, [&](Value v) {
      return !comes_after(graph_[v]) ||
             calls_before_[v] + (is_call(v) ? 1 : 0) <= calls_before_[place];
    });
  }

  /// Makes one group of those of `a` and `b` if they may be and it is of use.
  bool try_to_unite(Value a, Value b) {
    if (first_of(b) < first_of(a)) std::swap(a, b);
    Group &into = group_of(a), &from = group_of(b);
    const Value place = first_of(a);
    if (into.domain != from.domain || into.members.size() + from.members.size() > most_members ||
        graph_[a].repetition != graph_[b].repetition || !is_ready(contents_of(b), place) ||
        (calls_before_[place] != calls_before_[first_of(b)] &&
         !stores_instead(from, contents_of(b))))
      return false;
    Contents both = contents_of(a);
    both.add(contents_of(b));
    if (!both.is_small_enough() || both.streams.size() > most_sibling_streams ||
        both.streams.size() + outputs_of(into) + outputs_of(from) > most_sibling_streams ||
        !order_.unite(a, b))
      return false;
    contents_of(a) = std::move(both);
    contents_of(b) = {};
    const Group taken = std::exchange(from, {});
    for (const Member& member : taken.members) fusion_.group_of[member.value] = fusion_.group_of[a];
    into.members.insert(into.members.end(), taken.members.begin(), taken.members.end());
    std::ranges::sort(into.members, {}, &Member::value);
    return true;
  }

  const Graph& graph_;
  Fusion& fusion_;
  std::vector<Contents>& contents_;
  GroupOrder& order_;
  std::vector<int> uses_;
  std::vector<Value> last_reader_;      ///< per value
  std::vector<uint32_t> calls_before_;  ///< per value: library calls and the like before it
};

}  // namespace

void unite_siblings(const Graph& graph, Fusion& fusion, std::vector<Contents>& contents,
                    GroupOrder& order) {
  Siblings(graph, fusion, contents, order).unite();
}

}  // namespace nitinol::fusion
