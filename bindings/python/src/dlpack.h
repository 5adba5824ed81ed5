// DLPack: memory that libraries of Python hand to each other in capsules.
// https://dmlc.github.io/dlpack
#pragma once

#include "bindings/python/src/memory.h"

namespace nitinol::python {

/// The memory in a capsule, which is used up. Throws ArgumentError for one that is none, or was
/// used up before, TypeError for elements that there is no DType for.
[[nodiscard]] Foreign read_capsule(const From& from, nb::handle capsule);
/// What `value.__dlpack__()` gives. What it raises is raised.
[[nodiscard]] Foreign read_dlpack(const From& from);

enum class Versioned : uint8_t { no, yes };
/// A capsule of the tensor's memory, which lies on the host. Only a versioned one says that the
/// memory is not to be written, or that it is a copy, which may be.
[[nodiscard]] nb::object capsule_of(const Tensor& tensor, Versioned versioned, bool is_copied);

}  // namespace nitinol::python
