// A text as tests look at it.
#pragma once

#include <catch2/catch.hpp>

#include <string>
#include <string_view>

namespace nitinol::test {

/// Whether `part` is in the text, which is shown if it is not.
inline bool has(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace nitinol::test
