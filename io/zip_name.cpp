#include "io/zip_name.h"

namespace nitinol::io {
namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

bool is_zip_name(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto at = [&](std::size_t k) {
      return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U;
    };
    const unsigned first = at(0), second = at(1);
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first == 0 || (first >= 0x80 && first < 0xC2) || first > 0xF4) return false;
    const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (length > 1 && (second < low || second > high)) return false;
    for (std::size_t k = 2; k < length; ++k)
      if (at(k) < 0x80 || at(k) > 0xBF) return false;
    i += length;
  }
  return true;
}

std::string shown_zip_name(std::string_view name) {
  constexpr std::size_t most = 100;
  const bool has_letters = is_zip_name(name);  // of other languages
  std::string_view start = name.substr(0, most);
  if (name.size() > most && has_letters) {  // none is cut in two
    std::size_t end = most;
    while (end > 0 && is_continuation(name[end])) --end;
    start = name.substr(0, end);
  }
  std::string result = "\"";
  for (const char c : start) {
    const auto code = static_cast<unsigned char>(c);
    result += code < ' ' || code == 0x7F || (code > 0x7F && !has_letters) ? '?' : c;
  }
  return result + (start.size() < name.size() ? "...\"" : "\"");
}

}  // namespace nitinol::io
