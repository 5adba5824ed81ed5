#include "jit/passes/simplify.h"

#include "nitinol.h"
#include "tests/jit/passes/pass_text.h"

using namespace nitinol;
using namespace nitinol::test;

namespace {

std::string simplified(std::string_view text) {
  return after_cleaned(jit::simplify, text);
}

/// Checks that nothing happens.
void check_kept(const std::string& text) {
  CHECK(simplified(text) == to_string(parse(text, all_ops())));
}

}  // namespace

TEST_CASE("simplify reads past views that change nothing", "[jit][pass]") {
  const std::string expected = "a: f32[2, 3] = input; b: f32[2, 3] = exp a; return b";
  for (const std::string views :
       {"b = permute a axes=[1, 0]; c = permute b axes=[1, 0]", "c = reshape a shape=[2, 3]",
        "c = expand a shape=[2, 3]", "c = slice a starts=[0, 0] sizes=[2, 3] steps=[1, 1]",
        "b = slice a starts=[1, 0] sizes=[2, 3] steps=[-1, 1]; "
        "c = slice b starts=[1, 0] sizes=[2, 3] steps=[-1, 1]",
        "b = reshape a shape=[6]; c = reshape b shape=[2, 3]",
        "b = reshape a shape=[2, 1, 3]; d = permute b axes=[1, 0, 2]; c = reshape d shape=[2, "
        "3]"}) {
    CAPTURE(views);
    CHECK(simplified("a: f32[2, 3] = input; " + views + "; e = exp c; return e") == expected);
  }
}

TEST_CASE("simplify keeps views that change something", "[jit][pass]") {
  check_kept("a: f32[3, 3] = input; b = permute a axes=[1, 0]; c = exp b; return c");
  check_kept("a: f32[4] = input; b = slice a starts=[3] sizes=[4] steps=[-1]; c = exp b; return c");
  check_kept(
      "a: f32[2, 2, 2] = input; b = permute a axes=[1, 2, 0]; c = permute b axes=[1, 2, 0]; "
      "d = exp c; return d");
  check_kept("a: f32[1] = input; b = expand a shape=[4]; c = exp b; return c");
}

TEST_CASE("simplify reads past casts there and back that lose nothing", "[jit][pass]") {
  const auto there_and_back = [](const std::string& from, const std::string& to) {
    return "a: " + from + "[4] = input; b = cast a dtype=" + to +
           " weak=false; c = cast b dtype=" + from +
           " weak=false; d = copy c; e = eq d d; return e";
  };
  for (const auto& [from, to] : {std::pair("f16", "f32"),
                                 {"bf16", "f64"},
                                 {"f32", "f64"},
                                 {"i16", "f32"},
                                 {"i32", "f64"},
                                 {"u8", "i16"},
                                 {"u8", "bf16"},
                                 {"bool", "i8"},
                                 {"bool", "f16"}}) {
    CAPTURE(from, to);
    CHECK_THAT(simplified(there_and_back(from, to)), Catch::Contains("= eq a a"));
  }
  for (const auto& [from, to] : {std::pair("f32", "f16"),
                                 {"f64", "f32"},
                                 {"i32", "f32"},
                                 {"i64", "f64"},
                                 {"i8", "u8"},
                                 {"i16", "f16"},
                                 {"f16", "bf16"},
                                 {"i32", "bool"},
                                 {"f32", "i64"}}) {
    CAPTURE(from, to);
    CHECK_THAT(simplified(there_and_back(from, to)), Catch::Contains("= eq c c"));
  }
}

TEST_CASE("simplify knows from the instructions what gives its operand back", "[jit][pass]") {
  CHECK(simplified("a: f32[2] = input; b = neg a; c = neg b; d = exp c; return d") ==
        "a: f32[2] = input; b: f32[2] = exp a; return b");
  CHECK(simplified("a: i8[2] = input; b = bitwise_not a; c = bitwise_not b; d = abs c; return d") ==
        "a: i8[2] = input; b: i8[2] = abs a; return b");
  CHECK(simplified("a: bool[2] = input; b: f32[2] = input; c = where a b b; d = exp c; return d") ==
        "a: bool[2] = input; b: f32[2] = input; c: f32[2] = exp b; return c");
}

TEST_CASE("simplify keeps what could change a bit", "[jit][pass]") {
  check_kept("a: f32[2] = input; b = abs a; c = abs b; return c");
  check_kept("a: f32[2] = input; b: f32[] = constant 0; c = add a b; return c");
  check_kept("a: f32[2] = input; b: f32[] = constant 1; c = mul a b; return c");
  check_kept("a: f32[2] = input; b = sub a a; return b");
  check_kept("a: bool[2, 2] = input; b: f32[2] = input; c = where a b b; d = exp c; return d");
  check_kept("a: f32[2] = input; b = exp a; c = log b; return c");
}

TEST_CASE("simplify gives a copy's source only to those who cannot see its layout", "[jit][pass]") {
  const std::string head = "a: f32[2, 3] = input; b = permute a axes=[1, 0]; c = copy b; ";
  CHECK_THAT(simplified(head + "d = exp c; return d"), Catch::Contains("= exp b"));
  CHECK_THAT(simplified(head + "d = sum c axes=[0] keepdims=false; return d"),
             Catch::Contains("= sum b"));
  check_kept(head + "d = matmul a c; return d");
  check_kept(head + "return c");
  check_kept(head + "d = reshape c shape=[6]; e = exp d; return e");
}

TEST_CASE("simplify gives a contiguous result's copy to everybody", "[jit][pass]") {
  CHECK(simplified(
            "a: f32[2, 3] = input; b = exp a; c = copy b; d = reshape c shape=[6]; return d c") ==
        "a: f32[2, 3] = input; b: f32[2, 3] = exp a; c: f32[6] = reshape b shape=[6]; return c b");
}

TEST_CASE("a view or copy of an argument stays a result of its own", "[jit][pass]") {
  check_kept("a: f32[2, 3] = input; b = reshape a shape=[2, 3]; return b");
  check_kept("a: f32[2, 3] = input; b = copy a; return b");
}

TEST_CASE("a double transpose costs nothing in a compiled function", "[jit][pass]") {
  const auto f = [](const Tensor& x) {
    return exp(transpose(transpose(reshape(x, {3, 4}), 0, 1), 0, 1)) * 2.0;
  };
  const std::string graph = check_end_to_end("simplify", f, arange(0, 12, 1, f32));
  CHECK_THAT(graph, !Catch::Contains("permute"));
}
