// What is moved to the group that reads it, and what stays.
#include "fusion/postpone.h"

#include "eager/all_ops.h"
#include "tests/jit/calls.h"
#include "tests/jit/passes/pass_text.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// "exp mul | sum", as fuse() leaves them: postponing is its last part.
std::string groups(std::string_view text) {
  const Graph graph = parse(text, all_ops());
  const fusion::Fusion fusion = fusion::fuse(graph, true);
  std::vector<const fusion::Group*> list;
  for (const fusion::Group& group : fusion.groups) {
    if (!group.members.empty()) list.push_back(&group);
  }
  std::ranges::sort(list, {}, [](const fusion::Group* group) { return group->members[0].value; });
  std::string out;
  for (const fusion::Group* group : list) {
    out += out.empty() ? "" : " | ";
    for (const fusion::Member& member : group->members) {
      out += &member == group->members.data() ? "" : " ";
      out += graph[member.value].op->name;
      // The tables agree with each other.
      CHECK(&fusion.groups[static_cast<std::size_t>(fusion.group_of[member.value])] == group);
    }
    CHECK(std::ranges::is_sorted(group->members, {}, &fusion::Member::value));
  }
  return out;
}

const std::string barrier =
    "x: f32[16, 16] = input; t = tanh x; q = square t; s = sub x q; w = matmul t t; ";

}  // namespace

TEST_CASE("a chain moves as a whole to its only reader", "[jit][postpone]") {
  // t is read there anyway.
  CHECK(groups(barrier + "y = mul w s; z = add y t; return z") == "tanh | square sub mul add");
  CHECK(groups("x: f32[16, 16] = input; t = tanh x; a = square t; b = neg a; c = sub x b; "
               "w = matmul t t; y = mul w c; z = add y t; return z") ==
        "tanh | square neg sub mul add");
}

TEST_CASE("what two groups read, a result, or a library call reads stays", "[jit][postpone]") {
  CHECK(groups(barrier + "y = mul w s; v = matmul y y; z = mul v s; return z") ==
        "tanh square sub | mul | mul");
  CHECK(groups(barrier + "y = mul w s; return y s") == "tanh square sub | mul");
  CHECK(groups(barrier + "v = matmul s s; y = mul w v; return y") == "tanh square sub | mul");
}

TEST_CASE("what is read at other points stays", "[jit][postpone]") {
  CHECK(groups(barrier + "p = permute s axes=[1, 0]; y = mul w p; return y") ==
        "tanh square sub | mul");
}

TEST_CASE("a value stays if another as large would have to be kept for it", "[jit][postpone]") {
  CHECK(groups(barrier + "y = mul w s; return y") == "tanh square sub | mul");
}

TEST_CASE("a value stays if too much would be read for it that is not read there",
          "[jit][postpone]") {
  const std::string three =
      "x: f32[16, 16] = input; a: f32[16, 16] = input; b: f32[16, 16] = input; t = tanh x; "
      "q = mul t a; r = mul q b; s = sub x r; w = matmul t t; y = mul w s; z = add y t; ";
  CHECK(groups(three + "return z") == "tanh mul mul sub | mul add");
  CHECK(groups(three + "v = add z a; return v") == "tanh | mul mul sub mul add add");
  // Whether it is read there is asked of the readers, or, where these are more, of the group.
  CHECK(groups(three + "v = add z a; k = matmul a a; l = matmul k a; return v l") ==
        "tanh | mul mul sub mul add add");
  CHECK(groups(three + "k = matmul a a; l = matmul k a; return z l") ==
        "tanh mul mul sub | mul add");
}

TEST_CASE("functions whose work is moved keep their bits", "[jit][postpone]") {
  const auto f = [](const Tensor& x, const Tensor& y) {
    const Tensor t = tanh(x);
    const Tensor s = x - square(t);
    const Tensor w = matmul(t, y);
    const Tensor u = w * s;
    return std::pair(u + sum(u, {1}, keepdims), matmul(u, t) - s);
  };
  const Tensor x = reshape(sin(arange(0, 1600, 1, f32)), {40, 40});
  const auto g = compile(f);
  const auto [a, b] = settle(g, x, x * 0.5);
  const auto [c, d] = f(x, x * 0.5);
  CHECK(same_bits(a, c));
  CHECK(same_bits(b, d));
}
