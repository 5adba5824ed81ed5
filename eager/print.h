// Tensors as text, the way NumPy prints arrays, followed by dtype and shape.
#pragma once

#include "core/tensor.h"

#include <fmt/format.h>

#include <iosfwd>
#include <source_location>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace nitinol {

/// The elements in nested brackets, then dtype and shape:
///
///     tensor([[1. , 2.5],
///             [3. , 4. ]], float32[2, 2])
///
/// As NumPy: columns are aligned, at most 8 digits stand after the decimal point, all elements are
/// in scientific notation if their range asks for it, lines break before column 75, and of more
/// than 1000 elements the first and last three of each dimension are shown. An undefined tensor is
/// "tensor(undefined)". Inside a compiled function this ends the trace, like item().
[[nodiscard]] std::string to_string(const Tensor& tensor,
                                    std::source_location place = std::source_location::current());

/// Writes to_string(tensor).
std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

}  // namespace nitinol

/// fmt::format("{}", tensor): to_string(tensor), with width, fill and alignment as for strings.
template <>
struct fmt::formatter<nitinol::Tensor> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const nitinol::Tensor& tensor, Context& context) const {
    return fmt::formatter<std::string_view>::format(nitinol::to_string(tensor, {}), context);
  }
};

#pragma GCC visibility pop
