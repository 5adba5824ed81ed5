// How much of this thread's stack is left: code that runs on a thread with a small one is told so
// before it writes beyond the end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nitinol {

/// What an operation may take, with all that it calls, and a call of a compiled function.
inline constexpr std::size_t stack_of_operation = std::size_t{20} << 10;
inline constexpr std::size_t stack_of_call = std::size_t{32} << 10;
/// What compiling may take.
inline constexpr std::size_t stack_of_compiler = std::size_t{1} << 20;

namespace stack {
/// The lowest address of this thread's stack; the largest there is until somebody has asked.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local uintptr_t lowest;
[[nodiscard]] bool is_short_of(std::size_t bytes, uintptr_t address) noexcept;
[[noreturn]] void throw_short(const char* where);
}  // namespace stack

/// Whether less than `bytes` is left. False on a stack that is not the thread's own: a fiber's.
[[nodiscard]] inline bool is_stack_short_of(std::size_t bytes) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  // Of an unknown stack the difference wraps to a small number.
  return address - stack::lowest < bytes && stack::is_short_of(bytes, address);
}

/// Throws Error(unsupported) if less than `bytes` is left. Costs a comparison.
inline void check_stack(const char* where, std::size_t bytes) {
  if (is_stack_short_of(bytes)) stack::throw_short(where);
}

}  // namespace nitinol
