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

Calls& calls() {
  static auto* const all = new Calls;
  return *all;
}

}  // namespace

int64_t number_of_call(std::string_view function, const std::source_location& place) {
  std::string where = given_place();
  if (where.empty()) where = default_place();
  if (where.empty() && place.line() > 0)
    where = fmt::format("{}:{}", place.file_name(), place.line());
  std::string text(function);
  if (!where.empty()) text += " at " + where;
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  if (const auto known = all.numbers.find(text); known != all.numbers.end()) return known->second;
  const auto number = static_cast<int64_t>(all.texts.size());
  all.numbers.emplace(all.texts.emplace_back(std::move(text)), number);
  return number;
}

const std::string& call_text(int64_t number) {
  static const std::string unknown = "?";
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  if (number < 0 || number >= static_cast<int64_t>(all.texts.size())) return unknown;
  return all.texts[static_cast<std::size_t>(number)];
}

}  // namespace nitinol::dist
