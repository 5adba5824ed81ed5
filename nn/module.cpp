#include "nn/module.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace nitinol::nn::module {
namespace {

/// "1,234,567".
std::string grouped(int64_t number) {
  std::string text = fmt::format("{}", number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

int64_t count_of(const Variable& variable) {
  return element_count(variable.shape());
}

/// Elements of all Variables at or below a path.
int64_t count_below(const std::vector<Line>& lines, const std::string& path) {
  int64_t count = 0;
  for (const Line& line : lines) {
    const bool is_below = path.empty() || line.path == path || line.path.starts_with(path + ".");
    if (line.variable.is_defined() && is_below) count += count_of(line.variable);
  }
  return count;
}

}  // namespace

void Replacer::variable(const std::string&, Variable& variable) {
  const bool is_cast = dtype && is_floating(variable.dtype()) && variable.dtype() != *dtype;
  const bool is_moved = device && variable.device() != *device;
  if (!is_cast && !is_moved) return;
  const auto found = std::ranges::find(done, variable, &std::pair<Variable, Variable>::first);
  if (found == done.end()) {
    const Tensor held = variable.get();
    const Tensor value = is_cast ? held.to(*dtype) : held.to(*device);
    done.emplace_back(variable, variable.tracks_gradient() ? parameter(value) : Variable(value));
    variable = done.back().second;
  } else {
    variable = found->second;
  }
}

std::string to_text(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) {
    const auto depth = line.path.empty() ? 0 : std::ranges::count(line.path, '.') + 1;
    const std::string name = line.path.substr(line.path.rfind('.') + 1);
    std::string row(static_cast<std::size_t>(depth) * 2, ' ');
    row += name;
    if (line.variable.is_defined()) {
      row += " " + describe(line.variable.spec());
      if (!line.variable.tracks_gradient()) row += " (buffer)";
      text += fmt::format("{:<48} {:>12}\n", row, grouped(count_of(line.variable)));
    } else {
      row += (name.empty() ? "" : ": ") + line.type;
      text += fmt::format("{:<48} {:>12}\n", row, grouped(count_below(lines, line.path)));
    }
  }
  return text;
}

}  // namespace nitinol::nn::module
