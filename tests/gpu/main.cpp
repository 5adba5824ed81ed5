// tests/gpu -- nitinol_gpu_kernels: runs collected cases on a GPU, compares them with the cpu bit
// by bit, and times rows beside a copy of the same bytes.
//
// Where NVRTC is: `--pack FILE --cases FOLDER` compiles all kernels. Where a GPU is: `--run FILE`
// needs the driver alone.

#include "backends/cuda/call.h"
#include "backends/cuda/printer.h"
#include "core/error.h"
#include "core/log.h"
#include "tests/gpu/gpu.h"
#include "tests/gpu/pack.h"
#include "tests/gpu/resources.h"
#include "tests/gpu/rows.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

struct Options {
  std::string pack, run, cases, out;
  std::vector<int> architectures = {80, 90, 100};
  int repetitions = 1000;
  std::size_t limit = 1U << 30;
  bool checks_resources = false, times_compiler = false;
};

// ---- where NVRTC is

int make_pack(const Options& options) {
  std::ofstream out(options.pack, std::ios::binary);
  Pack pack;
  std::vector<Case> cases;
  std::map<std::string, int> alike;
  if (!options.cases.empty()) {
    for (const auto& file : std::filesystem::directory_iterator(options.cases)) {
      if (file.path().extension() != ".cases") continue;
      std::ifstream in(file.path(), std::ios::binary);
      while (std::optional<Case> value = read_case(in)) {
        const cuda::Schedule schedule = schedule_of(*value);
        if (++alike[cuda::print(value->kernel, schedule)] > 1 || cases.size() >= options.limit)
          continue;
        pack.add(value->kernel, schedule, options.architectures);
        cases.push_back(std::move(*value));
        if (cases.size() % 200 == 0) fmt::print(stderr, "{} kernels compiled\n", cases.size());
      }
    }
  }
  for_each_row([&](const Row& row) {
    for (const RowLaunch& launch : row.launches)
      pack.add(launch.kernel, cuda::schedule_of(launch.kernel, launch.launch(launch.buffers)),
               options.architectures);
  });
  pack.write(out);
  for (const Case& value : cases) write(out, value);
  fmt::print("{}: {} cases, {} cubins\n", options.pack, cases.size(), pack.size());
  return out ? 0 : 1;
}

// ---- where a GPU is

/// Memory for what a launch needs beside its operands.
class Workspaces {
 public:
  cuda::Places places(const cuda::Workspace& needed) {
    grow(workspace_, needed.bytes + 16);
    const std::size_t counters = 4 * needed.counters + 8;
    if (grow(counters_, counters))
      check(cuda::driver().cuMemsetD8_v2(counters_->address(), 0, counters_->bytes()), "clearing");
    check(cuda::driver().cuMemsetD8_v2(counters_->address(), 0, 8), "clearing");
    const auto pointer = [](Address at) { return reinterpret_cast<void*>(at); };  // NOLINT
    return {.workspace = pointer(workspace_->address()),
            .counters = static_cast<uint32_t*>(pointer(counters_->address() + 8)),
            .status = static_cast<uint32_t*>(pointer(counters_->address())),
            .gate = nullptr};
  }
  [[nodiscard]] uint32_t status() const {
    uint32_t code = 0;
    download(counters_->address(), std::as_writable_bytes(std::span(&code, 1)));
    return code;
  }

 private:
  static bool grow(std::unique_ptr<GpuMemory>& memory, std::size_t bytes) {
    if (memory && memory->bytes() >= bytes) return false;
    memory = std::make_unique<GpuMemory>(2 * bytes);
    return true;
  }
  std::unique_ptr<GpuMemory> workspace_, counters_;
};

/// What of a case differs on the GPU, or an empty text.
std::string failure_of(const Case& value, const GpuModule& module, const cuda::Schedule& schedule,
                       Workspaces& workspaces) {
  std::vector<std::unique_ptr<GpuMemory>> memory(value.memory.size());
  std::vector<void*> buffers(value.memory.size());
  std::vector<Address> starts(value.memory.size());
  for (std::size_t k = 0; k < value.memory.size(); ++k) {
    const CaseMemory& of = value.memory[k];
    if (of.before.empty()) continue;
    if (of.same_as >= 0) {
      buffers[k] = buffers[static_cast<std::size_t>(of.same_as)];
      starts[k] = starts[static_cast<std::size_t>(of.same_as)];
      continue;
    }
    memory[k] = std::make_unique<GpuMemory>(of.before.size() + 128);
    const int64_t misalignment = (static_cast<int64_t>(of.misalignment) - of.first % 64 + 128) % 64;
    starts[k] = memory[k]->address() + static_cast<Address>(misalignment);
    upload(of.before, starts[k]);
    buffers[k] = reinterpret_cast<void*>(starts[k] + static_cast<Address>(of.first));  // NOLINT
  }
  const Launch launch = value.launch(buffers);
  const cuda::Places places = workspaces.places(cuda::workspace_of(value.kernel, schedule, launch));
  const cuda::Call call = cuda::call_of(value.kernel, schedule, launch, places);
  module.launch(call.blocks, call.arguments);
  check(cuda::driver().cuCtxSynchronize(), "a kernel");
  if (workspaces.status() != value.status)
    return fmt::format("the status is {}, expected {}", workspaces.status(), value.status);
  if (value.status != 0) return {};
  for (std::size_t k = 0; k < value.memory.size(); ++k) {
    std::vector<std::byte> found(value.memory[k].after.size());
    download(starts[k], found);
    if (std::string text = difference(value, k, found.data()); !text.empty()) return text;
  }
  return {};
}

