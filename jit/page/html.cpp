#include "jit/page/html.h"

namespace nitinol::jit {

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // HTML has no other control characters.
        if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t')
          out += c;
        else
          out += "\xEF\xBF\xBD";
    }
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t most) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  std::size_t count = 0, end = 0;  // end: of what is shown if it is too long
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!begins(text[i])) continue;
    if (count + 1 == most) end = i;
    if (count++ == most) return std::string(text.substr(0, end)) + "…";
  }
  return std::string(text);
}

}  // namespace nitinol::jit
