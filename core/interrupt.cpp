#include "core/interrupt.h"

#include <atomic>

namespace nitinol {
namespace {

constinit std::atomic<InterruptCheck> asked = nullptr;

}  // namespace

void set_interrupt_check(InterruptCheck check) noexcept {
  asked = check;
}

void check_interrupt() {
  if (const InterruptCheck check = asked) check();
}

}  // namespace nitinol
