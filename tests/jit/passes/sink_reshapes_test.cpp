#include "jit/passes/sink_reshapes.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/jit/passes/pass_text.h"

using namespace nitinol;
using namespace nitinol::test;

namespace {

std::string sunk(std::string_view text) {
  return after_cleaned(jit::sink_reshapes, text);
}

const std::string copied =
    "a: f32[2, 3] = input; b: f32[3, 2] = permute a axes=[1, 0]; c: f32[3, 2] = copy b; ";

}  // namespace

TEST_CASE("sink_reshapes computes in the shape of the copy", "[jit][pass]") {
  CHECK(sunk(copied + "r = reshape c shape=[6]; y = tanh r; return y") ==
        copied + "d: f32[3, 2] = tanh c; e: f32[6] = reshape d shape=[6]; return e");
  // What has been made of it may join; so may a number.
  CHECK(sunk(copied + "n: f32[] = input; r = reshape c shape=[6]; g = gt r n; m = mul r n; "
                      "y = where g r m; return y") ==
        copied +
            "d: f32[] = input; e: bool[3, 2] = gt c d; f: f32[3, 2] = mul c d; "
            "g: f32[3, 2] = where e c f; h: f32[6] = reshape g shape=[6]; return h");
  const auto stays = [](const std::string& text) { CHECK(sunk(text) == text); };
  // Another tensor; another copy, of another shape; one shape seen as two others.
  stays(copied +
        "d: f32[6] = reshape c shape=[6]; e: f32[6] = input; f: f32[6] = add d e; return f");
  stays(copied +
        "d: f32[6] = reshape c shape=[6]; e: f32[1, 6] = input; "
        "f: f32[1, 6] = copy e; g: f32[6] = reshape f shape=[6]; h: f32[6] = add d g; return h");
  stays(copied +
        "d: f32[1, 6] = reshape c shape=[1, 6]; e: f32[6, 1] = reshape c shape=[6, 1]; "
        "f: f32[6, 6] = add d e; return f");
  stays(
      "a: f32[6] = input; b: f32[2, 3] = reshape a shape=[2, 3]; c: f32[2, 3] = tanh b; return c");
}

TEST_CASE("what is made of a repeated tensor is one kernel with the copy", "[jit][pass]") {
  const auto f = [](const Tensor& x) -> Tensor {
    const Tensor y = tile(x, {2, 3});
    return matmul(where(y > 0, y, y * 0.1), permute(y, {1, 0}));
  };
  const auto g = compile(f, {.check = Check::never});
  const Tensor x = randn({5, 4});
  for (int call = 0; call < 4; ++call) CHECK(same_bits(g(x), f(x)));
  const jit::PlanReport plan = g.explain().signatures.at(0).plan;
  REQUIRE(plan.steps.size() == 2);
  CHECK(plan.steps[0].ops.size() == 4);  // with the copy
}
