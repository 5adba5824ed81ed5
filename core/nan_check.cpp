#include "core/nan_check.h"

#include "core/environment.h"

#include <array>
#include <string_view>
#include <utility>

namespace nitinol {

constinit std::atomic<uint32_t> observed::by = 0;
constinit thread_local NanCheck thread_nan_check::check = NanCheck::as_process;

namespace {

// Who has looked once may look again: the flag stays, and costs each op a few nanoseconds then.
void be_told() {
  observed::by.fetch_or(observed::by_check, std::memory_order_relaxed);
}

NanCheck from_environment() {
  constexpr std::array<std::string_view, 2> values = {"nan", "infinity"};
  const auto choice = environment_choice("NITINOL_CHECK", values);
  if (!choice) return NanCheck::none;
  be_told();
  return *choice == 0 ? NanCheck::nan : NanCheck::infinity;
}

}  // namespace

NanCheck thread_nan_check::of_process = from_environment();

namespace {

constinit thread_local const StepOf* innermost_call = nullptr;

}  // namespace

CompiledCallScope::CompiledCallScope(const StepOf& step_of)
    : outer_(std::exchange(innermost_call, &step_of)) {}

CompiledCallScope::~CompiledCallScope() {
  innermost_call = outer_;
}

std::string CompiledCallScope::step_of(const Op& op) {
  return innermost_call != nullptr ? (*innermost_call)(op) : std::string();
}

NanCheck set_nan_check(NanCheck check) {
  if (check == NanCheck::nan || check == NanCheck::infinity) be_told();
  return std::exchange(thread_nan_check::check, check);
}

}  // namespace nitinol
