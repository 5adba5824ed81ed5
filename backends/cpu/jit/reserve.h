// Memory that code generation falls back to, because LLVM ends the process where it gets none.
#pragma once

#include <cstddef>

namespace nitinol::cpu {

/// While one lives, allocations of this thread within the module that find no memory are served
/// from the reserve. Whoever opened it then gives up what was made: nothing from the reserve may
/// leave the module.
class ReserveScope {
 public:
  ReserveScope();
  ReserveScope(const ReserveScope&) = delete;
  ReserveScope& operator=(const ReserveScope&) = delete;
  ~ReserveScope();
  /// True if memory has run out meanwhile.
  [[nodiscard]] static bool was_used();
};

/// Ends the time in which the module was opened, when the reserve serves LLVM's static objects.
void end_opening();

/// Closes the reserve to this thread: around what is to leave the module, such as an Error.
class WithoutReserve {
 public:
  WithoutReserve();
  WithoutReserve(const WithoutReserve&) = delete;
  WithoutReserve& operator=(const WithoutReserve&) = delete;
  ~WithoutReserve();

 private:
  bool before_;
};

}  // namespace nitinol::cpu
