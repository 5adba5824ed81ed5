// tests/replay -- Runs the CUDA text of kernels on the host and compares with what the cpu did.
//
// Reads the cases of a folder (tests/cuda/case.h), prints each kernel by the schedule of its
// launch, has the host's compiler translate the text against shim.h, and runs every case with the
// threads of a block as fibers: in three orders, between forbidden pages, and once with the gate
// shut.

#include "backends/cuda/runtime/libraries.h"
#include "backends/cuda/text/prelude.h"
#include "backends/cuda/text/printer.h"
#include "tests/cuda/case.h"
#include "tests/replay/batch.h"
#include "tests/replay/cubins.h"
#include "tests/replay/mutants.h"
#include "tests/replay/object_name.h"
#include "tests/replay/statements.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

struct Options {
  std::vector<std::string> folders;
  int jobs = 2;
  std::size_t kernels_in_batch = 72;
  std::size_t cases_at_least = 1;
  CubinOptions cubins;
  std::size_t mutants = 0;            ///< of how many kernels of a shape
  std::optional<std::size_t> all_of;  ///< how many texts that say nothing new
};

/// Every so many texts, one more that indexes by 64 bits.
constexpr std::size_t wide_share = 12;
constexpr std::size_t most_alike = 4;

void add(const Case& value, cuda::Schedule schedule, std::vector<Printed>& list,
         std::unordered_map<std::string, std::size_t>& known) {
  std::string text = cuda::print(value.kernel, schedule);
  const auto [found, is_new] = known.try_emplace(text, list.size());
  if (is_new) list.push_back({std::move(text), schedule, {}});
  std::vector<Case>& cases = list[found->second].cases;
  if (cases.size() < most_alike) cases.push_back(value);
  if (!is_new || schedule.is_wide || list.size() % wide_share != 0) return;
  schedule.is_wide = true;
  add(value, schedule, list, known);
}

std::vector<std::filesystem::path> files_of(const std::vector<std::string>& folders,
                                            std::string_view extension) {
  std::vector<std::filesystem::path> files;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == extension) files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

/// The texts of library calls, without cases.
std::vector<Printed> read_texts(const std::vector<std::string>& folders) {
  std::unordered_set<std::string> known;
  std::vector<Printed> list;
  for (const auto& file : files_of(folders, ".texts")) {
    std::ifstream in(file, std::ios::binary);
    for (std::string text; std::getline(in, text, '\0');) {
      if (known.insert(text).second) list.push_back({std::move(text), {}, {}});
    }
  }
  return list;
}

std::vector<Printed> read_all(const std::vector<std::string>& folders) {
  std::vector<Printed> list;
  std::unordered_map<std::string, std::size_t> known;
  for (const auto& file : files_of(folders, ".cases")) {
    std::ifstream in(file, std::ios::binary);
    while (std::optional<Case> value = read_case(in)) {
      const cuda::Schedule schedule = schedule_of(*value);
      add(*value, schedule, list, known);
    }
  }
  return list;
}

/// The first `all_of` texts, and those in which two statements follow each other as in none before.
std::vector<Printed> with_new_pairs(std::vector<Printed> all, std::size_t all_of) {
  std::unordered_set<std::string> seen;
  std::size_t number = 0;
  std::erase_if(all, [&](const Printed& printed) {
    bool is_new = false;
    std::string before;
    for (std::string& statement : statements_of(printed.text)) {
      is_new |= seen.insert(fmt::format("{}\n{}", before, statement)).second;
      before = std::move(statement);
    }
    return number++ >= all_of && !is_new;
  });
  return all;
}

std::string contents_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// By which the fake driver asks for it, which drops what stands before the common words.
std::string name_of(const Printed& printed, const std::string& host) {
  const std::string_view words = cuda::common_words();
  return object_name(std::string(words.substr(words.find_first_not_of('\n'))) + printed.text, host);
}

