#include "bench/families.h"
#include "bench/functions.h"
#include "bench/time_both.h"

namespace nitinol::bench {

void small_rows(Timer& timer) {
  const Tensor x = full({4}, 0.5), y = normal(1, {4});
  const auto add4 = [](const Tensor& a, const Tensor& b) -> Tensor { return a + b; };
  time_both(timer, "W3.add4", {}, add4, x, y);
  time_both(timer, "W3.chain10", {}, chain10, x, y);
}

}  // namespace nitinol::bench
