// A group is as early as its first member and needs what the later ones read: a walk in depth, from
// the first unit on, puts that before it, and what it must come after besides (Reads). The walk
// keeps its own stack: a chain of units may be longer than the thread's.
#include "fusion/units.h"

#include <cstddef>

namespace nitinol::fusion {
namespace {

class Walk {
 public:
  Walk(const Graph& graph, const Fusion& fusion)
      : graph_(graph), fusion_(fusion), unit_of_(graph.nodes.size(), -1) {
    list_units();
    is_visited_.assign(units_.size(), false);
  }

  std::vector<Unit> run(bool ordered_early) {
    ordered_.reserve(units_.size());
    for (int unit = 0; ordered_early && unit < static_cast<int>(units_.size()); ++unit) {
      const Unit& each = units_[static_cast<std::size_t>(unit)];
      if (each.group >= 0 || graph_[each.node].op->effect != Effect::ordered) continue;
      visit(unit);
      while (!open_.empty()) go_on();
    }
    for (int unit = 0; unit < static_cast<int>(units_.size()); ++unit) {
      visit(unit);
      while (!open_.empty()) go_on();
    }
    return std::move(ordered_);
  }

 private:
  /// A unit that waits for what it reads.
  struct Open {
    int unit = 0;
    std::size_t member = 0, input = 0;  ///< what to look at next
  };

  void list_units() {
    std::vector<int> unit_of_group(fusion_.groups.size(), -1);
    for (Value v = 0; v < graph_.nodes.size(); ++v) {
      const Node& node = graph_[v];
      if (!comes_after(node)) continue;
      if (node.kind == Node::Kind::part) {
        unit_of_[v] = unit_of_[node.inputs[0]];
        continue;
      }
      const int group = fusion_.group_of[v];
      if (group < 0 && fusion_.is_recomputed[v]) continue;
      int& unit = group < 0 ? unit_of_[v] : unit_of_group[static_cast<std::size_t>(group)];
      if (unit < 0) {
        unit = static_cast<int>(units_.size());
        units_.push_back({group, v});
      }
      unit_of_[v] = unit;
    }
  }

  void visit(int unit) {
    if (unit < 0 || is_visited_[static_cast<std::size_t>(unit)]) return;
    is_visited_[static_cast<std::size_t>(unit)] = true;
    open_.push_back({.unit = unit});
  }

  /// Looks at what the last open unit comes after, up to one that is yet to come; without one, the
  /// unit is next.
  void go_on() {
    const std::size_t depth = open_.size();
    Open at = open_.back();
    const Unit& unit = units_[static_cast<std::size_t>(at.unit)];
    for (; at.member < size_of(unit); ++at.member, at.input = 0) {
      const std::span<const Value> before = fusion_.reads[member_of(unit, at.member)];
      while (at.input < before.size()) {
        const Value value = before[at.input++];
        open_[depth - 1] = at;
        visit(unit_of_[value]);
        if (open_.size() > depth) return;
      }
    }
    ordered_.push_back(unit);
    open_.pop_back();
  }

  [[nodiscard]] const std::vector<Member>& members_of(const Unit& unit) const {
    return fusion_.groups[static_cast<std::size_t>(unit.group)].members;
  }
  [[nodiscard]] std::size_t size_of(const Unit& unit) const {
    return unit.group < 0 ? 1 : members_of(unit).size();
  }
  [[nodiscard]] Value member_of(const Unit& unit, std::size_t number) const {
    return unit.group < 0 ? unit.node : members_of(unit)[number].value;
  }

  const Graph& graph_;
  const Fusion& fusion_;
  std::vector<Unit> units_;
  std::vector<int> unit_of_;  ///< per value: its unit, or -1
  std::vector<bool> is_visited_;
  std::vector<Open> open_;  ///< each is read by the one before
  std::vector<Unit> ordered_;
};

}  // namespace

std::vector<Unit> units_in_order(const Graph& graph, const Fusion& fusion, bool ordered_early) {
  return Walk(graph, fusion).run(ordered_early && has_ordered(graph));
}

}  // namespace nitinol::fusion
