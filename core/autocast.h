// Autocast: the dtype in which a thread's products are computed, whatever their operands have.
//
// A scope says it. Products ask when their operands meet, ops of Precision::full (core/op.h) when
// they are applied; what was cast is noted, recorded and differentiated like any cast. Backward
// passes run without it: gradients have the dtypes of the values that they belong to.
#pragma once

#include "core/dtype.h"
#include "core/thread_settings.h"

#pragma GCC visibility push(default)

namespace nitinol {

namespace thread_autocast {
/// What autocast_dtype() was when settings were last brought up to date (core/thread_settings.h).
[[gnu::tls_model("initial-exec")]] extern constinit thread_local DType dtype;
}  // namespace thread_autocast

/// What this thread's products are computed in: f16 or bf16, or f32 for what their operands say.
[[nodiscard]] inline DType autocast_dtype() {
  bring_settings_up_to_date();
  return thread_autocast::dtype;
}
[[nodiscard]] inline bool is_autocasting() {
  return autocast_dtype() != f32;
}
/// Sets it, without a look at core/thread_settings.h; returns what it was.
DType set_autocast_dtype(DType dtype);

/// Whether autocast may choose another dtype for it: f16, bf16 and f32.
[[nodiscard]] constexpr bool is_cast_freely(DType dtype) {
  return dtype == f32 || dtype == f16 || dtype == bf16;
}

/// While it lives, this thread computes products in `dtype`: f16 or bf16, or f32 for as usual.
class AutocastScope {
 public:
  explicit AutocastScope(DType dtype);
  ~AutocastScope() { set_autocast_dtype(before_); }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  DType before_;
};

}  // namespace nitinol

#pragma GCC visibility pop
