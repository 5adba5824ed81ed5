#include "jit/passes/merge_duplicates.h"

#include "jit/passes/rewrite.h"
#include "nitinol.h"
#include "tests/jit/passes/pass_text.h"

#include <optional>
#include <utility>

using namespace nitinol;
using namespace nitinol::test;

namespace {

std::string merged(std::string_view text) {
  return after(jit::merge_duplicates, text);
}

}  // namespace

TEST_CASE("merge_duplicates shares equal nodes", "[jit][pass]") {
  CHECK(merged("a: f32[4] = input; b = exp a; c = exp a; d = add b c; return d") ==
        "a: f32[4] = input; b: f32[4] = exp a; c: f32[4] = add b b; return c");
}

TEST_CASE("merge_duplicates sees duplicates of duplicates, and outputs", "[jit][pass]") {
  CHECK(merged("a: f32[4] = input; b = exp a; c = exp a; d = neg b; e = neg c; return d e") ==
        "a: f32[4] = input; b: f32[4] = exp a; c: f32[4] = neg b; return c c");
}

TEST_CASE("merge_duplicates shares what has equal attributes", "[jit][pass]") {
  CHECK(merged("a: f32[2, 2] = input; b = sum a axes=[0] keepdims=false; "
               "c = sum a axes=[0] keepdims=false; d = add b c; return d") ==
        "a: f32[2, 2] = input; b: f32[2] = sum a axes=[0] keepdims=false; c: f32[2] = add b b; "
        "return c");
}

TEST_CASE("merge_duplicates keeps what differs in operands or attributes", "[jit][pass]") {
  for (const std::string text : {"a: f32[4] = input; b: f32[4] = input; c: f32[4] = sub a b; d: "
                                 "f32[4] = sub b a; return c d",
                                 "a: f32[2, 2] = input; b: f32[2] = sum a axes=[0] keepdims=false; "
                                 "c: f32[2] = sum a axes=[1] keepdims=false; return b c"}) {
    CHECK(merged(text) == text);
  }
}

TEST_CASE("merge_duplicates never merges ops with checks", "[jit][pass]") {
  const std::string text =
      "a: i32[4] = input; b: i32[4] = check_nonzero a checker=1; "
      "c: i32[4] = check_nonzero a checker=1; return b c";
  CHECK(merged(text) == text);
}

TEST_CASE("merge_duplicates shares what has equal numbers, which stay", "[jit][pass]") {
  CHECK(merged("a: f32[4] = input; b: f32[] = constant 2; c: f32[] = constant 2; d = mul a b; "
               "e = mul a c; return d e") ==
        "a: f32[4] = input; b: f32[] = constant 2; c: f32[] = constant 2; d: f32[4] = mul a b; "
        "return d d");
  for (const std::string text :
       {"a: f32[4] = input; b: f32[] = constant 2; c: f32[] = constant 3; d: f32[4] = mul a b; "
        "e: f32[4] = mul a c; return d e",
        "a: f32[4] = input; b: f32[] = constant 0; c: f32[] = constant -0; d: f32[4] = mul a b; "
        "e: f32[4] = mul a c; return d e",
        "a: f32[4] = input; b: f32[] = constant 2; c: weak f32[] = constant 2; d: f32[4] = mul a "
        "b; e: f32[4] = mul a c; return d e"}) {
    CHECK(merged(text) == text);
  }
}

TEST_CASE("merge_duplicates merges constants that are the same tensor", "[jit][pass]") {
  Graph graph =
      parse("b: f32[] = constant 2; c: f32[] = constant 2; d = add b c; return d", all_ops());
  graph.nodes[1].constant = graph[0].constant;
  CHECK(to_string(jit::merge_duplicates(graph)) ==
        "a: f32[] = constant 2; b: f32[] = add a a; return b");
}

TEST_CASE("a value written twice is computed once", "[jit][pass]") {
  const auto f = [](const Tensor& x) { return sum(exp(x)) * exp(x) + sum(exp(x)); };
  const std::string graph = check_end_to_end("merge_duplicates", f, arange(0, 10, 1, f32));
  CHECK(graph.find("exp") == graph.rfind("exp"));
}

TEST_CASE("merge_duplicates keeps what is computed again on purpose", "[jit][pass]") {
  Graph graph = parse(
      "a: f32[4] = input; b = exp a; c = neg b; d = exp a; e = neg d; f = exp a; return c e f",
      all_ops());
  for (const std::size_t v : {3, 4}) graph.nodes[v].repetition = 7;
  // What another pass writes anew stays part of the repetition.
  graph = jit::rewrite(std::move(graph), [](Graph& out, const Node& node) -> std::optional<Value> {
    if (node.op->name != "exp") return std::nullopt;
    Node anew = node;
    anew.repetition = 0;
    return jit::append(out, std::move(anew));
  });
  graph = jit::merge_duplicates(std::move(graph));
  CHECK(to_string(graph) ==
        "a: f32[4] = input; b: f32[4] = exp a; c: f32[4] = neg b; d: f32[4] = exp a; "
        "e: f32[4] = neg d; return c e b");
  CHECK(graph.nodes[3].repetition == 7);
}
