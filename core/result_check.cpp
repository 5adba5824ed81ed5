#include "core/result_check.h"

#include "core/environment.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nitinol {

constinit std::atomic<uint32_t> observed::by = 0;
constinit thread_local ResultCheck thread_result_check::check = ResultCheck::as_process;

namespace {

// Who has looked once may look again: the flag stays, and costs each op a few nanoseconds then.
void be_told() {
  observed::by.fetch_or(observed::by_check, std::memory_order_relaxed);
}

/// What NITINOL_CHECK may name: the checks of results, and that of collectives.
constexpr std::array<std::string_view, 4> names = {"nan", "infinity", "shadow", "ranks"};

/// Those that it does.
const std::vector<std::string>& asked() {
  static const std::vector<std::string> all = environment_list("NITINOL_CHECK", names);
  return all;
}

ResultCheck from_environment() {
  constexpr std::array checks = {ResultCheck::nan, ResultCheck::infinity, ResultCheck::shadow};
  for (const std::string& item : asked()) {
    const auto choice = static_cast<std::size_t>(std::ranges::find(names, item) - names.begin());
    if (choice >= checks.size()) continue;
    if (looks_at_elements(checks[choice])) be_told();
    return checks[choice];
  }
  return ResultCheck::none;
}

}  // namespace

ResultCheck thread_result_check::of_process = from_environment();

bool are_ranks_checked() {
  return std::ranges::find(asked(), names.back()) != asked().end();
}

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

ResultCheck set_result_check(ResultCheck check) {
  if (looks_at_elements(check)) be_told();
  return std::exchange(thread_result_check::check, check);
}

}  // namespace nitinol
