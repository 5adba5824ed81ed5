#include "core/scalar_value.h"

#include "core/error.h"

#include <fmt/format.h>

namespace nitinol {

void throw_beyond_int64(const char* where, uint64_t value, const char* fix) {
  throw Error(ErrorKind::value, {.where = where,
                                 .what = "an unsigned number",
                                 .expected = "at most 9223372036854775807, the largest int64",
                                 .got = fmt::format("{}", value),
                                 .fix = fix});
}

}  // namespace nitinol
