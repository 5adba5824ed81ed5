#include "core/step_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace nitinol {

std::string list_of(const std::vector<std::string>& ops) {
  std::vector<std::pair<std::string, int>> counted;
  for (const std::string& op : ops) {
    const auto known = std::ranges::find(counted, op, &std::pair<std::string, int>::first);
    if (known != counted.end()) {
      ++known->second;
    } else {
      counted.emplace_back(op, 1);
    }
  }
  std::string text;
  for (const auto& [name, count] : counted) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
    if (count > 1) text += fmt::format(" x{}", count);
  }
  return text;
}

}  // namespace nitinol
