// What pass tests share: text in, text out, and a function compiled with a pass on and off.
#pragma once

#include "core/graph.h"
#include "eager/all_ops.h"
#include "jit/compile.h"
#include "jit/passes/pipeline.h"
#include "jit/passes/remove_dead.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace nitinol::test {

/// The graph that `pass` makes of `text`, as text. Both are verified.
inline std::string after(Graph (*pass)(Graph), std::string_view text) {
  Graph graph = parse(text, all_ops());
  verify(graph, "parse");
  graph = pass(std::move(graph));
  verify(graph, "the pass");
  return to_string(graph);
}

/// The same without the nodes that the pass left unused.
inline std::string after_cleaned(Graph (*pass)(Graph), std::string_view text) {
  return to_string(jit::remove_dead(parse(after(pass, text), all_ops())));
}

/// Switches passes off while it lives.
class WithoutPasses {
 public:
  explicit WithoutPasses(std::vector<std::string> names) : before_(jit::pass_options()) {
    jit::PassOptions options = before_;
    options.disabled = std::move(names);
    jit::set_pass_options(std::move(options));
  }
  ~WithoutPasses() { jit::set_pass_options(before_); }
  WithoutPasses(const WithoutPasses&) = delete;
  WithoutPasses& operator=(const WithoutPasses&) = delete;

 private:
  jit::PassOptions before_;
};

/// Checks that f(x) compiles to the same bits with the pass as without it and eagerly; returns the
/// graph that was compiled with it.
template <class F>
std::string check_end_to_end(std::string_view pass, const F& f, const Tensor& x) {
  const Tensor expected = f(x);
  const auto run = [&] {
    const auto g = compile(f);
    g(x);
    g(x);
    CHECK(same_bits(g(x), expected));
    const Explanation explanation = g.explain();
    REQUIRE(explanation.plan_calls == 1);
    return explanation.signatures[0].graph;
  };
  std::string without;
  {
    const WithoutPasses off({std::string(pass)});
    without = run();
  }
  const std::string with = run();
  CHECK(with != without);
  return with;
}

}  // namespace nitinol::test
