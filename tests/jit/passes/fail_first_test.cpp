#include "jit/passes/fail_first.h"

#include "tests/jit/passes/pass_text.h"
#include "tests/outside_ops.h"

using namespace nitinol;
using namespace nitinol::test;

namespace {

std::string moved(std::string_view text) {
  Graph graph = parse(text, ops_with_outside());
  graph = jit::fail_first(std::move(graph));
  verify(graph, "fail_first");
  return to_string(graph);
}

}  // namespace

TEST_CASE("fail_first moves what may fail, and what it needs, before what is ordered",
          "[jit][pass]") {
  CHECK(moved("x: f32[3] = input; s = noted x number=1; i: i64[2] = input; e = exp x; "
              "t = take e i; y = add s e; return y t") ==
        "a: f32[3] = input; b: i64[2] = input; c: f32[3] = exp a; d: f32[2] = take c b; "
        "e: f32[3] = noted a number=1; f: f32[3] = add e c; return f d");
  // Parts stay with their op.
  CHECK(moved("x: f32[3] = input; i: i64[2] = input; s = noted x number=1; t = turned x; "
              "u = part t 0; v = part t 1; w = take u i; return s v w") ==
        "a: f32[3] = input; b: i64[2] = input; c: f32[3] = turned a; d: f32[3] = part c 0; "
        "e: f32[3] = part c 1; f: f32[2] = take d b; g: f32[3] = noted a number=1; "
        "return g e f");
  for (const std::string text :
       {"a: f32[3] = input; b: i64[2] = input; c: f32[3] = exp a; d: f32[2] = take c b; "
        "return c d",
        "a: f32[3] = input; b: f32[3] = noted a number=2; c: f32[3] = noted a number=1; "
        "return c b"}) {
    CHECK(moved(text) == text);
  }
}
