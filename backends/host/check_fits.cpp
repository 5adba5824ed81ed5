#include "backends/host/check_fits.h"

#include "backends/host/elements.h"
#include "backends/host/indices.h"
#include "core/error.h"

#include <cstring>
#include <utility>

namespace nitinol::host {

void check_fits(const LibraryCall& call, const Launch& launch) {
  const OperandLayout &in = call.operands[0], &out = call.operands[1];
  const int64_t count = element_count(in.shape);
  bool all_fit = true;
  with_number_type(out.dtype, [&](auto dtype) {
    using T = typename Elements<dtype.value>::Stored;
    for (int64_t i = 0; i < count; ++i) {
      int64_t number = 0;
      std::memcpy(&number,
                  static_cast<const char*>(launch.buffers[0]) + byte_offset(i, in.shape, in),
                  sizeof number);
      if constexpr (std::is_integral_v<T>) all_fit &= std::in_range<T>(number);
      const T narrow = static_cast<T>(number);
      std::memcpy(static_cast<char*>(launch.buffers[1]) + byte_offset(i, out.shape, out), &narrow,
                  sizeof narrow);
    }
  });
  if (all_fit) return;
  if (launch.status == nullptr) {
    throw Error(ErrorKind::value, {.where = "cast", .what = "a number does not fit its dtype"});
  }
  launch.status->code = Status::number_out_of_range;
}

}  // namespace nitinol::host
