// What convolutions and pooling share: checks of windows on images, and their calls.
#pragma once

#include "core/library.h"
#include "core/op.h"
#include "core/tensor.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace nitinol {

/// attrs[i], two numbers.
[[nodiscard]] std::array<int64_t, 2> pair(const Attrs& attrs, std::size_t i);
/// `given`, the value of the argument `name`. Throws Error(shape) unless it is two numbers of at
/// least `least`.
std::array<int64_t, 2> checked_pair(std::string_view where, std::string_view name,
                                    const Dims& given, int64_t least);
/// Throws Error(shape) unless `x` has four axes, which are `axes`: "[n, c, h, w]".
void check_images(std::string_view where, const Tensor& x, std::string_view axes);
/// The size [oh, ow] of what windows on images of size [h, w] give. Throws Error(shape) if none
/// fits.
[[nodiscard]] std::array<int64_t, 2> count_windows(std::string_view where, const Windows& windows,
                                                   int64_t height, int64_t width);
/// The call of `kind` on these operands, with a row-major result.
[[nodiscard]] LibraryCall windowed_call(LibraryCall::Kind kind, const Windows& windows,
                                        Inputs inputs, const Spec& result);

}  // namespace nitinol
