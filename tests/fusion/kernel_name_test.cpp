// What kernels are called in debuggers and profilers.
#include "fusion/kernel_name.h"

#include "eager/all_ops.h"
#include "fusion/fuse.h"
#include "fusion/groups.h"
#include "fusion/lowering.h"
#include "nitinol.h"

#include <catch2/catch.hpp>

#include <string>

namespace nitinol::kernel_name_test {
namespace {

std::string name_of(const std::string& text) {
  const Graph graph = parse(text, all_ops());
  const fusion::Fusion fusion = fusion::fuse(graph);
  for (const fusion::Group& group : fusion.groups) {
    if (group.members.empty()) continue;
    const std::string name = fusion::kernel_name(graph, group);
    CHECK(fusion::lower(graph, fusion, group, {}).kernel.making.name == name);
    return name;
  }
  FAIL("no group");
  return {};
}

std::string chain(std::size_t length) {
  std::string text = "v0: f32[9] = input; ";
  for (std::size_t i = 0; i < length; ++i)
    text += "v" + std::to_string(i + 1) + " = " + (i % 2 == 0 ? "relu" : "neg") + " v" +
            std::to_string(i) + "; ";
  return text + "return v" + std::to_string(length);
}

}  // namespace

TEST_CASE("a kernel is called as its operations", "[fusion][tools]") {
  CHECK(name_of("a: f32[9] = input; b = mul a a; c = add b a; d = tanh c; return d") ==
        "mul_add_tanh");
  CHECK(name_of("a: f32[9, 5] = input; b = exp a; c = sum b axes=[1] keepdims=false; return c") ==
        "exp_sum");
}

TEST_CASE("the name of a long kernel has an end", "[fusion][tools]") {
  CHECK(name_of(chain(13)) == "relu_neg_relu_neg_relu_neg_relu_neg_relu_neg_relu_neg_relu");
  const std::string forty = name_of(chain(40));
  CHECK(forty == "relu_neg_relu_neg_relu_neg_relu_neg_relu_neg_relu_neg_relu_and_27_more");
  CHECK(forty.size() <= 80);
}

TEST_CASE("the name of a kernel is an identifier, whatever its operations are called",
          "[fusion][tools]") {
  Op odd = *find_op("exp");
  odd.name = "so \"odd\"\n::operator";
  Graph graph = parse("a: f32[9] = input; b = exp a; return b", all_ops());
  graph.nodes[1].op = &odd;
  fusion::Group group = fusion::alone(graph, 1);
  CHECK(fusion::kernel_name(graph, group) == "so__odd____operator");
  const std::string long_name(200, 'x');
  odd.name = long_name;
  CHECK(fusion::kernel_name(graph, group) == "ops_1");
}

}  // namespace nitinol::kernel_name_test
