// Command-line options that the examples share.
#pragma once

#include <nitinol/nitinol.h>

#include <CLI/CLI.hpp>

#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

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

/// --log: where the example writes its training curves, for TensorBoard.
inline void add_log(CLI::App& app, std::string& folder) {
  app.add_option("--log", folder, "write training curves to this folder, for TensorBoard");
}

/// The losses of a run, each as it comes: for a picture at the end, and a log if there is a folder.
class Losses {
 public:
  Losses(const std::string& folder, const std::string& run) {
    if (!folder.empty()) log_.emplace(std::filesystem::path(folder) / run);
  }
  void add(const nitinol::Tensor& loss, double rate) {
    if (log_) {
      log_->add("loss", loss, std::ssize(all_));
      log_->add("learning rate", rate, std::ssize(all_));
    }
    all_.push_back(loss);
  }
  [[nodiscard]] std::string picture() const {
    return nitinol::nn::plot(nitinol::stack(all_), {.title = "loss", .height = 8});
  }

 private:
  std::optional<nitinol::nn::MetricLog> log_;
  std::vector<nitinol::Tensor> all_;
};

}  // namespace examples
