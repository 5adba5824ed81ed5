// How much of this thread's stack is left: code that runs on a thread with a small one is told so
// before it writes beyond the end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nitinol {

/// What an operation may take, with all that it calls, and a call of a compiled function: one loop
/// has buffers of 52 KiB.
inline constexpr std::size_t stack_of_operation = std::size_t{80} << 10;
inline constexpr std::size_t stack_of_call = std::size_t{96} << 10;
/// What compiling may take.
inline constexpr std::size_t stack_of_compiler = std::size_t{1} << 20;

namespace thread_stack {
/// The lowest address of this thread's stack; `unknown`, above all others, until it is asked for.
inline constexpr uintptr_t unknown = UINTPTR_MAX / 2;
[[gnu::tls_model("initial-exec")]] extern constinit thread_local uintptr_t lowest;
[[nodiscard]] bool is_short_of(std::size_t bytes, uintptr_t address) noexcept;
[[noreturn]] void throw_short(const char* where);
}  // namespace thread_stack

/// Whether less than `bytes` is left. False on a stack that is not the thread's own: a fiber's.
[[nodiscard]] inline bool is_stack_short_of(std::size_t bytes) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return address < thread_stack::lowest + bytes && thread_stack::is_short_of(bytes, address);
}

/// Throws Error(unsupported) if less than `bytes` is left. Costs a comparison.
inline void check_stack(const char* where, std::size_t bytes) {
  if (is_stack_short_of(bytes)) thread_stack::throw_short(where);
}

}  // namespace nitinol
