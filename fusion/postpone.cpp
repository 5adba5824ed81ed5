// Example: y = tanh x is read by the next layer, and backward needs 1 - y * y. Greedy grouping
// computes that together with y, because nothing else is needed for it, and then it must be stored
// until backward comes by. Backward reads y anyway; so there it costs nothing to store.
#include "fusion/postpone.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <span>

namespace nitinol::fusion {
namespace {

/// What is moved from one group to the one that reads it, and what that costs.
struct Move {
  int from = -1, to = -1;
  std::vector<Value> values;   ///< the one to be read, and what only it reads
  std::size_t held_bytes = 0;  ///< of what must be kept in memory for it longer than before
  std::size_t read_bytes = 0;  ///< of what the other group reads in addition
};

/// Per value the nodes that read it, through views, in order; the number of nodes stands for a
/// result, which is read after all else.
class Readers {
 public:
  Readers(const Graph& graph, const std::vector<Value>& bases) : end_(graph.nodes.size() + 1, 0) {
    for_each(graph, bases, [&](Value read, Value) { ++end_[read + 1]; });
    std::partial_sum(end_.begin(), end_.end(), end_.begin());
    readers_.resize(end_.back());
    // Each value's end is where its list begins, until that is filled.
    for_each(graph, bases, [&](Value read, Value reader) { readers_[end_[read]++] = reader; });
  }
  [[nodiscard]] std::span<const Value> operator[](Value value) const {
    const std::size_t begin = value == 0 ? 0 : end_[value - 1];
    return std::span(readers_).subspan(begin, end_[value] - begin);
  }

 private:
  static void for_each(const Graph& graph, const std::vector<Value>& bases,
                       FunctionRef<void(Value read, Value reader)> call) {
    const auto count = static_cast<Value>(graph.nodes.size());
    for (Value v = 0; v < count; ++v) {
      const Node& node = graph[v];
      if (node.kind != Node::Kind::op || is_view(node)) continue;
      for (const Value input : node.inputs) call(bases[input], v);
    }
    for (const Value output : graph.outputs) call(bases[output], count);
  }

  std::vector<std::size_t> end_;  ///< per value
  std::vector<Value> readers_;
};

class Postponer {
 public:
  Postponer(const Graph& graph, Fusion& fusion, FunctionRef<bool(const Group&)> is_valid)
      : graph_(graph),
        fusion_(fusion),
        is_valid_(is_valid),
        readers_(graph, fusion.bases),
        has_ordered_(has_ordered(graph)) {}

  void run() {
    for (auto v = static_cast<Value>(graph_.nodes.size()); v-- > 0;) {
      Move move = {.from = fusion_.group_of[v], .to = only_reader(v), .values = {}};
      if (move.to < 0) continue;
      plan_move(v, move);
      const std::size_t bytes = bytes_of(v);
      if (move.held_bytes < bytes && move.read_bytes <= 2 * bytes) carry_out(move);
    }
  }

 private:
  [[nodiscard]] std::size_t bytes_of(Value v) const {
    const Spec& spec = graph_[v].spec;
    return static_cast<std::size_t>(element_count(spec.shape)) * size_of(spec.dtype);
  }

  /// Whether the value is computed at each point of a group without reductions.
  [[nodiscard]] bool is_at_points(Value v) const {
    const int group = fusion_.group_of[v];
    if (group < 0 || fusion_.groups[static_cast<std::size_t>(group)].order != Order::none)
      return false;
    if (has_ordered_ && has_effect(graph_[v])) return false;
    return fusion_.groups[static_cast<std::size_t>(group)].find(v)->maps.empty();
  }

  /// The group other than its own that alone reads `v`, at the points where it is computed; or -1.
  [[nodiscard]] int only_reader(Value v) const {
    if (!is_at_points(v) || readers_[v].empty()) return -1;
    int group = -1;
    for (const Value reader : readers_[v]) {
      if (reader == graph_.nodes.size() || !is_at_points(reader)) return -1;
      const Node& node = graph_[reader];
      const bool is_direct = std::ranges::find(node.inputs, v) != node.inputs.end();
      if (!is_direct || node.spec.shape != graph_[v].spec.shape) return -1;
      if (group >= 0 && fusion_.group_of[reader] != group) return -1;
      group = fusion_.group_of[reader];
    }
    return group == fusion_.group_of[v] ? -1 : group;
  }

  void plan_move(Value v, Move& move) const {
    std::set<Value, std::greater<>> open = {v};  // readers come before what they read
    const auto is_moved = [&](Value reader) {
      return std::ranges::find(move.values, reader) != move.values.end();
    };
    while (!open.empty()) {
      const Value value = *open.begin();
      open.erase(open.begin());
      const bool is_inside = value == v || (fusion_.group_of[value] == move.from &&
                                            is_at_points(value) && !readers_[value].empty() &&
                                            std::ranges::all_of(readers_[value], is_moved));
      if (!is_inside) {
        add_cost(value, v, move);
        continue;
      }
      move.values.push_back(value);
      for (const Value input : graph_[value].inputs) {
        if (!needs_no_memory(graph_, fusion_, input)) open.insert(fusion_.bases[input]);
      }
    }
  }

  /// Whether a member of `group` reads `value`. Its members are few, the readers may be many.
  [[nodiscard]] bool is_read_in(int group, Value value) const {
    const std::vector<Member>& members = fusion_.groups[static_cast<std::size_t>(group)].members;
    if (readers_[value].size() > members.size()) {
      return std::ranges::any_of(members, [&](const Member& member) {
        return std::ranges::find(graph_[member.value].inputs, value, [&](Value input) {
                 return fusion_.bases[input];
               }) != graph_[member.value].inputs.end();
      });
    }
    return std::ranges::any_of(readers_[value], [&](Value reader) {
      return reader < graph_.nodes.size() && fusion_.group_of[reader] == group;
    });
  }

  /// The cost of reading `value` from memory where `v` was read.
  void add_cost(Value value, Value v, Move& move) const {
    if (is_read_in(move.to, value)) return;
    move.read_bytes += bytes_of(value);
    if (comes_after(graph_[value]) && readers_[value].back() < readers_[v].front())
      move.held_bytes += bytes_of(value);
  }

  void carry_out(const Move& move) {
    Group source = fusion_.groups[static_cast<std::size_t>(move.from)];
    Group target = fusion_.groups[static_cast<std::size_t>(move.to)];
    std::erase_if(source.members, [&](const Member& member) {
      return std::ranges::find(move.values, member.value) != move.values.end();
    });
    for (const Value value : move.values) target.members.push_back({.value = value, .maps = {}});
    std::ranges::sort(target.members, {}, &Member::value);
    if (source.members.empty() || target.members.size() > most_members ||
        !same_but_ones(source.domain, target.domain) || !is_valid_(target))
      return;
    for (const Value value : move.values) fusion_.group_of[value] = move.to;
    fusion_.groups[static_cast<std::size_t>(move.from)] = std::move(source);
    fusion_.groups[static_cast<std::size_t>(move.to)] = std::move(target);
  }

  const Graph& graph_;
  Fusion& fusion_;
  FunctionRef<bool(const Group&)> is_valid_;
  Readers readers_;
  const bool has_ordered_;  ///< then what may fail stays where it is: it comes before that
};

}  // namespace

void postpone(const Graph& graph, Fusion& fusion, FunctionRef<bool(const Group&)> is_valid) {
  Postponer(graph, fusion, is_valid).run();
}

}  // namespace nitinol::fusion
