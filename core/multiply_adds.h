// The loop that does as much arithmetic as a processor can, for measuring what that is.
#pragma once

#include "core/isa.h"

#include <cstdint>

namespace nitinol {

struct MultiplyAdds {
  /// Rounds of f32 multiplications and additions, in enough independent chains of vectors to hide
  /// their latency. What it returns is to be used, so that the loop is not removed.
  float (*run)(int64_t rounds) = nullptr;
  double operations = 0;  ///< of a round
};

/// By one instruction set, which the processor must have.
[[nodiscard]] MultiplyAdds multiply_adds(Isa isa);

}  // namespace nitinol
