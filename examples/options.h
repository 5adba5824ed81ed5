// Command-line options that the examples share.
#pragma once

#include <nitinol/nitinol.h>

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

/// --device: where the example computes, by the name of one of nitinol::devices().
inline void add_device(CLI::App& app) {
  const auto use = [](const std::string& name) {
    const auto device = nitinol::device_named(name);
    if (!device) throw CLI::ValidationError("--device", name + " is no device; cuda:0 is one");
    nitinol::set_default_device(*device);
  };
  app.add_option_function<std::string>("--device", use, "where to compute: cpu:0, cuda:0")
      ->default_str("cpu:0");
}

}  // namespace examples
