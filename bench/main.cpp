// nitinol_bench: times the workloads of the peers harness, the limits of the machine, and first
// calls.
//
// For each thread count a process of its own is pinned to that many cores and times all rows: pools
// then see only what they may use, as they do in the peers harness. First calls need a process
// each. This one starts them (it starts itself again), gathers the rows they print, and shows them.

#include "bench/cold.h"
#include "bench/families.h"
#include "bench/output.h"
#include "bench/timer.h"
#include "nitinol.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace {

using nitinol::bench::DeviceClock;
using nitinol::bench::Figure;
using nitinol::bench::Limits;
using nitinol::bench::Options;
using nitinol::bench::Row;
using nitinol::bench::Timer;

/// Runs this program again with `arguments` and returns the rows it printed.
std::vector<Row> rows_of_process(const std::string& arguments) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = fmt::format("'{}' {}", program, arguments);
  std::vector<Row> rows;
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw std::runtime_error("cannot start " + command);
  std::string line;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
    if (c != '\n') {
      line.push_back(static_cast<char>(c));
      continue;
    }
    rows.push_back(nitinol::bench::row_of(nlohmann::json::parse(line)));
    const Row& row = rows.back();
    fmt::print(stderr, "{:<22} {} {:<9} {}\n", row.workload, row.threads, row.mode,
               nitinol::bench::human_time(row.median_s));
    line.clear();
  }
  if (pclose(pipe.release()) != 0) throw std::runtime_error("failed: " + command);
  return rows;
}

