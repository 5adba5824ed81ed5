// Interrupts: what ends a long wait from outside, such as Ctrl-C in a binding's interpreter, which
// only notes the signal until somebody asks.
#pragma once

#include <chrono>

#pragma GCC visibility push(default)

namespace nitinol {

/// Throws if the calling thread shall not go on waiting.
using InterruptCheck = void (*)();

/// Sets what is asked; none at first. In C++ a signal ends the process by itself.
void set_interrupt_check(InterruptCheck check) noexcept;

/// Asks it. Waits that may last do so every interrupt_interval, and pass on what it throws.
void check_interrupt();
inline constexpr std::chrono::milliseconds interrupt_interval(50);

}  // namespace nitinol

#pragma GCC visibility pop
