// Lengths: what split() takes for the parts of an axis.
#pragma once

#include "bindings/python/src/from.h"

namespace nitinol::python {

/// The length of all parts, or of each.
struct Lengths {
  Dims dims;
  bool is_list = false;
};

/// An integer, or a sequence of them.
template <>
Lengths convert<Lengths>(const From& from);

}  // namespace nitinol::python
