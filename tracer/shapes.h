// An interpreter that computes nothing: results have a spec and strides but no elements.
#pragma once

#include "core/interpreter.h"

namespace nitinol::tracer {

/// For noting operations whose values nobody needs yet. Looking at such a tensor is a bug.
[[nodiscard]] Interpreter& shapes_only();

}  // namespace nitinol::tracer