/// A folder for code on disk that is removed when this ends.
class Store {
 public:
  Store() {
    std::string name = (std::filesystem::temp_directory_path() / "nitinol_bench.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    folder_ = name;
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string text() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

/// The rows of the middle one of several fresh processes, which find in `store` what an earlier one
/// has left there; null: each makes all code itself.
std::vector<Row> cold_rows(const Options& options, int threads, const std::string& name,
                           const Store* store) {
  const int processes = options.is_quick ? 1 : 5;
  const std::string arguments =
      fmt::format("--cold {} --threads {} --device {}{}", name, threads, options.device,
                  store != nullptr ? " --store " + store->text() : "");
  std::vector<std::vector<Row>> all;
  all.reserve(static_cast<std::size_t>(processes));
  if (store != nullptr) static_cast<void>(rows_of_process(arguments));
  for (int i = 0; i < processes; ++i) all.push_back(rows_of_process(arguments));
  std::vector<Row> result = all.front();
  for (std::size_t k = 0; k < result.size(); ++k) {
    std::vector<double> times;
    times.reserve(all.size());
    for (const std::vector<Row>& rows : all) times.push_back(rows.at(k).median_s);
    result[k].median_s = nitinol::bench::median_of(times);
    result[k].min_s = *std::min_element(times.begin(), times.end());
    result[k].repeats = processes;
  }
  return result;
}

std::vector<Row> all_cold_rows(const Options& options, int threads) {
  std::vector<Row> rows;
  for (const std::string& name : nitinol::bench::cold_functions()) {
    if (!options.wants("W6." + name)) continue;
    const Store store;
    for (const Store* each : {static_cast<const Store*>(nullptr), &store}) {
      if (name == "error" && each != nullptr) continue;  // no code is made
      const std::vector<Row> cold = cold_rows(options, threads, name, each);
      rows.insert(rows.end(), cold.begin(), cold.end());
    }
  }
  return rows;
}

std::vector<Row> measure(const Options& options) {
  std::string arguments = "--worker --device " + options.device;
  if (options.is_quick) arguments += " --quick";
  if (options.is_profiled) arguments += " --profile";
  if (options.is_checked) arguments += " --check-nan";
  if (!options.rows.empty()) arguments += fmt::format(" --rows '{}'", fmt::join(options.rows, ","));
  std::vector<Row> rows;
  for (const int threads : options.threads) {
    const std::vector<Row> timed =
        rows_of_process(fmt::format("{} --threads {}", arguments, threads));
    rows.insert(rows.end(), timed.begin(), timed.end());
    const std::vector<Row> cold = all_cold_rows(options, threads);
    rows.insert(rows.end(), cold.begin(), cold.end());
  }
  return rows;
}

void time_rows(Timer& timer) {
  nitinol::bench::elementwise_rows(timer);
  nitinol::bench::result_rows(timer);
  nitinol::bench::power_rows(timer);
  nitinol::bench::reduction_rows(timer);
  nitinol::bench::axis_rows(timer);
  nitinol::bench::image_rows(timer);
  nitinol::bench::short_rows(timer);
  nitinol::bench::scan_rows(timer);
  nitinol::bench::gradient_rows(timer);
  nitinol::bench::lookup_rows(timer);
  nitinol::bench::bin_rows(timer);
  nitinol::bench::order_rows(timer);
  nitinol::bench::piece_rows(timer);
  nitinol::bench::slice_rows(timer);
  nitinol::bench::small_rows(timer);
  nitinol::bench::model_rows(timer);
  nitinol::bench::zoo_rows(timer);
  nitinol::bench::matmul_rows(timer);
  nitinol::bench::shape_rows(timer);
  nitinol::bench::branch_rows(timer);
  nitinol::bench::length_rows(timer);
  nitinol::bench::large_rows(timer);
  nitinol::bench::plan_rows(timer);
}

/// Times rows in this process: all that are wanted, or, for another program that takes turns with
/// this one, those that standard input names, a line each; after a line's rows comes {"end": line}.
void work(Options options) {
  std::optional<DeviceClock> clock;
  if (nitinol::default_device() != nitinol::Device{}) clock.emplace(options.is_quick);
  const Limits limits =
      clock ? Limits(clock->copy_rate()) : Limits(options.threads.front(), options.is_quick);
  Timer timer(options, limits, clock ? &*clock : nullptr);
  for (const Row& row : limits.rows(timer.threads())) timer.emit(row);
  if (!options.is_server) return time_rows(timer);
  for (std::string line; std::getline(std::cin, line);) {
    options.rows = {line};
    nlohmann::json end = {{"end", line}};
    try {
      time_rows(timer);
      for (const Row& row : all_cold_rows(options, timer.threads())) timer.emit(row);
    } catch (const std::exception& error) {
      end["failed"] = error.what();
    }
    fmt::print("{}\n", end.dump());
    std::fflush(stdout);
  }
}

/// Each prefix that was asked for begins the name of some row.
void check_names(const Options& options, const std::vector<Row>& rows) {
  for (const std::string& prefix : options.rows) {
    const auto is_one = [&](const Row& row) {
      return row.workload.starts_with(prefix) || prefix.starts_with(row.workload);
    };
    if (std::ranges::none_of(rows, is_one))
      throw std::runtime_error("no row's name begins with " + prefix +
                               "; bench/README.md lists them (W1, W4i.train, order.sort, limit)");
  }
}

void use_device(const std::string& name) {
  const std::optional<nitinol::Device> device = nitinol::device_named(name);
  if (!device) throw std::runtime_error(name + " is no device; cuda:0 is one");
  nitinol::set_default_device(*device);
}

int run(const Options& options) {
  // What runs a thing for the first time makes its code, but where the code on disk is the subject.
  setenv("NITINOL_CACHE", options.store.empty() ? "0" : options.store.c_str(),
         options.store.empty() ? 0 : 1);
  if (options.is_worker || options.is_server || !options.cold.empty()) {
    if (!options.is_server) {  // which computes elsewhere, and compiles on all cores
      nitinol::bench::pin_to_cores(options.threads.front());
      nitinol::set_num_threads(options.threads.front());
    }
    use_device(options.device);
    options.cold.empty() ? work(options) : print_cold_rows(options);
    return 0;
  }
  // Read first: a mistyped name should not cost a run.
  std::vector<nitinol::bench::PeerRow> peers;
  if (!options.against.empty()) peers = nitinol::bench::read_peers(options.against);
  use_device(options.device);  // says what is wrong with it before a process is started
  const std::vector<Row> rows = measure(options);
  check_names(options, rows);
  if (options.device != "cpu:0") fmt::print("On {}:\n", options.device);
  nitinol::bench::print_table(rows);
  if (!options.against.empty()) {
    nitinol::bench::print_against(rows, peers,
                                  options.is_by_fastest ? Figure::fastest : Figure::median);
  }
  if (!options.json.empty()) nitinol::bench::write_json(options.json, options.device, rows);
  return nitinol::bench::print_differences(rows) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    CLI::App app("Times Nitinol on the workloads of the peers harness.");
    app.add_option("--rows", options.rows, "prefixes of row names, e.g. W1c,W5,limit")
        ->delimiter(',');
    app.add_option("--threads", options.threads, "thread counts")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    app.add_option("--device", options.device, "where to compute: cpu:0, cuda:0");
    app.add_option("--json", options.json, "write the rows to this file");
    app.add_option("--against", options.against,
                   "a results file of the peers harness to compare with");
    app.add_flag("--fastest", options.is_by_fastest, "compare fastest samples, not medians");
    app.add_option("--store", options.store, "where --cold finds code on disk");
    app.add_flag("--profile", options.is_profiled,
                 "each row also while a Profile is open, sample by sample in turn");
    app.add_flag("--check-nan", options.is_checked,
                 "each row also while NaN is looked for, likewise");
    app.add_flag("--quick", options.is_quick,
                 "few and short samples: a check that everything runs");
    app.add_flag("--serve", options.is_server,
                 "time the rows that standard input names, one by one; JSON lines");
    app.add_flag("--worker", options.is_worker)->group("");
    app.add_option("--cold", options.cold)->group("");
    CLI11_PARSE(app, argc, argv);
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nitinol_bench: %s\n", error.what());
    return 1;
  }
}
