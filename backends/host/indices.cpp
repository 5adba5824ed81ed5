#include "backends/host/indices.h"

#include "core/error.h"

#include <fmt/format.h>

namespace nitinol::host {

void report_index(std::string_view where, int64_t index, int64_t rows, const Launch& launch) {
  if (launch.status != nullptr) {
    launch.status->code = Status::index_out_of_range;
    return;
  }
  throw Error(ErrorKind::value, {.where = std::string(where),
                                 .what = "an index is out of range",
                                 .expected = fmt::format("{} <= index < {}", -rows, rows),
                                 .got = std::to_string(index),
                                 .fix = {}});
}

}  // namespace nitinol::host
