#include "dist/calls.h"

#include "core/fork.h"
#include "core/place.h"

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <map>
#include <mutex>

namespace nitinol::dist {
namespace {

struct Calls {
  ForkSafeMutex mutex;
  std::deque<std::string> texts;  // which stay where they are
  std::map<std::string_view, int64_t> numbers;
};

/// What a thread's last call in C++ was: a file's name lies where it lies.
struct Last {
  const char* file = nullptr;
  uint_least32_t line = 0;
  std::string function;
  int64_t number = 0;
};

Calls& calls() {
  static auto* const all = new Calls;
  return *all;
}

}  // namespace

int64_t number_of_call(std::string_view function, const std::source_location& place) {
  std::string where = given_place();
  if (where.empty()) where = default_place();
  // A loop is not to write its line again and again.
  static thread_local Last last;
  const bool is_in_cpp = where.empty() && place.line() > 0;
  if (is_in_cpp) {
    if (last.file == place.file_name() && last.line == place.line() && last.function == function)
      return last.number;
    where = fmt::format("{}:{}", place.file_name(), place.line());
  }
  std::string text(function);
  if (!where.empty()) text += " at " + where;
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  auto known = all.numbers.find(text);
  if (known == all.numbers.end()) {
    const auto number = static_cast<int64_t>(all.texts.size());
    known = all.numbers.emplace(all.texts.emplace_back(std::move(text)), number).first;
  }
  if (is_in_cpp)
    last = {.file = place.file_name(),
            .line = place.line(),
            .function = std::string(function),
            .number = known->second};
  return known->second;
}

const std::string& call_text(int64_t number) {
  static const std::string unknown = "?";
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  if (number < 0 || number >= static_cast<int64_t>(all.texts.size())) return unknown;
  return all.texts[static_cast<std::size_t>(number)];
}

}  // namespace nitinol::dist
