// The name under which the compiled form of a text is known to those who run it on the host.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace nitinol::test {

/// `text`: the common words and a kernel's. `shim`: the words that the host adds, with its
/// compiler's command.
[[nodiscard]] inline std::string object_name(const std::string& text, const std::string& shim) {
  uint64_t a = 14695981039346656037U, b = 0x9e3779b97f4a7c15U;
  for (const std::string* const part : {&text, &shim}) {
    for (const char c : *part) {
      a = (a ^ static_cast<uint8_t>(c)) * 1099511628211U;
      b = (b + static_cast<uint8_t>(c)) * 0xbf58476d1ce4e5b9U;
      b ^= b >> 29;
    }
  }
  char name[40];
  std::snprintf(name, sizeof name, "%016llx%016llx", static_cast<unsigned long long>(a),
                static_cast<unsigned long long>(b));
  return name;
}

}  // namespace nitinol::test
