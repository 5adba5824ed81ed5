#include "jit/stance.h"

#include "core/environment.h"
#include "core/error.h"
#include "core/thread_settings.h"

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

namespace nitinol {
namespace {

constexpr int unset = -1;

Stance initial_stance() {
  constexpr std::array<std::string_view, 2> values = {"0", "1"};
  return environment_choice("NITINOL_COMPILE", values) == 0 ? Stance::eager : Stance::normal;
}

std::atomic<Stance>& process_stance() {
  static std::atomic<Stance> stance = initial_stance();
  return stance;
}

[[gnu::tls_model("initial-exec")]] constinit thread_local int scoped = unset;

}  // namespace

void set_stance(Stance stance) {
  check_stance("set_stance", stance);
  process_stance().store(stance, std::memory_order_relaxed);
}

void check_stance(const char* where, Stance stance) {
  switch (stance) {
    case Stance::normal:
    case Stance::eager:
    case Stance::fail_on_recompile:
    case Stance::fail_on_fallback:
      return;
  }
  throw Error(ErrorKind::value, {.where = where,
                                 .what = "no stance has this number",
                                 .expected = "0 to 3",
                                 .got = std::to_string(static_cast<int>(stance)),
                                 .fix = "Use the names: Stance::eager, ..."});
}

Stance current_stance() {
  bring_settings_up_to_date();
  return scoped != unset ? static_cast<Stance>(scoped)
                         : process_stance().load(std::memory_order_relaxed);
}

std::optional<Stance> set_thread_stance(std::optional<Stance> stance) {
  const int before = std::exchange(scoped, stance ? static_cast<int>(*stance) : unset);
  return before == unset ? std::nullopt : std::optional(static_cast<Stance>(before));
}

StanceScope::StanceScope(Stance stance) {
  check_stance("StanceScope", stance);
  bring_settings_up_to_date();
  before_ = set_thread_stance(stance);
}

StanceScope::~StanceScope() {
  set_thread_stance(before_);
}

}  // namespace nitinol
