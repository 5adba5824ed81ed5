// The question is asked for every operand of every node, about graphs of any size. A search upwards
// from the reader answers it; three things keep that short.
//
// (1) The order: what comes before `from` in it cannot depend on `from`, so the search stops there.
//     What the search has passed when it ends without a path does not depend on `from` either, and
//     moves to before it; so nothing is passed twice. (Pearce and Kelly, "A dynamic topological
//     sort algorithm for directed acyclic graphs", 2007, keep such an order for edges that appear.)
// (2) A forest, made once: each value hangs below the last of its operands. A value that is below
//     one of `from` depends on it. Example: a step of backward reads what the same step of forward
//     made; between the two lie all later steps, and a search would walk through them.
// (3) A limit. A path taken for granted costs a fusion, not a result.
//
// The order is a list whose entries carry growing numbers with gaps, so that asking which of two
// comes first and moving one are both cheap.
#include "fusion/group_order.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nitinol::fusion {
namespace {

/// Groups that a search looks at before it takes a path for granted.
constexpr std::size_t longest_search = 2048;
/// Between the numbers of neighbours: of those added one after another, of those moved.
constexpr uint64_t wide_gap = uint64_t{1} << 36;
constexpr uint64_t narrow_gap = uint64_t{1} << 18;

}  // namespace

GroupOrder::GroupOrder(const Reads& reads)
    : reads_(reads),
      range_(reads.size()),
      parent_(reads.size()),
      place_(reads.size(), 0),
      before_(reads.size(), none),
      after_(reads.size(), none),
      operands_(reads.size()),
      roots_(reads.size()),
      seen_(reads.size(), 0) {
  for (Value v = 0; v < reads.size(); ++v) parent_[v] = v;
  number_forest();
}

/// Numbers the values in preorder. Parents come before their children, so that one walk back counts
/// what is below each, and one walk forth gives each its share of its parent's numbers.
void GroupOrder::number_forest() {
  const auto count = static_cast<Value>(reads_.size());
  std::vector<uint32_t> sizes(count, 1);
  std::vector<Value> above(count, none);
  for (Value v = count; v-- > 0;) {
    const std::span<const Value> operands = reads_[v];
    if (operands.empty()) continue;
    above[v] = *std::ranges::max_element(operands);
    sizes[above[v]] += sizes[v];
  }
  std::vector<uint32_t> next(count);  // number of the next child
  uint32_t next_root = 0;
  for (Value v = 0; v < count; ++v) {
    uint32_t& begin = above[v] == none ? next_root : next[above[v]];
    range_[v] = {begin, begin + sizes[v]};
    begin += sizes[v];
    next[v] = range_[v].begin + 1;
  }
}

Value GroupOrder::group_of(Value value) const {
  while (parent_[value] != value) {
    parent_[value] = parent_[parent_[value]];
    value = parent_[value];
  }
  return value;
}

std::span<const Value> GroupOrder::operands_of(Value group) const {
  return operands_[group].empty() ? reads_[group] : operands_[group];
}

/// The values of the group that are below no other of it, in the order of the forest.
std::span<const Value> GroupOrder::roots_of(const Value& group) const {
  return roots_[group].empty() ? std::span(&group, 1) : std::span<const Value>(roots_[group]);
}

/// Whether `value` is in the forest below a value of `group`.
bool GroupOrder::is_below(Value value, Value group) const {
  const std::span<const Value> roots = roots_of(group);
  const uint32_t number = range_[value].begin;
  const auto after = std::ranges::upper_bound(roots, number, {},
                                              [this](Value root) { return range_[root].begin; });
  return after != roots.begin() && number < range_[*std::prev(after)].end;
}

void GroupOrder::add(Value value) {
  place_[value] = (last_ == none ? 0 : place_[last_]) + wide_gap;
  before_[value] = last_;
  (last_ == none ? first_ : after_[last_]) = value;
  last_ = value;
}

bool GroupOrder::has_path_through_others(Value from, Value to) {
  const Value first = group_of(from);
  if (find_path(first, group_of(to))) return true;
  std::ranges::sort(found_, {}, [this](Value group) { return place_[group]; });
  put_before(first, found_);
  return false;
}

