#include "core/environment.h"

#include "core/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace nitinol {

namespace {

std::string_view value_of(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): never written
  return value != nullptr ? value : "";
}

// Not to the sink, which is the user's code: values are read while static variables are
// initialised, where a call back into the library would wait for ever.
void warn(const std::string& text) {
  if (!is_logged(LogLevel::warning)) return;
  const std::string line = fmt::format("nitinol {}: {}\n", name_of(LogLevel::warning), text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

std::optional<std::size_t> environment_choice(const char* name,
                                              std::span<const std::string_view> values) {
  const std::string_view value = value_of(name);
  if (value.empty()) return std::nullopt;
  const auto found = std::ranges::find(values, value);
  if (found != values.end()) return static_cast<std::size_t>(found - values.begin());
  warn(meaningless(name, value, values));
  return std::nullopt;
}

std::vector<std::string> environment_list(const char* name,
                                          std::span<const std::string_view> values) {
  std::vector<std::string> items;
  std::string_view rest = value_of(name);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (item.empty()) continue;
    if (std::ranges::find(values, item) != values.end()) {
      items.emplace_back(item);
    } else {
      warn(meaningless(name, item, values));
    }
  }
  return items;
}

std::optional<int> environment_count(const char* name, int limit) {
  const std::string_view value = value_of(name);
  if (value.empty()) return std::nullopt;
  int count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error == std::errc() && end == value.data() + value.size() && count >= 1 && count <= limit) {
    return count;
  }
  const std::string numbers = fmt::format("a number from 1 to {}", limit);
  warn(meaningless(name, value, {{numbers}}));
  return std::nullopt;
}

std::string environment_text(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string meaningless(std::string_view name, std::string_view value,
                        std::span<const std::string_view> values) {
  std::string expected;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) expected += i + 1 == values.size() ? " or " : ", ";
    expected += values[i];
  }
  return fmt::format("{}={} is ignored: expected {}", name, value, expected);
}

}  // namespace nitinol