struct Outcome {
  std::size_t cases = 0, repeated = 0;
  std::vector<std::string> failures;
};

Outcome run_cases(std::istream& in, const Pack& pack, const Gpu& gpu, const Options& options) {
  Outcome outcome;
  Workspaces workspaces;
  while (std::optional<Case> value = read_case(in)) {
    if (outcome.cases >= options.limit) break;
    ++outcome.cases;
    const cuda::Schedule schedule = schedule_of(*value);
    const GpuModule module(pack.find(value->kernel, schedule, gpu.architecture()),
                           cuda::entry_count(value->kernel, schedule));
    // Parts of split rows meet in any order: what is wrong with that shows now and then.
    const int times = schedule.is_split ? options.repetitions : 1;
    if (schedule.is_split) ++outcome.repeated;
    for (int i = 0; i < times; ++i) {
      const std::string failure = failure_of(*value, module, schedule, workspaces);
      if (failure.empty()) continue;
      fmt::print("DIFFERENT: {}\n  schedule: {}\n{}", failure, to_string(schedule),
                 to_string(value->kernel));
      outcome.failures.push_back(failure);
      break;
    }
    if (outcome.cases % 500 == 0) fmt::print(stderr, "{} cases run\n", outcome.cases);
  }
  return outcome;
}

/// Milliseconds of a copy on the device that reads and writes so many bytes, together.
double copy_milliseconds(double bytes) {
  const auto half = static_cast<std::size_t>(bytes / 2);
  const GpuMemory from(half + 16), to(half + 16);
  return milliseconds(50, [&] {
    check(cuda::driver().cuMemcpyDtoDAsync_v2(to.address(), from.address(), half, nullptr),
          "a copy");
  });
}

/// A launch of a row with its operands on the GPU.
struct OnGpu {
  std::unique_ptr<GpuModule> module;
  std::vector<std::unique_ptr<GpuMemory>> memory;
  std::unique_ptr<Workspaces> workspaces = std::make_unique<Workspaces>();
  cuda::Call call;
};

OnGpu placed(const RowLaunch& launch, const Pack& pack, const Gpu& gpu) {
  OnGpu on;
  std::vector<void*> buffers(launch.buffers.size());
  const Launch host = launch.launch(launch.buffers);
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    on.memory.emplace_back();
    if (launch.buffers[k] == nullptr) continue;
    const Reach reach = reach_of(launch.kernel, host, k);
    const auto bytes = static_cast<std::size_t>(reach.high - reach.low);
    on.memory[k] = std::make_unique<GpuMemory>(bytes);
    upload({static_cast<const std::byte*>(launch.buffers[k]) + reach.low, bytes},
           on.memory[k]->address());
    buffers[k] = reinterpret_cast<void*>(  // NOLINT
        on.memory[k]->address() - static_cast<Address>(reach.low));
  }
  const Launch there = launch.launch(buffers);
  const cuda::Schedule schedule = cuda::schedule_of(launch.kernel, there);
  on.module = std::make_unique<GpuModule>(pack.find(launch.kernel, schedule, gpu.architecture()),
                                          cuda::entry_count(launch.kernel, schedule));
  on.call =
      cuda::call_of(launch.kernel, schedule, there,
                    on.workspaces->places(cuda::workspace_of(launch.kernel, schedule, there)));
  return on;
}

