#include "jit/passes/fold_constants.h"

#include "nitinol.h"
#include "tests/jit/passes/pass_text.h"

using namespace nitinol;
using namespace nitinol::test;

namespace {

std::string folded(std::string_view text) {
  return after_cleaned(jit::fold_constants, text);
}

}  // namespace

TEST_CASE("fold_constants computes what follows from constants", "[jit][pass]") {
  CHECK(folded("a: f32[] = constant 2; b: f32[] = constant 3; c = mul a b; d = neg c; return d") ==
        "a: f32[] = constant -6; return a");
  CHECK(folded("a: f32[3] = constant [1, 2, 3]; b = sum a axes=[0] keepdims=false; return b") ==
        "a: f32[] = constant 6; return a");
  CHECK(folded("a: f32[2, 2] = constant [1, 2, 3, 4]; b = permute a axes=[1, 0]; return b") ==
        "a: f32[2, 2] strides=[1, 2] = constant [1, 3, 2, 4]; return a");
}

TEST_CASE("fold_constants leaves alone what arguments reach", "[jit][pass]") {
  const std::string text = "a: f32[] = input; b: f32[] = constant 3; c: f32[] = mul a b; return c";
  CHECK(folded(text) == text);
}

TEST_CASE("fold_constants does not fold what sizes of arguments can change", "[jit][pass]") {
  for (const std::string text :
       {"a: f32[] = constant 1; b: f32[5] = expand a shape=[5]; return b",
        "a: i64[] = constant 0; b: i64[] = constant 1; c: f32[5] = arange a b shape=[5] dtype=f32; "
        "return c"}) {
    CHECK(folded(text) == text);
  }
}

TEST_CASE("fold_constants does not fold checks or what follows from them", "[jit][pass]") {
  for (const std::string value : {"0", "3"}) {
    const std::string text = "a: i32[] = constant " + value +
                             "; b: i32[] = check_nonzero a checker=1; "
                             "c: i32[] = floor_divide a b; return c";
    CHECK(folded(text) == text);
  }
}

TEST_CASE("what fold_constants does is the same for every value", "[jit][pass]") {
  for (const std::string value : {"0", "1", "-0", "nan", "inf", "0.3"}) {
    const std::string head = "a: f32[4] = input; b: f32[] = constant " + value;
    const std::string text = after_cleaned(
        jit::fold_constants, head + "; c = exp b; d = mul a c; e = add d b; return e");
    CHECK_THAT(text, Catch::EndsWith("; d: f32[4] = mul a c; e: f32[4] = add d b; return e"));
  }
}

TEST_CASE("numbers computed from numbers are computed once", "[jit][pass]") {
  const Tensor scale = full({}, 0.3, f32);
  const auto f = [scale](const Tensor& x) { return x * exp(scale * 2.0); };
  const std::string graph = check_end_to_end("fold_constants", f, arange(0, 10, 1, f32));
  CHECK_THAT(graph, !Catch::Contains("exp"));
}
