// Warm calls, whose instructions are counted (run.cmake).
#include "nitinol.h"
#include "tests/instructions/eager_paths.h"

using namespace nitinol;

namespace {

Tensor chain(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 5; ++i) y = y * 1.5 + 0.25;
  return y;
}

}  // namespace

int main() {
  constexpr int count = 1000;
  set_num_threads(1);
  const Tensor a = ones({4}), b = ones({4});
  count_calls("eager_add", count, [&] { return a + b; });
  count_calls("eager_scale", count, [&] { return a * 2.0; });
  // One by one its loop takes four times as many.
  const Tensor x = full({256}, 1.5, f64), y = full({256}, 2.5, f64);
  count_calls("eager_pow", count, [&] { return pow(x, y); });
  const auto add =
      compile([](const Tensor& p, const Tensor& q) { return p + q; }, {.check = Check::never});
  count_calls("compiled_add", count, [&] { return add(a, b); });
  const auto compiled = compile(chain, {.check = Check::never});
  count_calls("compiled_chain10", count, [&] { return compiled(a); });
  count_eager_paths();
  return 0;
}
