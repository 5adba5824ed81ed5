#include "fusion/kernel_name.h"

#include "core/op.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace nitinol::fusion {
namespace {

/// So much of a name is operations; what follows has less than 20 characters.
constexpr std::size_t most_of_operations = 60;

/// Names of operations are anything that a user likes.
char as_in_identifier(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') ? c : '_';
}

}  // namespace

std::string kernel_name(const Graph& graph, const Group& group) {
  std::string name;
  std::size_t count = 0;
  for (const Member& member : group.members) {
    const std::string_view op = graph[member.value].op->name;
    if (name.size() + 1 + op.size() > most_of_operations) break;
    if (!name.empty()) name += '_';
    name += op;
    ++count;
  }
  std::ranges::transform(name, name.begin(), as_in_identifier);
  if (count == group.members.size()) return name;
  const std::size_t rest = group.members.size() - count;
  return count == 0 ? fmt::format("ops_{}", rest) : fmt::format("{}_and_{}_more", name, rest);
}

}  // namespace nitinol::fusion
