// How notebooks show tensors and Variables.
#pragma once

#include "core/tensor.h"

#include <string>
#include <string_view>

namespace nitinol::python {

/// A heading of name, dtype, shape, device and bytes, and what repr() has written of the elements:
/// as a table if they are numbers in rows.
[[nodiscard]] std::string html_of(std::string_view name, const Spec& spec, std::string_view repr);

}  // namespace nitinol::python
