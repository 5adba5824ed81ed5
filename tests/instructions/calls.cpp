// calls <what> <count>: that many warm calls, whose instructions are counted (run.cmake).
#include "nitinol.h"
#include "tests/instructions/eager_paths.h"

#include <cstdlib>
#include <string_view>

using namespace nitinol;

namespace {

Tensor chain(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 5; ++i) y = y * 1.5 + 0.25;
  return y;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view what = argv[1];
  const long count = std::atol(argv[2]);
  set_num_threads(1);
  const Tensor a = ones({4}), b = ones({4});
  if (what == "eager_add") repeat(count, [&] { return a + b; });
  if (what == "eager_scale") repeat(count, [&] { return a * 2.0; });
  if (what == "eager_pow") {  // one by one its loop takes four times as many
    const Tensor x = full({256}, 1.5, f64), y = full({256}, 2.5, f64);
    repeat(count, [&] { return pow(x, y); });
  }
  if (what == "compiled_add") {
    const auto add =
        compile([](const Tensor& x, const Tensor& y) { return x + y; }, {.check = Check::never});
    repeat(count, [&] { return add(a, b); });
  }
  if (what == "compiled_chain10") {
    const auto compiled = compile(chain, {.check = Check::never});
    repeat(count, [&] { return compiled(a); });
  }
  compare_eager_paths(what, count);
  return 0;
}
