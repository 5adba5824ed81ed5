#include "backends/host/radix_sort.h"

#include "core/error.h"

#include <limits>
#include <string>

namespace nitinol::host {

void check_countable(int64_t elements) {
  if (elements <= std::numeric_limits<uint32_t>::max()) return;
  throw Error(ErrorKind::unsupported, {.where = "sort",
                                       .what = "an axis of more than 2^32 - 1 elements",
                                       .expected = "at most 2^32 - 1 of them",
                                       .got = std::to_string(elements),
                                       .fix = "Sort parts of it."});
}

}  // namespace nitinol::host
