#include "jit/passes/materialise_views.h"

#include "nitinol.h"
#include "tests/jit/passes/pass_text.h"

using namespace nitinol;
using namespace nitinol::test;

namespace {

std::string materialised(std::string_view text) {
  return after(jit::materialise_views, text);
}

}  // namespace

TEST_CASE("materialise_views copies before a view that strides cannot express", "[jit][pass]") {
  CHECK(materialised("a: f32[2, 3] = input; b = permute a axes=[1, 0]; c = reshape b shape=[6]; "
                     "return c") ==
        "a: f32[2, 3] = input; b: f32[3, 2] = permute a axes=[1, 0]; c: f32[3, 2] = copy b; "
        "d: f32[6] = reshape c shape=[6]; return d");
  CHECK_THAT(materialised("a: f32[2, 3] strides=[1, 2] = input; b = reshape a shape=[6]; return b"),
             Catch::Contains("copy a"));
}

TEST_CASE("materialise_views copies before a sum over axes that are not one loop", "[jit][pass]") {
  const std::string moved = "a: f32[2, 3, 4] = input; b: f32[4, 2, 3] = permute a axes=[2, 0, 1]; ";
  CHECK_THAT(materialised(moved + "c = sum b axes=[0, 1, 2] keepdims=false; return c"),
             Catch::Contains("copy b"));
  const std::string text = moved + "c: f32[4] = sum b axes=[1, 2] keepdims=false; return c";
  CHECK(materialised(text) == text);
  const auto f = [](const Tensor& x) { return sum(exp(permute(x, {2, 0, 1}))); };
  const auto g = compile(f, {.check = Check::never});
  const Tensor x = randn({3, 5, 4});
  for (int call = 0; call < 3; ++call) CHECK(same_bits(g(x), f(x)));
  const Explanation explanation = g.explain();
  for (const program::StepReport& step : explanation.signatures.at(0).plan.steps)
    CHECK(step.kind == "kernel");
}

TEST_CASE("materialise_views brings axes together that are reduced apart", "[jit][pass]") {
  const std::string x = "a: f32[2, 3, 4, 1] = input; ";
  CHECK(materialised(x + "b = sum a axes=[0, 2] keepdims=false; return b") ==
        x + "b: f32[3, 1, 2, 4] = permute a axes=[1, 3, 0, 2]; c: f32[3, 1, 2, 4] = copy b; "
            "d: f32[3, 1] = sum c axes=[2, 3] keepdims=false; return d");
  // The innermost axis stays the innermost: values are joined in another order along others.
  CHECK(materialised("a: f32[2, 3, 4, 5] = input; b = max a axes=[0, 2] keepdims=true; return b") ==
        "a: f32[2, 3, 4, 5] = input; b: f32[2, 4, 3, 5] = permute a axes=[0, 2, 1, 3]; "
        "c: f32[2, 4, 3, 5] = copy b; d: f32[3, 5] = max c axes=[0, 1] keepdims=false; "
        "e: f32[1, 3, 1, 5] = reshape d shape=[1, 3, 1, 5]; return e");
  // What lies as it is to be read needs no copy.
  CHECK(materialised("a: f32[3, 2, 4] = input; b = permute a axes=[1, 0, 2]; "
                     "c = sum b axes=[0, 2] keepdims=false; return c") ==
        "a: f32[3, 2, 4] = input; b: f32[2, 3, 4] = permute a axes=[1, 0, 2]; "
        "c: f32[3, 2, 4] = permute b axes=[1, 0, 2]; "
        "d: f32[3] = sum c axes=[1, 2] keepdims=false; return d");
  const auto f = [](const Tensor& t) {
    return std::vector<Tensor>{sum(exp(t), {0, 2}), mean(t * 2, {0, 2}, KeepDims::yes),
                               max(t, {1, 3}),      sum(t, {0, 2, 4}),
                               prod(t, {1, 4}),     sum(t, {0, 3})};
  };
  const auto g = compile(f, {.check = Check::never});
  for (const Tensor& t : {randn({3, 5, 4, 2, 6}), permute(randn({4, 6, 3, 2, 5}), {2, 4, 0, 3, 1}),
                          randn({1, 70, 3, 90, 2})}) {
    const std::vector<Tensor> expected = f(t);
    for (int call = 0; call < 3; ++call) {
      const std::vector<Tensor> results = g(t);
      for (std::size_t i = 0; i < results.size(); ++i) CHECK(same_bits(results[i], expected[i]));
    }
  }
  CHECK(g.explain().plan_calls >= 3);
}

TEST_CASE("materialise_views copies once for a chain of views", "[jit][pass]") {
  CHECK(materialised("a: f32[2, 3] = input; b = permute a axes=[1, 0]; c = reshape b shape=[6]; "
                     "d = reshape c shape=[2, 3]; return d") ==
        "a: f32[2, 3] = input; b: f32[3, 2] = permute a axes=[1, 0]; c: f32[3, 2] = copy b; "
        "d: f32[6] = reshape c shape=[6]; e: f32[2, 3] = reshape d shape=[2, 3]; return e");
}

TEST_CASE("materialise_views leaves possible views alone", "[jit][pass]") {
  for (const std::string text :
       {"a: f32[2, 3] = input; b: f32[3, 2] = permute a axes=[1, 0]; return b",
        "a: f32[2, 3] strides=[6, 2] = input; b: f32[6] = reshape a shape=[6]; return b",
        "a: f32[2, 3] = input; b: f32[3, 2] = permute a axes=[1, 0]; c: f32[3, 2] = exp b; "
        "d: f32[6] = reshape c shape=[6]; return d"}) {
    CHECK(materialised(text) == text);
  }
}

TEST_CASE("a reshape of a transposed tensor compiles", "[jit][pass]") {
  const Tensor x = reshape(arange(0, 12, 1, f32), {3, 4});
  const auto f = [](const Tensor& t) { return flatten(transpose(t, 0, 1)); };
  const auto g = compile(f);
  for (int call = 0; call < 3; ++call) CHECK(same_bits(g(x), f(x)));
  CHECK(g.explain().plan_calls == 1);
}