int run(const Options& options) {
  std::vector<Printed> all = read_all(options.folders);
  const std::string& folder = options.folders.front();  // in which files are made
  if (options.all_of) all = with_new_pairs(std::move(all), *options.all_of);
  std::array<int, 5> shapes = {};
  int split = 0, wide = 0;
  for (const Printed& printed : all) {
    ++shapes[static_cast<std::size_t>(printed.schedule.shape)];
    split += printed.schedule.is_split ? 1 : 0;
    wide += printed.schedule.is_wide ? 1 : 0;
  }
  fmt::print("{} texts: points {}, tiles {}, rows {}, blocks {}, columns {}; split {}, wide {}\n",
             all.size(), shapes[0], shapes[1], shapes[2], shapes[3], shapes[4], split, wide);
  std::fflush(stdout);
  if (!options.cubins.architectures.empty()) return compile_all(all, options.cubins) == 0 ? 0 : 1;
  if (options.mutants > 0) {
    return finds_mutants(all, options.mutants, NITINOL_SHIM, NITINOL_HOST_COMPILER,
                         folder + "/mutant")
               ? 0
               : 1;
  }
  // No cases: what library calls compute the tests of their ops see, on the fake driver.
  std::vector<Printed> texts = read_texts(options.folders);
  fmt::print("{} texts of library calls, compiled alone\n", texts.size());
  std::ranges::move(texts, std::back_inserter(all));
  const std::size_t size = options.kernels_in_batch, batches = (all.size() + size - 1) / size;
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  int cases = 0;
  std::vector<std::string> failures;
  // For the fake driver, which runs the same texts.
  std::ofstream objects(folder + "/objects");
  const std::string host = contents_of(NITINOL_SHIM) + NITINOL_HOST_COMPILER;
  const auto work = [&] {
    for (std::size_t b = next++; b < batches; b = next++) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(b * size);
      const auto count = static_cast<std::ptrdiff_t>(std::min(size, all.size() - b * size));
      const BatchResult result =
          run_batch({first, first + count}, NITINOL_SHIM, NITINOL_HOST_COMPILER,
                    fmt::format("{}/batch{}", folder, b));
      const std::lock_guard lock(mutex);
      cases += result.cases;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
        objects << fmt::format("{} {}/batch{}.so run{}\n", name_of(all[b * size + i], host),
                               std::filesystem::absolute(folder).string(), b, i);
      for (const std::string& failure : result.failures) {
        if (failures.size() < 20) fmt::print("FAILED: batch {}: {}\n", b, failure);
        std::fflush(stdout);
        failures.push_back(failure);
      }
    }
  };
  std::vector<std::thread> workers;
  for (int j = 0; j < options.jobs; ++j) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  fmt::print("{} cases in four ways each: {} failures\n", cases, failures.size());
  if (static_cast<std::size_t>(cases) < options.cases_at_least) {
    fmt::print("FAILED: there should be {} cases at least\n", options.cases_at_least);
    return 1;
  }
  return failures.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs the CUDA text of kernels on the host and compares with what the cpu did.");
  app.add_option("folders", options.folders, "where the files of cases are")->required();
  app.add_option("--jobs", options.jobs, "batches at the same time")->capture_default_str();
  app.add_option("--at-least", options.cases_at_least, "fail if there are fewer cases");
  CubinOptions& cubins = options.cubins;
  app.add_option("--compile", cubins.architectures, "compile for these instead, such as 80 90 100");
  app.add_flag("--short", cubins.is_short,
               "each text for one of these, and only if it says there what none before did");
  app.add_option(
      "--all-of", options.all_of,
      "all of so many texts, and then those in which two statements follow each other as in "
      "none before");
  app.add_option("--mutants", options.mutants,
                 "make mistakes in so many kernels of each shape, which should be found");
  CLI11_PARSE(app, argc, argv);
  constexpr int skipped = 77;
  cubins.jobs = options.jobs;
  if (!cubins.architectures.empty() && !cuda::has_nvrtc()) {
    fmt::print("SKIPPED: there is no NVRTC. It was looked for:\n");
    for (const cuda::PlaceTried& tried : cuda::places_of_nvrtc())
      fmt::print("  {}: {}\n", tried.place, tried.why);
    return skipped;
  }
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
