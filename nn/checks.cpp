#include "nn/checks.h"

#include "core/error.h"
#include "eager/apply.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace nitinol::nn {
namespace {

bool lies_in(double value, Interval interval) {
  if (!std::isfinite(value) || value < 0) return false;
  switch (interval) {
    case Interval::positive:
      return value > 0;
    case Interval::not_negative:
      return true;
    case Interval::share:
      return value <= 1;
    case Interval::below_one:
      return value < 1;
  }
  return false;
}

std::string describe(Interval interval, const char* setting) {
  switch (interval) {
    case Interval::positive:
      return fmt::format("0 < {} < infinity", setting);
    case Interval::not_negative:
      return fmt::format("0 <= {} < infinity", setting);
    case Interval::share:
      return fmt::format("0 <= {} <= 1", setting);
    case Interval::below_one:
      return fmt::format("0 <= {} < 1", setting);
  }
  return {};
}

}  // namespace

void check_setting(const char* where, const char* setting, double value, Interval interval) {
  if (lies_in(value, interval)) return;
  throw Error(ErrorKind::value, {.where = where,
                                 .what = fmt::format("the setting `{}`", setting),
                                 .expected = describe(interval, setting),
                                 .got = fmt::format("{}", value),
                                 .fix = "Check how it is computed."});
}

void check_at_least(const char* where, const char* setting, int64_t value, int64_t least) {
  if (value >= least) return;
  throw Error(ErrorKind::value, {.where = where,
                                 .what = fmt::format("the setting `{}`", setting),
                                 .expected = fmt::format("at least {}", least),
                                 .got = fmt::format("{}", value),
                                 .fix = "Check how it is computed."});
}

void check_elements(const Tensor& holds, const ops::CheckText& text, FunctionRef<Error()> error) {
  try {
    static_cast<void>(apply(ops::check_nonzero(), {&holds}, {ops::checker_of(text)}));
  } catch (const Error& found) {
    if (found.kind() != ErrorKind::value) throw;
    throw error();
  }
}

}  // namespace nitinol::nn
