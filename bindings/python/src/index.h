// x[...] as NumPy's: integers, slices, None, Ellipsis, one array of integers.
#pragma once

#include "bindings/python/src/from.h"

namespace nitinol::python {

/// The part of `x` that `key` means. Throws IndexError for what does not exist.
[[nodiscard]] Tensor get_item(const Tensor& x, nb::handle key);
/// The same where `key` is of integers, slices, None and Ellipsis, without giving Python's lock
/// away: `x` may be what an object holds. Undefined for other keys.
[[nodiscard]] Tensor get_plain_item(const Tensor& x, nb::handle key);
/// `x` with that part replaced by `value`, which broadcasts and takes its dtype.
[[nodiscard]] Tensor set_item(const Tensor& x, nb::handle key, nb::handle value);

}  // namespace nitinol::python