/// Elements of outputs that differ from the host's.
std::size_t differing(const RowLaunch& launch, const OnGpu& on) {
  std::size_t count = 0;
  Case expected = {.kernel = launch.kernel,
                   .sizes = launch.sizes,
                   .strides = launch.strides,
                   .offsets = launch.offsets,
                   .scalars = launch.scalars,
                   .memory = std::vector<CaseMemory>(launch.buffers.size())};
  const Launch host = launch.launch(launch.buffers);
  for (std::size_t k = 0; k < launch.buffers.size(); ++k) {
    if (launch.kernel.operands[k].role != Role::output) continue;
    const Reach reach = reach_of(launch.kernel, host, k);
    const auto* const at = static_cast<const std::byte*>(launch.buffers[k]);
    expected.memory[k].after.assign(at + reach.low, at + reach.high);
    std::vector<std::byte> found(expected.memory[k].after.size());
    download(on.memory[k]->address(), found);
    if (const std::string text = difference(expected, k, found.data()); !text.empty()) {
      fmt::print("DIFFERENT: {}\n", text);
      ++count;
    }
  }
  return count;
}

nlohmann::json run_rows(const Pack& pack, const Gpu& gpu, std::size_t& different) {
  nlohmann::json list = nlohmann::json::array();
  fmt::print("{:18} {:>9} {:>9} {:>9} {:>6}\n", "row", "us", "copy us", "GB/s", "copy");
  for_each_row([&](const Row& row) {
    std::vector<OnGpu> launches;
    for (const RowLaunch& launch : row.launches) launches.push_back(placed(launch, pack, gpu));
    const auto run = [&] {
      for (const OnGpu& on : launches) on.module->launch(on.call.blocks, on.call.arguments);
    };
    run();
    gpu.wait();
    for (std::size_t i = 0; i < launches.size(); ++i)
      different += differing(row.launches[i], launches[i]);
    double time = 1e9, copy = 1e9;
    for (int round = 0; round < 5; ++round) {  // one after another, the fastest of each
      time = std::min(time, milliseconds(50, run));
      copy = std::min(copy, copy_milliseconds(row.bytes));
    }
    fmt::print("{:18} {:9.1f} {:9.1f} {:9.0f} {:6.2f}\n", row.name, 1e3 * time, 1e3 * copy,
               row.bytes / time / 1e6, copy / time);
    list.push_back({{"row", row.name},
                    {"kernels", launches.size()},
                    {"bytes", row.bytes},
                    {"microseconds", 1e3 * time},
                    {"copy_microseconds", 1e3 * copy},
                    {"of_copy", copy / time}});
  });
  return list;
}

int run_pack(const Options& options) {
  const Gpu gpu;
  fmt::print("{}, sm_{}, {} multiprocessors, driver {}\n", gpu.name(), gpu.architecture(),
             gpu.multiprocessors(), gpu.driver_version());
  std::ifstream in(options.run, std::ios::binary);
  if (!in) throw Error(ErrorKind::io, {.where = "--run", .what = options.run + " cannot be read"});
  Pack pack;
  pack.read(in);
  const Outcome outcome = run_cases(in, pack, gpu, options);
  fmt::print("{} cases ({} of them {} times): {} differ from the cpu\n", outcome.cases,
             outcome.repeated, options.repetitions, outcome.failures.size());
  std::size_t different = 0;
  const nlohmann::json rows = run_rows(pack, gpu, different);
  if (!options.out.empty()) {
    const nlohmann::json report = {{"device", gpu.name()},
                                   {"architecture", gpu.architecture()},
                                   {"multiprocessors", gpu.multiprocessors()},
                                   {"driver", gpu.driver_version()},
                                   {"cases", outcome.cases},
                                   {"cases_that_differ", outcome.failures.size()},
                                   {"rows_that_differ", different},
                                   {"rows", rows}};
    std::ofstream(options.out) << report.dump(2) << "\n";
  }
  return outcome.failures.empty() && different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs kernels on a GPU and compares them with the cpu bit by bit; times rows.");
  app.add_option("--pack", options.pack, "compile all kernels into this file, by NVRTC");
  app.add_option("--cases", options.cases, "the folder of cases that go into the pack");
  app.add_option("--for", options.architectures, "for which GPUs")->capture_default_str();
  app.add_option("--run", options.run, "run this pack on the GPU");
  app.add_option("--out", options.out, "write results here, as JSON");
  app.add_flag("--resources", options.checks_resources, "what kernels of rows take of a GPU");
  app.add_flag("--compile-times", options.times_compiler, "what compiling kernels of rows takes");
  app.add_option("--repetitions", options.repetitions, "of cases whose rows are split");
  app.add_option("--limit", options.limit, "take only so many cases");
  CLI11_PARSE(app, argc, argv);
  try {
    set_log_level(LogLevel::off);
    if (!options.pack.empty()) return make_pack(options);
    if (!options.run.empty()) return run_pack(options);
    if (options.checks_resources || options.times_compiler) {
      constexpr int skipped = 77;
      if (!cuda::has_nvrtc()) return skipped;
      if (options.times_compiler) print_compile_times();
      return options.checks_resources ? std::min(check_resources(), 1) : 0;
    }
    fmt::print(stderr, "{}", app.help());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