/// Without a path, `found_` is all that `to` depends on and comes after `from` in the order.
bool GroupOrder::find_path(Value from, Value to) {
  ++search_;
  seen_[from] = seen_[to] = search_;
  found_.clear();
  const auto leads_there = [&](Value operand, Value reader) {
    const Value group = group_of(operand);
    if (group == from) return reader != to;
    if (place_[group] < place_[from]) return false;
    if (is_below(operand, from)) return true;
    if (seen_[group] != search_) found_.push_back(group);
    seen_[group] = search_;
    return false;
  };
  for (const Value operand : operands_of(to)) {
    if (leads_there(operand, to)) return true;
  }
  for (std::size_t next = 0; next < found_.size(); ++next) {
    if (next == longest_search) return true;
    for (const Value operand : operands_of(found_[next])) {
      if (leads_there(operand, found_[next])) return true;
    }
  }
  return false;
}

// ---- the order

void GroupOrder::unlink(Value group) {
  (before_[group] == none ? first_ : after_[before_[group]]) = after_[group];
  (after_[group] == none ? last_ : before_[after_[group]]) = before_[group];
}

/// Moves groups, given in their order, to where they come just before `group`.
void GroupOrder::put_before(Value group, std::span<const Value> moved) {
  if (moved.empty()) return;
  for (const Value each : moved) unlink(each);
  Value last = before_[group];
  const auto start = [&] { return last == none ? 0 : place_[last]; };
  if (place_[group] - start() <= moved.size()) renumber();
  uint64_t place = start();
  const uint64_t gap = std::min(narrow_gap, (place_[group] - place) / (moved.size() + 1));
  for (const Value each : moved) {
    place_[each] = place += gap;
    before_[each] = last;
    (last == none ? first_ : after_[last]) = each;
    last = each;
  }
  after_[last] = group;
  before_[group] = last;
}

void GroupOrder::renumber() {
  uint64_t place = 0;
  for (Value group = first_; group != none; group = after_[group])
    place_[group] = place += wide_gap;
}

// ---- merging

void GroupOrder::merge(Value from, Value to) {
  const Value first = group_of(from);
  const Value second = group_of(to);
  merge_operands(first, second);
  merge_roots(first, second);
  unlink(second);
  parent_[second] = first;
}

bool GroupOrder::unite(Value a, Value b) {
  Value first = group_of(a), second = group_of(b);
  if (place_[second] < place_[first]) std::swap(first, second);
  const bool is_read = std::ranges::any_of(
      operands_of(second), [&](Value operand) { return group_of(operand) == first; });
  if (is_read || has_path_through_others(first, second)) return false;
  merge(first, second);
  return true;
}

void GroupOrder::merge_operands(Value from, Value to) {
  ++search_;
  seen_[from] = seen_[to] = search_;
  std::vector<Value> merged;
  merged.reserve(operands_of(from).size() + operands_of(to).size());
  for (const Value group : {from, to}) {
    for (const Value operand : operands_of(group)) {
      if (place_[group_of(operand)] == 0) continue;  // depends on nothing
      uint32_t& seen = seen_[group_of(operand)];
      if (seen != search_) merged.push_back(operand);
      seen = search_;
    }
  }
  operands_[from] = std::move(merged);
  operands_[to] = {};
}

void GroupOrder::merge_roots(Value from, Value to) {
  std::vector<Value> all(roots_of(from).size() + roots_of(to).size());
  std::ranges::merge(
      roots_of(from), roots_of(to), all.begin(), {},
      [this](Value root) { return range_[root].begin; },
      [this](Value root) { return range_[root].begin; });
  std::size_t kept = 0;
  for (const Value root : all) {
    if (kept == 0 || range_[root].begin >= range_[all[kept - 1]].end) all[kept++] = root;
  }
  all.resize(kept);
  roots_[from] = std::move(all);
  roots_[to] = {};
}

}  // namespace nitinol::fusion
