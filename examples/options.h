// Command-line options that the examples share.
#pragma once

#include <nitinol/nitinol.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <stdexcept>
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

/// --device: where the example computes, by the name of one of nitinol::devices(); cuda is the GPU
/// of this process's number among those on its machine.
inline void add_device(CLI::App& app) {
  const auto use = [](std::string name) {
    if (name == "cuda") name += fmt::format(":{}", nitinol::dist::local_rank());
    const auto device = nitinol::device_named(name);
    if (!device) throw CLI::ValidationError("--device", name + " is no device; cuda:0 is one");
    nitinol::set_default_device(*device);
  };
  app.add_option_function<std::string>(
         "--device", use, "where to compute: cpu:0, cuda:0; cuda: a GPU for each process")
      ->default_str("cpu:0");
}

/// --data-parallel: for programs that mpirun starts several times.
inline void add_data_parallel(CLI::App& app, bool& is_parallel) {
  app.add_flag("--data-parallel", is_parallel, "processes of mpirun share each batch");
}

/// Which part of each batch is this process's, by --data-parallel.
struct Share {
  int64_t rank = 0, ranks = 1;
  int64_t batch = 0;  ///< rows of the part

  /// Joins the others. Rank 0 alone prints from now on.
  static Share of(int64_t batch, bool is_parallel) {
    if (!is_parallel) return {.batch = batch};
    const int64_t rank = nitinol::dist::world().rank(), ranks = nitinol::dist::world().size();
    if (batch % ranks != 0)
      throw std::runtime_error(
          fmt::format("--batch must be a multiple of the number of processes, {}", ranks));
    if (rank > 0 && std::freopen("/dev/null", "w", stdout) == nullptr)
      throw std::runtime_error("cannot open /dev/null");
    return {.rank = rank, .ranks = ranks, .batch = batch / ranks};
  }
  /// The rows of a whole batch.
  [[nodiscard]] nitinol::Tensor operator()(const nitinol::Tensor& whole) const {
    return slice(whole, 0, {.start = rank * batch, .stop = (rank + 1) * batch});
  }
};

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
  [[nodiscard]] const nitinol::Tensor& last() const { return all_.back(); }
  [[nodiscard]] std::string picture() const {
    return nitinol::nn::plot(nitinol::stack(all_), {.title = "loss", .height = 8});
  }

 private:
  std::optional<nitinol::nn::MetricLog> log_;
  std::vector<nitinol::Tensor> all_;
};

}  // namespace examples
