// Stance: how compiled functions behave, for the whole process or while a scope lasts.
#pragma once

#include <cstdint>
#include <optional>

#pragma GCC visibility push(default)

namespace nitinol {

/// What compiled functions do when they are called.
enum class Stance : uint8_t {
  normal,             ///< record, compile, run Plans
  eager,              ///< run every compiled function as written
  fail_on_recompile,  ///< throw Error(compile) when a function that has a Plan would record another
                      ///< signature
  fail_on_fallback,   ///< throw Error(compile) when a call would run eagerly because it cannot be
                      ///< compiled
};

/// Sets the process's stance. Thread-safe. NITINOL_COMPILE=0 starts with Stance::eager.
void set_stance(Stance stance);
/// The innermost StanceScope of this thread, or the process's.
[[nodiscard]] Stance current_stance();

/// Throws Error(value) unless it is one of the four.
void check_stance(const char* where, Stance stance);

/// Sets this thread's stance, or none, and returns what it was: for scopes that do not nest.
std::optional<Stance> set_thread_stance(std::optional<Stance> stance);
/// Sets this thread's stance while it lives.
class StanceScope {
 public:
  explicit StanceScope(Stance stance);
  ~StanceScope();
  StanceScope(const StanceScope&) = delete;
  StanceScope& operator=(const StanceScope&) = delete;

 private:
  std::optional<Stance> before_;
};

}  // namespace nitinol

#pragma GCC visibility pop
