// A program of core's object files and nothing above them: the nouns without anything that
// computes.
//
// That it links is the test. It also uses some, lest linking be all that works.
#include "core/graph.h"
#include "core/kernel.h"
#include "core/variable.h"

#include <cstdio>

using namespace nitinol;

int main() {
  const Spec spec = {.dtype = f32, .shape = {4, 3}, .is_weak = false, .device = {}};
  const Tensor view = make_tensor(spec, strides_of(spec.shape), 0, {});
  const Variable variable = parameter(view);
  const Graph graph = parse("a: f32[4, 3] = input; return a", {});
  const bool is_right = describe(variable.spec()) == "float32[4, 3]" && graph.nodes.size() == 1 &&
                        to_string(Kernel{}) != to_string(graph);
  std::printf("%s\n", is_right ? "core stands alone" : "core alone gives something else");
  return is_right ? 0 : 1;
}
