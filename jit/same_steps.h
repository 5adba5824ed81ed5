// Whether signatures of a function are computed alike, so that it need be told only once.
#pragma once

#include "jit/explain.h"

#include <span>

namespace nitinol::jit {

/// The first of `earlier` whose compiled Plan does the same steps, on other sizes; or null.
[[nodiscard]] const SignatureReport* with_same_steps(const SignatureReport& report,
                                                     std::span<const SignatureReport> earlier);

}  // namespace nitinol::jit
