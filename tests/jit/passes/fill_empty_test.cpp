#include "jit/passes/fill_empty.h"

#include "nitinol.h"
#include "tests/jit/passes/pass_text.h"

using namespace nitinol;
using namespace nitinol::test;

TEST_CASE("fill_empty makes results of nothing from a number", "[jit][pass]") {
  const auto filled = [](std::string_view text) { return after(jit::fill_empty, text); };
  CHECK(filled("a: f32[2, 0] = input; b = prod a axes=[1] keepdims=false; return b") ==
        "a: f32[2, 0] = input; b: f32[] = constant 1; c: f32[2] = expand b shape=[2]; "
        "d: f32[2] = copy c; return d");
  CHECK(filled("a: f64[2, 0] = input; b: f64[0, 3] = input; c = matmul a b; return c") ==
        "a: f64[2, 0] = input; b: f64[0, 3] = input; c: f64[] = constant 0; "
        "d: f64[2, 3] = expand c shape=[2, 3]; e: f64[2, 3] = copy d; return e");
  for (const std::string text :
       {"a: f32[2, 3] = input; b: f32[2] = sum a axes=[1] keepdims=false; return b",
        "a: f32[0, 3] = input; b: f32[0] = sum a axes=[1] keepdims=false; return b"}) {
    CHECK(filled(text) == text);
  }
}

TEST_CASE("a Plan of what has no elements gives eager's bits", "[jit][pass]") {
  const auto f = [](const Tensor& x, const Tensor& y) {
    return std::vector<Tensor>{
        sum(x, {1}),  prod(x, {1}), all(x > 0, {1}), any(x > 0, {1}),
        matmul(x, y), exp(x),       sum(x, {0}),     concat({x, ones({3, 2})}, 1),
        matmul(y, x)};
  };
  const auto g = compile(f, {.check = Check::never});
  for (const DType dtype : {f32, f64, f16, bf16}) {
    const Tensor x = zeros({3, 0}, dtype);
    const std::vector<Tensor> expected = f(x, zeros({0, 3}, dtype));
    for (int call = 0; call < 3; ++call) {
      const std::vector<Tensor> results = g(x, zeros({0, 3}, dtype));
      for (std::size_t i = 0; i < results.size(); ++i) {
        CAPTURE(name_of(dtype), i);
        CHECK(same_bits(results[i], expected[i]));
      }
    }
  }
  CHECK(g.explain().plan_calls == 4);
  const Explanation told = g.explain();
  for (const SignatureReport& signature : told.signatures) CHECK(signature.tier == Tier::traced);
}
