// x[...] as NumPy's: integers, slices, None, Ellipsis, one array of integers.
#pragma once

#include "bindings/python/src/from.h"

namespace nitinol::python {

/// The part of `x` that `key` means. Throws IndexError for what does not exist.
[[nodiscard]] Tensor get_item(const Tensor& x, nb::handle key);
/// The same where `key` is of integers, slices, None and Ellipsis, without giving Python's lock
/// away: `x` may be what an object holds. Undefined for other keys.
[[nodiscard]] Tensor get_plain_item(const Tensor& x, nb::handle key);
/// `x` with `value`, which broadcasts and takes its dtype, stored to that part, or joined with it.
[[nodiscard]] Tensor set_item(const Tensor& x, nb::handle key, nb::handle value,
                              Tensor (At::*join)(const Argument&) const = &At::set);
/// x.at, whose [key] is a part with set(), add() and others.
[[nodiscard]] nb::object parts_of(Tensor x);
void bind_parts(nb::module_& m);

}  // namespace nitinol::python
