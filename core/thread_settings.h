// What brings a thread's settings up to date before they are read, for languages whose scopes do
// not nest as C++'s do.
#pragma once

#include <atomic>

#pragma GCC visibility push(default)

namespace nitinol {

/// Called before a setting of the calling thread is read or scoped: whether gradients are noted,
/// the stance, autocast's dtype. A binding sets it whose users' code goes on elsewhere on the same
/// thread while a scope is open, as coroutines do. Null: nothing needs to be done. It throws
/// nothing.
extern std::atomic<void (*)() noexcept> refresh_thread_settings;

inline void bring_settings_up_to_date() noexcept {
  if (const auto refresh = refresh_thread_settings.load(std::memory_order_relaxed)) refresh();
}

}  // namespace nitinol

#pragma GCC visibility pop
