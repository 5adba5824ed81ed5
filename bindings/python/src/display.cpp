#include "bindings/python/src/display.h"

#include <fmt/format.h>

#include <algorithm>

namespace nitinol::python {
namespace {

/// "[[1., 2.], ..., [3., 4.]]" or "[1., 2.]", with any white space, as rows of cells.
std::string table_of(std::string_view elements, int rank) {
  std::string table = "<table><tr>", cell;
  int depth = 0;
  const auto end_cell = [&] {
    if (!cell.empty()) table += fmt::format("<td style=\"text-align: right\">{}</td>", cell);
    cell.clear();
  };
  for (const char c : elements) {
    if (c == '[') ++depth;
    if (c == ']' || c == ',') end_cell();
    if (c == ']') --depth;
    if (c == ',' && depth < rank) table += "</tr><tr>";
    if (c > ' ' && c != '[' && c != ']' && c != ',') cell += c;
  }
  return table + "</tr></table>";
}

/// The elements in the text of a tensor; empty if it has none, as while it is recorded.
std::string_view elements_in(std::string_view repr) {
  constexpr std::string_view before = "tensor(";
  const std::size_t begin = repr.find(before);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = repr.substr(begin + before.size());
  int depth = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    depth += rest[i] == '[' ? 1 : rest[i] == ']' ? -1 : 0;
    if (depth == 0 && rest[i] == ',') return rest.substr(0, i);
  }
  return {};
}

/// Without the indentation that print() gives lines behind "tensor(".
std::string without_indentation(std::string_view elements) {
  constexpr std::string_view indentation = "       ";
  std::string text(elements);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    if (text.compare(at + 1, indentation.size(), indentation) == 0)
      text.erase(at + 1, indentation.size());
  }
  return text;
}

std::string bytes_text(const Spec& spec) {
  const auto bytes =
      static_cast<double>(element_count(spec.shape)) * static_cast<double>(size_of(spec.dtype));
  if (bytes >= 1e9) return fmt::format("{:.3g} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.3g} MB", bytes / 1e6);
  if (bytes >= 1e3) return fmt::format("{:.3g} kB", bytes / 1e3);
  return fmt::format("{} B", bytes);
}

}  // namespace

std::string html_of(std::string_view name, const Spec& spec, std::string_view repr) {
  const std::string_view elements = elements_in(repr);
  if (elements.empty()) return fmt::format("<pre>{}</pre>", repr);
  Spec plain = spec;
  plain.device = {};
  const int rank = spec.shape.size();
  const bool is_table = (rank == 1 || rank == 2) && element_count(spec.shape) > 0;
  return fmt::format("<div><b>{}</b> {} on {}, {}</div>{}", name, describe(plain),
                     describe(spec.device), bytes_text(spec),
                     is_table ? table_of(elements, rank)
                              : fmt::format("<pre>{}</pre>", without_indentation(elements)));
}

}  // namespace nitinol::python
