#include "core/scalar_value.h"

#include "core/error.h"

#include <fmt/format.h>

namespace nitinol {

void Scalar::throw_beyond_int64(uint64_t value) {
  throw Error(ErrorKind::value, {.where = "Scalar",
                                 .what = "an unsigned number",
                                 .expected = "at most 9223372036854775807, the largest int64",
                                 .got = fmt::format("{}", value),
                                 .fix = "Pass it as a double if rounding does no harm."});
}

}  // namespace nitinol
