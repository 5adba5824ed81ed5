// The order of steps.
#include "fusion/units.h"

#include "eager/all_ops.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace nitinol;

namespace {

/// The value that each unit is named after, in order: its own, or the first of its group.
std::vector<Value> order_of(const Graph& graph, bool is_fused = true) {
  const fusion::Fusion fusion = fusion::fuse(graph, is_fused);
  std::vector<Value> order;
  for (const fusion::Unit& unit : fusion::units_in_order(graph, fusion, false))
    order.push_back(unit.node);
  return order;
}

}  // namespace

TEST_CASE("units run as they were recorded, each after what it reads", "[jit][plan]") {
  // exp and add are one group, which starts before the product that it needs.
  CHECK(order_of(parse("x: f32[4, 4] = input; a = exp x; p = matmul x x; b = add p a; "
                       "q = matmul b b; return q",
                       all_ops())) == std::vector<Value>{2, 1, 4});
  CHECK(order_of(parse("x: f32[4, 4] = input; p = matmul x x; q = matmul x p; r = matmul x x; "
                       "s = matmul r q; return s p",
                       all_ops())) == std::vector<Value>{1, 2, 3, 4});
}

TEST_CASE("what is ordered comes as early as what it reads lets it", "[jit][plan]") {
  // The gradient of the last layer is sent before that of the first is computed.
  const Graph graph = parse(
      "x: f32[4, 4] = input; g = matmul x x; f = matmul g x; "
      "a = rank_gather g group=0 ranks=2 partner=0 call=0 shape=[4, 4]; "
      "b = rank_gather f group=0 ranks=2 partner=0 call=0 shape=[4, 4]; return a b f",
      all_ops());
  const fusion::Fusion fusion = fusion::fuse(graph, true);
  const auto order = [&](bool ordered_early) {
    std::vector<Value> values;
    for (const fusion::Unit& unit : fusion::units_in_order(graph, fusion, ordered_early))
      values.push_back(unit.node);
    return values;
  };
  CHECK(order(true) == std::vector<Value>{1, 3, 2, 4});
  CHECK(order(false) == std::vector<Value>{1, 2, 3, 4});
}

TEST_CASE("a chain of units may be longer than the stack", "[jit][plan]") {
  constexpr Value length = 200'000;
  Graph graph = parse("x: f32[4] = input; y = exp x; return y", all_ops());
  while (graph.nodes.size() < length) {
    Node node = graph.nodes.back();
    node.inputs = {static_cast<Value>(graph.nodes.size() - 1)};
    graph.nodes.push_back(std::move(node));
  }
  // Only the last member of the group, which comes first, reads the chain.
  fusion::Fusion fusion = fusion::fuse(graph, false);
  const int first = fusion.group_of[1];
  const int last = fusion.group_of[length - 1];
  auto& members = fusion.groups[static_cast<std::size_t>(first)].members;
  members[0].value = length - 1;
  fusion.group_of[length - 1] = first;
  fusion.groups[static_cast<std::size_t>(last)] = {};
  const std::vector<fusion::Unit> units = fusion::units_in_order(graph, fusion, false);
  CHECK(units.size() == length - 2);
  CHECK(units.back().group == first);
}
