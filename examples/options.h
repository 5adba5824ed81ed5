// Checks of command-line options that the examples share.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace examples {

/// For app.add_option(…)->check(positive()): a number above 0.
inline CLI::Validator positive() {
  const auto problem = [](const std::string& text) -> std::string {
    double number = 0;
    if (CLI::detail::lexical_cast(text, number) && number > 0) return {};
    return "must be a number above 0, not " + text;
  };
  return {problem, "POSITIVE"};
}

}  // namespace examples
