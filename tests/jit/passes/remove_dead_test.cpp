#include "jit/passes/remove_dead.h"

#include "nitinol.h"
#include "tests/jit/passes/pass_text.h"

using namespace nitinol;
using namespace nitinol::test;

namespace {

std::string cleaned(std::string_view text) {
  return after(jit::remove_dead, text);
}

}  // namespace

TEST_CASE("remove_dead drops what no output needs", "[jit][pass]") {
  CHECK(cleaned("a: f32[4] = input; b = exp a; c = neg b; d = sqrt a; return d") ==
        "a: f32[4] = input; b: f32[4] = sqrt a; return b");
  CHECK(cleaned("a: f32[4] = input; b: f32[] = constant 2; return a") ==
        "a: f32[4] = input; return a");
}

TEST_CASE("remove_dead keeps inputs, whose position is their meaning", "[jit][pass]") {
  const std::string text = "a: f32[4] = input; b: f32[2] = input; return b";
  CHECK(cleaned(text) == text);
}

TEST_CASE("remove_dead keeps ops with checks and what they read", "[jit][pass]") {
  const std::string text =
      "a: i32[4] = input; b: i32[4] = neg a; c: i32[4] = check_nonzero b checker=1; "
      "return a";
  CHECK(cleaned(text) == text);
}

TEST_CASE("remove_dead does not change what is needed", "[jit][pass]") {
  const std::string text = "a: f32[4] = input; b: f32[4] = exp a; c: f32[4] = add b b; return c b";
  CHECK(cleaned(text) == text);
}

TEST_CASE("dead code costs nothing in a compiled function", "[jit][pass]") {
  const auto f = [](const Tensor& x) {
    static_cast<void>(exp(x));
    return x * 2.0;
  };
  const std::string graph = check_end_to_end("remove_dead", f, arange(0, 10, 1, f32));
  CHECK_THAT(graph, !Catch::Contains("exp"));
}
