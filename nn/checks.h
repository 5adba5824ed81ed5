// Checks of settings: an Error(value) that names the setting, what it may be and what came.
#pragma once

#include "core/error.h"
#include "core/function_ref.h"
#include "core/tensor.h"
#include "eager/all_ops.h"

#include <cstdint>

namespace nitinol::nn {

/// What a setting may be; never infinite or NaN.
enum class Interval : uint8_t {
  positive,      ///< 0 < x
  not_negative,  ///< 0 <= x
  share,         ///< 0 <= x <= 1
  below_one,     ///< 0 <= x < 1
};

/// Throws Error(value) unless `value` lies in the interval. `where`: what the user called;
/// `setting`: its name there.
void check_setting(const char* where, const char* setting, double value, Interval interval);

/// Throws Error(value) unless `value` is at least `least`.
void check_at_least(const char* where, const char* setting, int64_t value, int64_t least);

/// Throws `error()` unless all elements of `holds` do. So does a compiled call, which is made again
/// eagerly then; but what fails on a device later, and is not, says the text.
void check_elements(const Tensor& holds, const ops::CheckText& text, FunctionRef<Error()> error);

}  // namespace nitinol::nn
