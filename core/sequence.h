// Sequence: launches that were noted once, to be asked for at once.
#pragma once

#include "core/function_ref.h"

#include <cstddef>

namespace nitinol {

/// Launches of a device, in parts, as Backend::record() has noted them. It holds none of the memory
/// that they were given: who runs it sees to it that all of that is there, for the same use. Nor
/// does it hold what they launch. For one thread at a time.
class Sequence {
 public:
  virtual ~Sequence() = default;
  /// Asks for all of them, in their order.
  virtual void run() = 0;
  /// From now on a part is what `launch` launches on this thread: the same with other buffers,
  /// scalars and status. False if it is something else. Then, and when it throws, this must not be
  /// run any more.
  [[nodiscard]] virtual bool replace(std::size_t part, FunctionRef<void()> launch) = 0;
  /// Whether replacing a part takes longer than launching it: it has a library's work.
  [[nodiscard]] virtual bool is_costly(std::size_t part) const = 0;
};

}  // namespace nitinol
