#include "eager/ops/windows.h"

#include "eager/infer.h"

#include <fmt/format.h>

#include <string>

namespace nitinol {

std::array<int64_t, 2> pair(const Attrs& attrs, std::size_t i) {
  const Dims& given = attr<Dims>(attrs, i);
  return {given[0], given[1]};
}

std::array<int64_t, 2> checked_pair(std::string_view where, std::string_view name,
                                    const Dims& given, int64_t least) {
  // So large that sizes computed from it cannot overflow.
  constexpr int64_t most = int64_t{1} << 31;
  const auto fits = [&](int64_t number) { return number >= least && number <= most; };
  if (given.size() == 2 && fits(given[0]) && fits(given[1])) return {given[0], given[1]};
  throw Error(ErrorKind::shape, {.where = std::string(where),
                                 .what = fmt::format("{} {}", name, to_string(given)),
                                 .expected = fmt::format("two numbers of at least {}", least),
                                 .got = to_string(given),
                                 .fix = "One is for rows, the other for columns."});
}

void check_images(std::string_view where, const Tensor& x, std::string_view axes) {
  if (x.rank() == 4) return;
  throw Error(
      ErrorKind::shape,
      {.where = std::string(where),
       .what = "an operand is " + describe(x),
       .expected = fmt::format("four axes {}", axes),
       .got = fmt::format("{}", x.rank()),
       .fix = "A single image needs unsqueeze(x, 0), one without channels unsqueeze(x, 1)."});
}

std::array<int64_t, 2> count_windows(std::string_view where, const Windows& windows, int64_t height,
                                     int64_t width) {
  const std::array<int64_t, 2> count = {windows.count(0, height), windows.count(1, width)};
  if (count[0] > 0 && count[1] > 0) return count;
  const auto reach = [&](std::size_t i) {
    return windows.dilation[i] * (windows.kernel[i] - 1) + 1 - 2 * windows.padding[i];
  };
  throw Error(ErrorKind::shape,
              {.where = std::string(where),
               .what = fmt::format("windows of {} by {} on images of {} by {}", windows.kernel[0],
                                   windows.kernel[1], height, width),
               .expected = fmt::format("images of at least {} by {}", reach(0), reach(1)),
               .got = fmt::format("{} by {}", height, width),
               .fix = "Use a smaller kernel, less dilation or more padding."});
}

LibraryCall windowed_call(LibraryCall::Kind kind, const Windows& windows, Inputs inputs,
                          const Spec& result) {
  LibraryCall call = library_call(kind, inputs, result);
  call.windows = windows;
  return call;
}

}  // namespace nitinol
