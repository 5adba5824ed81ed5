// The order of groups, against a search through all of them.
#include "fusion/group_order.h"

#include "eager/all_ops.h"
#include "fusion/access.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <random>

using namespace nitinol;

namespace {

/// Groups as a list of numbers, asked by walking every path.
class Naive {
 public:
  explicit Naive(const fusion::Reads& reads) : reads_(reads), group_(reads.size()) {
    for (Value v = 0; v < reads.size(); ++v) group_[v] = v;
  }

  [[nodiscard]] bool are_one(Value a, Value b) const { return group_[a] == group_[b]; }
  void merge(Value from, Value to) {
    const Value old = group_[to];
    std::ranges::replace(group_, old, group_[from]);
  }
  [[nodiscard]] bool has_path_through_others(Value from, Value to) const {
    std::vector<bool> seen(group_.size(), false);
    return std::ranges::any_of(groups_read_by(group_[to]), [&](Value group) {
      return group != group_[from] && leads_to(group_[from], group, seen);
    });
  }
  [[nodiscard]] bool depends(Value from, Value to) const {
    std::vector<bool> seen(group_.size(), false);
    return leads_to(group_[from], group_[to], seen);
  }

 private:
  [[nodiscard]] std::vector<Value> groups_read_by(Value group) const {
    std::vector<Value> read;
    for (Value v = 0; v < group_.size(); ++v) {
      if (group_[v] != group) continue;
      for (const Value operand : reads_[v]) {
        if (group_[operand] != group) read.push_back(group_[operand]);
      }
    }
    return read;
  }
  [[nodiscard]] bool leads_to(Value from, Value group, std::vector<bool>& seen) const {
    if (group == from) return true;
    if (seen[group]) return false;
    seen[group] = true;
    return std::ranges::any_of(groups_read_by(group),
                               [&](Value next) { return leads_to(from, next, seen); });
  }

  const fusion::Reads& reads_;
  std::vector<Value> group_;
};

/// Values that read one or two earlier ones, most of them from not far before.
Graph random_graph(std::mt19937& random, Value inputs, Value count) {
  std::string text;
  for (Value v = 0; v < inputs; ++v) text += fmt::format("v{}: f32[4] = input; ", v);
  for (Value v = inputs; v < count; ++v) {
    const Value reach = random() % 4 == 0 ? v : std::min<Value>(v, 6);
    const auto operand = [&] { return v - 1 - static_cast<Value>(random() % reach); };
    text += random() % 3 == 0 ? fmt::format("v{} = exp v{}; ", v, operand())
                              : fmt::format("v{} = add v{} v{}; ", v, operand(), operand());
  }
  return parse(text + fmt::format("return v{}", count - 1), all_ops());
}

}  // namespace

TEST_CASE("a third group between two is found, whatever has merged", "[jit][fusion]") {
  std::mt19937 random(5);
  int paths = 0;
  int merges = 0;
  for (int round = 0; round < 300; ++round) {
    constexpr Value inputs = 2;
    const Graph graph = random_graph(random, inputs, 60);
    const fusion::Reads reads(graph, fusion::bases_of(graph));
    fusion::GroupOrder order(reads);
    Naive naive(reads);
    const auto ask = [&](Value from, Value to) {
      if (from < inputs || naive.are_one(from, to)) return;
      INFO("round " << round << ", from " << from << " to " << to);
      const bool expected = naive.has_path_through_others(from, to);
      REQUIRE(order.has_path_through_others(from, to) == expected);
      ++(expected ? paths : merges);
      if (expected || random() % 4 == 0) return;
      order.merge(from, to);
      naive.merge(from, to);
    };
    for (Value v = inputs; v < reads.size(); ++v) {
      order.add(v);
      for (const Value operand : reads[v]) ask(operand, v);
      const Value earlier = inputs + static_cast<Value>(random() % (v - inputs + 1));
      for (const Value operand : reads[earlier]) ask(operand, earlier);
    }
  }
  CHECK(paths > 1000);
  CHECK(merges > 1000);
}

TEST_CASE("groups of which neither depends on the other are united", "[jit][fusion]") {
  std::mt19937 random(6);
  int refused = 0, united = 0;
  for (int round = 0; round < 300; ++round) {
    constexpr Value inputs = 4, count = 40;
    const Graph graph = random_graph(random, inputs, count);
    const fusion::Reads reads(graph, fusion::bases_of(graph));
    fusion::GroupOrder order(reads);
    Naive naive(reads);
    for (Value v = inputs; v < count; ++v) order.add(v);
    for (int i = 0; i < 40; ++i) {
      const Value a = inputs + static_cast<Value>(random() % (count - inputs)),
                  b = inputs + static_cast<Value>(random() % (count - inputs));
      if (naive.are_one(a, b)) continue;
      INFO("round " << round << ", " << a << " and " << b);
      const bool is_free = !naive.depends(a, b) && !naive.depends(b, a);
      REQUIRE(order.unite(a, b) == is_free);
      if (is_free) naive.merge(a, b);
      ++(is_free ? united : refused);
    }
  }
  CHECK(refused > 1000);
  CHECK(united > 1000);
}

TEST_CASE("values are read through views", "[jit][fusion]") {
  const Graph graph = parse(
      "x: f32[4, 3] = input; t = exp x; u = permute t axes=[1, 0]; w = permute u axes=[1, 0]; "
      "y = add w x; return y",
      all_ops());
  const fusion::Reads reads(graph, fusion::bases_of(graph));
  CHECK(std::ranges::equal(reads[4], std::vector<Value>{1, 0}));
  CHECK(reads[2].empty());
}

TEST_CASE("a path is taken for granted after a long search, not before", "[jit][fusion]") {
  // `a` is made first and read last, by what a long chain that does not depend on it ends in.
  const auto has_path = [](int length) {
    std::string text = "x: f32[4] = input; a = exp x; c0 = exp x; ";
    for (int i = 1; i < length; ++i) text += fmt::format("c{} = exp c{}; ", i, i - 1);
    const Graph graph = parse(text + fmt::format("y = add a c{}; return y", length - 1), all_ops());
    const fusion::Reads reads(graph, fusion::bases_of(graph));
    fusion::GroupOrder order(reads);
    for (Value v = 1; v < reads.size(); ++v) order.add(v);
    return order.has_path_through_others(1, static_cast<Value>(reads.size() - 1));
  };
  CHECK_FALSE(has_path(2000));
  CHECK(has_path(3000));
}
