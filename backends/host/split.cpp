#include "backends/host/split.h"

#include "core/parallel.h"

#include <algorithm>

namespace nitinol::host {

void split(int64_t count, int64_t grain, int threads, FunctionRef<void(int64_t, int64_t)> body) {
  if (threads <= 1 || count <= grain) {
    if (count <= 0) return;
    const DefaultFloatMode mode;
    body(0, count);
    return;
  }
  parallel_for(0, count, std::max(grain, (count + threads - 1) / threads), body);
}

}  // namespace nitinol::host
