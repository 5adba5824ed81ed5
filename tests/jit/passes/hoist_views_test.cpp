#include "jit/passes/hoist_views.h"

#include "nitinol.h"
#include "tests/jit/passes/pass_text.h"

using namespace nitinol;
using namespace nitinol::test;

namespace {

std::string hoisted(std::string_view text) {
  return after(jit::hoist_views, text);
}

const std::string halves =
    "c = slice b starts=[0] sizes=[2] steps=[1]; d = slice b starts=[2] sizes=[2] steps=[1]; ";
const std::string rows =
    "c = slice b starts=[0, 0] sizes=[2, 3] steps=[1, 1]; "
    "d = slice b starts=[2, 0] sizes=[2, 3] steps=[1, 1]; ";

}  // namespace

TEST_CASE("hoist_views computes parts where they are read", "[jit][pass]") {
  CHECK(hoisted("a: f32[4] = input; b = exp a; " + halves + "e = add c d; return e") ==
        "a: f32[4] = input; b: f32[2] = slice a starts=[0] sizes=[2] steps=[1]; "
        "c: f32[2] = exp b; d: f32[2] = slice a starts=[2] sizes=[2] steps=[1]; "
        "e: f32[2] = exp d; f: f32[2] = add c e; "
        "return f");
}

TEST_CASE("hoist_views moves past chains and broadcasts", "[jit][pass]") {
  const std::string text = hoisted(
      "a: f32[4, 3] = input; r: f32[3] = input; s: f32[] = constant 2; p = add a r; "
      "b = mul p s; " +
      rows + "e = add c d; return e");
  CHECK(text.find("f32[4, 3] = add") == std::string::npos);
  CHECK(text.find("f32[2, 3] = add") != std::string::npos);
  CHECK(text.find("f32[4, 3] = expand") != std::string::npos);
}

TEST_CASE("hoist_views leaves what is read whole, twice, or by a library call", "[jit][pass]") {
  for (const std::string& text :
       {"a: f32[4] = input; b = exp a; " + halves + "e = add c d; return e b",
        "a: f32[4] = input; b = exp a; " + halves +
            "x = slice b starts=[1] sizes=[2] steps=[1]; e = add c d; f = add e x; return f",
        "a: f32[4, 3] = input; b = exp a; " + rows +
            "t = permute d axes=[1, 0]; e = matmul c t; return e"}) {
    CHECK(hoisted(text) == after([](Graph graph) { return graph; }, text));
  }
}

TEST_CASE("hoist_views copies where a view of the whole is none of the part", "[jit][pass]") {
  // Every second column, in order again: (4, 2) in memory, which is one loop; of a part (2, -1).
  const std::string text = hoisted(
      "a: f32[3, 4] = input; b = exp a; c = slice b starts=[0, 3] sizes=[3, 2] steps=[1, -2]; "
      "d = slice c starts=[0, 1] sizes=[3, 2] steps=[1, -1]; e = reshape d shape=[6]; "
      "f = cumsum e axis=0; return f");
  CHECK(text.find("f32[3, 2] = exp") == std::string::npos);
  const auto f = [](const Tensor& x) {
    const Tensor odd = slice(x * 3 - 1, -1, {Range::open, Range::open, -2});
    return argmax(reshape(flip(odd, {-1}), {-1}), 0);
  };
  const auto g = compile(f);
  const Tensor x = reshape(arange(0, 12, 1, f32), {3, 4});
  for (int call = 0; call < 4; ++call) CHECK(same_bits(g(x), f(x)));
}

TEST_CASE("hoist_views moves past an axis of one", "[jit][pass]") {
  const std::string text =
      hoisted("a: f32[1, 4] = input; s: f32[1, 1] = input; p = mul a s; b = reshape p shape=[4]; " +
              halves + "e = add c d; return e");
  CHECK(text.find("f32[1, 4] = mul") == std::string::npos);
  CHECK(text.find("f32[2] = mul") != std::string::npos);
}

TEST_CASE("gates of a recurrent layer are computed where they are read", "[jit][pass]") {
  const Tensor b = arange(0, 8, 1, f32) * 0.1;
  const auto f = [b](const Tensor& x) {
    const Tensor all = x * 0.5 + b;
    const Tensor in = sigmoid(slice(all, 1, {0, 4}));
    return in * tanh(slice(all, 1, {4, 8}));
  };
  const std::string graph =
      check_end_to_end("hoist_views", f, reshape(arange(0, 24, 1, f32) * 0.25 - 3.0, {3, 8}));
  CHECK(graph.find("f32[3, 8] = mul") == std::string::npos);
}
