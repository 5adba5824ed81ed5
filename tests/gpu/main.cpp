// tests/gpu -- nitinol_gpu_kernels: runs collected cases on a GPU, compares them with the cpu bit
// by bit, and times rows beside a copy of the same bytes.
//
// Where NVRTC is: `--pack FILE --cases FOLDER` compiles all kernels. Where a GPU is: `--run FILE`
// needs the driver alone.

#include "backends/cuda/runtime/call.h"
#include "backends/cuda/text/printer.h"
#include "core/device.h"
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
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

struct Options {
  std::string pack, run, time, cases;
  std::vector<std::string> rows;  ///< prefixes of names; empty means all
  std::vector<int> architectures = {90};
  int repetitions = 100;
  std::size_t limit = 1U << 30;
  bool once = false, is_quick = false, prints_machine = false;
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
  for_each_row(options.rows, [&](const Row& row) {
    for (const RowLaunch& launch : row.launches)
      pack.add(launch.kernel, cuda::schedule_of(launch.kernel, launch.launch(launch.buffers)),
               options.architectures);
  });
  pack.write(out);
  for (Case& value : cases) pack.write(out, std::move(value));
  fmt::print("{}: {} cases, {} cubins\n", options.pack, cases.size(), pack.size());
  return out ? 0 : 1;
}

// ---- where a GPU is

/// A line of the results.
void emit(const nlohmann::json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

Pack pack_of(std::istream& in, const std::string& path) {
  if (!in) throw Error(ErrorKind::io, {.where = "--run", .what = path + " cannot be read"});
  Pack pack;
  pack.read(in);
  return pack;
}

void* pointer(Address at) {
  return reinterpret_cast<void*>(at);  // NOLINT
}

/// Memory for what a launch needs beside its operands.
class Workspaces {
 public:
  explicit Workspaces(const Gpu& gpu) : gpu_(gpu) {}
  cuda::Places places(const cuda::Workspace& needed) {
    grow(workspace_, needed.bytes + 16);
    if (grow(counters_, 4 * needed.counters + 8))
      gpu_.clear(counters_->address(), counters_->bytes());
    return {.workspace = pointer(workspace_->address()),
            .counters = static_cast<uint32_t*>(pointer(counters_->address() + 8)),
            .status = static_cast<uint32_t*>(pointer(counters_->address())),
            .gate = nullptr};
  }
  void clear_status() const { gpu_.clear(counters_->address(), 8); }
  [[nodiscard]] uint32_t status() const {
    uint32_t code = 0;
    gpu_.download(counters_->address(), std::as_writable_bytes(std::span(&code, 1)));
    return code;
  }

 private:
  bool grow(std::unique_ptr<GpuMemory>& memory, std::size_t bytes) {
    if (memory && memory->bytes() >= bytes) return false;
    gpu_.wait();
    memory = std::make_unique<GpuMemory>(2 * bytes);
    return true;
  }
  const Gpu& gpu_;
  std::unique_ptr<GpuMemory> workspace_, counters_;
};

/// A case whose operands stay on the GPU from one run to the next.
class CaseOnGpu {
 public:
  CaseOnGpu(const Case& value, const Gpu& gpu) : case_(value), gpu_(gpu) {
    const std::size_t count = value.memory.size();
    memory_.resize(count);
    before_.resize(count);
    buffers_.resize(count);
    starts_.resize(count);
    for (std::size_t k = 0; k < count; ++k) place(k);
  }

  /// What differs after one more run, or an empty text.
  std::string run(const GpuModule& module, const cuda::Schedule& schedule,
                  Workspaces& workspaces) const {
    for (std::size_t k = 0; k < memory_.size(); ++k) {
      if (before_[k] != nullptr)
        gpu_.copy(before_[k]->address(), starts_[k], case_.memory[k].before.size());
    }
    const Launch launch = case_.launch(buffers_);
    const cuda::Places places =
        workspaces.places(cuda::workspace_of(case_.kernel, schedule, launch));
    workspaces.clear_status();
    const cuda::Call call = cuda::call_of(case_.kernel, schedule, launch, places);
    module.launch(gpu_, call);
    const uint32_t status = workspaces.status();
    if (status != case_.status)
      return fmt::format("the status is {}, expected {}", status, case_.status);
    if (status != 0) return {};
    for (std::size_t k = 0; k < case_.memory.size(); ++k) {
      std::vector<std::byte> found(case_.memory[k].after.size());
      if (found.empty()) continue;
      gpu_.download(starts_[k], found);
      if (std::string text = difference(case_, k, found.data()); !text.empty()) return text;
    }
    return {};
  }

 private:
  void place(std::size_t k) {
    const CaseMemory& of = case_.memory[k];
    if (of.before.empty()) return;
    if (of.same_as >= 0) {
      buffers_[k] = buffers_[static_cast<std::size_t>(of.same_as)];
      starts_[k] = starts_[static_cast<std::size_t>(of.same_as)];
      return;
    }
    memory_[k] = std::make_unique<GpuMemory>(of.before.size() + 128);
    const int64_t misalignment = (static_cast<int64_t>(of.misalignment) - of.first % 64 + 128) % 64;
    starts_[k] = memory_[k]->address() + static_cast<Address>(misalignment);
    gpu_.upload(of.before, starts_[k]);
    buffers_[k] = pointer(starts_[k] + static_cast<Address>(of.first));
    const bool is_written = std::ranges::any_of(case_.memory, [&](const CaseMemory& other) {
      return !other.after.empty() && (&other == &of || other.same_as == static_cast<int32_t>(k));
    });
    if (!is_written) return;
    before_[k] = std::make_unique<GpuMemory>(of.before.size());
    gpu_.copy(starts_[k], before_[k]->address(), of.before.size());
  }

  const Case& case_;
  const Gpu& gpu_;
  std::vector<std::unique_ptr<GpuMemory>> memory_, before_;
  std::vector<void*> buffers_;
  std::vector<Address> starts_;
};

/// Runs the cases of a pack. Each line of the results says how many more were run.
int run_cases(const Options& options) {
  const Gpu gpu;
  std::ifstream in(options.run, std::ios::binary);
  Pack pack = pack_of(in, options.run);
  Workspaces workspaces(gpu);
  std::size_t cases = 0, told = 0, repeated = 0, different = 0;
  const auto tell = [&] {
    emit(
        {{"count", cases - told}, {"cases", cases}, {"repeated", repeated}, {"differ", different}});
    told = cases;
  };
  while (std::optional<Case> value = pack.read_case(in)) {
    if (cases >= options.limit) break;
    ++cases;
    const cuda::Schedule schedule = schedule_of(*value);
    const GpuModule module(pack.find(value->kernel, schedule, gpu.architecture()),
                           cuda::entry_count(value->kernel, schedule));
    // Parts of split rows meet in any order: what is wrong with that shows now and then.
    const int times = schedule.is_split ? options.repetitions : 1;
    if (schedule.is_split) ++repeated;
    const CaseOnGpu on(*value, gpu);
    for (int i = 0; i < times; ++i) {
      const std::string failure = on.run(module, schedule, workspaces);
      if (failure.empty()) continue;
      ++different;
      emit({{"count", 0},
            {"case", cases},
            {"run", i + 1},
            {"differs", failure},
            {"schedule", to_string(schedule)},
            {"kernel", to_string(value->kernel)}});
      break;
    }
    if (cases % 100 == 0) tell();
  }
  tell();
  return different == 0 ? 0 : 1;
}

/// A launch of a row with its operands on the GPU.
struct OnGpu {
  std::unique_ptr<GpuModule> module;
  std::vector<std::unique_ptr<GpuMemory>> memory;
  std::unique_ptr<Workspaces> workspaces;
  cuda::Call call;
};

OnGpu placed(const RowLaunch& launch, const Pack& pack, const Gpu& gpu) {
  OnGpu on;
  on.workspaces = std::make_unique<Workspaces>(gpu);
  std::vector<void*> buffers(launch.buffers.size());
  const Launch host = launch.launch(launch.buffers);
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    on.memory.emplace_back();
    if (launch.buffers[k] == nullptr) continue;
    const Reach reach = reach_of(launch.kernel, host, k);
    const auto bytes = static_cast<std::size_t>(reach.high - reach.low);
    on.memory[k] = std::make_unique<GpuMemory>(bytes);
    gpu.upload({static_cast<const std::byte*>(launch.buffers[k]) + reach.low, bytes},
               on.memory[k]->address());
    buffers[k] = pointer(on.memory[k]->address() - static_cast<Address>(reach.low));
  }
  const Launch there = launch.launch(buffers);
  const cuda::Schedule schedule = cuda::schedule_of(launch.kernel, there);
  on.module = std::make_unique<GpuModule>(pack.find(launch.kernel, schedule, gpu.architecture()),
                                          cuda::entry_count(launch.kernel, schedule));
  on.call =
      cuda::call_of(launch.kernel, schedule, there,
                    on.workspaces->places(cuda::workspace_of(launch.kernel, schedule, there)));
  on.workspaces->clear_status();
  return on;
}

/// What of a launch's outputs differs from the host's, or an empty text.
std::string difference_of(const RowLaunch& launch, const OnGpu& on, const Gpu& gpu) {
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
    gpu.download(on.memory[k]->address(), found);
    if (std::string text = difference(expected, k, found.data()); !text.empty()) return text;
  }
  return {};
}

/// The launches of a row, on operands that take turns: so many that the GPU's cache holds none of
/// those whose turn comes next.
class RowOnGpu {
 public:
  RowOnGpu(const Row& row, const Pack& pack, const Gpu& gpu, bool takes_turns) : gpu_(gpu) {
    constexpr double most = 32;
    const double wanted = std::ceil(4.0 * gpu.cache_bytes() / std::max(row.bytes, 1.0));
    sets_.resize(takes_turns ? static_cast<std::size_t>(std::clamp(wanted, 1.0, most)) : 1);
    for (auto& set : sets_) {
      for (const RowLaunch& launch : row.launches) set.push_back(placed(launch, pack, gpu));
    }
  }
  void run() {
    for (const OnGpu& on : sets_[next_]) on.module->launch(gpu_, on.call);
    next_ = (next_ + 1) % sets_.size();
  }
  /// Of the first set.
  [[nodiscard]] std::string difference(const Row& row) const {
    for (std::size_t i = 0; i < row.launches.size(); ++i) {
      if (std::string text = difference_of(row.launches[i], sets_[0][i], gpu_); !text.empty())
        return text;
    }
    return {};
  }
  /// How often the driver is called for one run.
  [[nodiscard]] std::size_t kernels() const {
    std::size_t count = 0;
    for (const OnGpu& on : sets_[0]) count += on.call.blocks.size();
    return count;
  }

 private:
  const Gpu& gpu_;
  std::vector<std::vector<OnGpu>> sets_;
  std::size_t next_ = 0;
};

/// Times the rows of a pack, each beside a copy on the device that reads and writes as much; with
/// options.once each runs once, for a profiler.
int run_rows(const Options& options) {
  const Gpu gpu;
  std::ifstream in(options.time, std::ios::binary);
  const Pack pack = pack_of(in, options.time);
  const GpuMemory filler(options.is_quick ? 1 << 16 : 1 << 30);
  const int times = options.is_quick ? 1 : 50, rounds = options.is_quick ? 1 : 5;
  std::size_t different = 0;
  for_each_row(options.rows, [&](const Row& row) {
    RowOnGpu on(row, pack, gpu, !options.once);
    on.run();
    gpu.wait();
    nlohmann::json line = {{"row", row.name}, {"kernels", on.kernels()}, {"bytes", row.bytes}};
    if (const std::string text = on.difference(row); !text.empty()) {
      ++different;
      line["differs"] = text;
    }
    if (!options.once) {
      const auto half = static_cast<std::size_t>(row.bytes / 2);
      const std::size_t sets = std::max<std::size_t>(1, filler.bytes() / 2 / (half + 256));
      std::size_t next = 0;
      double time = 1e9, copy = 1e9;
      for (int round = 0; round < rounds; ++round) {  // one after another, the fastest of each
        time = std::min(time, milliseconds(gpu, filler, times, [&] { on.run(); }));
        copy = std::min(copy, milliseconds(gpu, filler, times, [&] {
                          const Address at =
                              filler.address() + (half + 255) / 256 * 256 * (next++ % sets);
                          gpu.copy(at, at + filler.bytes() / 2, half);
                        }));
      }
      line.update({{"microseconds", 1e3 * time},
                   {"copy_microseconds", 1e3 * copy},
                   {"of_copy", copy / time}});
    }
    emit(line);
  });
  return different == 0 ? 0 : 1;
}

/// What this machine has: its GPU, and the libraries with the files they came from.
int print_machine() {
  nlohmann::json line = nlohmann::json::object();
  nlohmann::json missing = nlohmann::json::array();
  for (const DeviceInfo& info : devices()) {
    if (!info.missing.empty()) missing.push_back(describe(info.device) + ": " + info.missing);
  }
  line["missing"] = missing;
  if (cuda::has_driver()) {
    const Gpu gpu;
    line.update({{"device", gpu.name()},
                 {"architecture", gpu.architecture()},
                 {"multiprocessors", gpu.multiprocessors()},
                 {"cache_bytes", gpu.cache_bytes()},
                 {"driver", gpu.driver_version()}});
  }
  if (cuda::has_nvrtc()) line["nvrtc"] = cuda::nvrtc_version();
  if (cuda::has_cublas_lt()) line["cublas_lt"] = cuda::cublas_lt().cublasLtGetVersion();
  if (cuda::has_cudnn()) line["cudnn"] = cuda::cudnn().cudnnGetVersion();
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> files;
  for (std::string text; std::getline(maps, text);) {
    const std::size_t path = text.find('/');
    if (path == std::string::npos) continue;
    const std::string name = std::filesystem::path(text.substr(path)).filename();
    if (name.starts_with("libcu") || name.starts_with("libnvrtc")) files.insert(text.substr(path));
  }
  line["files"] = files;
  emit(line);
  return line.contains("device") ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs kernels on a GPU and compares them with the cpu bit by bit; times rows.");
  app.add_option("--pack", options.pack, "compile all kernels into this file, by NVRTC");
  app.add_option("--cases", options.cases, "the folder of cases that go into the pack");
  app.add_option("--for", options.architectures, "for which GPUs")
      ->delimiter(',')
      ->capture_default_str();
  app.add_flag("--machine", options.prints_machine, "say which GPU and libraries there are");
  app.add_option("--run", options.run, "run the cases of this pack on the GPU; JSON lines");
  app.add_option("--time", options.time, "time the rows of this pack; JSON lines");
  app.add_option("--rows", options.rows, "prefixes of names of rows")->delimiter(',');
  app.add_flag("--once", options.once, "run each row once, untimed, for a profiler");
  app.add_flag("--quick", options.is_quick, "few and short samples: a check that everything runs");
  app.add_flag("--resources", options.checks_resources, "what kernels of rows take of a GPU");
  app.add_flag("--compile-times", options.times_compiler, "what compiling kernels of rows takes");
  app.add_option("--repetitions", options.repetitions, "of cases whose rows are split")
      ->capture_default_str();
  app.add_option("--limit", options.limit, "take only so many cases");
  CLI11_PARSE(app, argc, argv);
  try {
    set_log_level(LogLevel::off);
    if (!options.pack.empty()) return make_pack(options);
    if (options.prints_machine) return print_machine();
    if (!options.run.empty()) return run_cases(options);
    if (!options.time.empty()) return run_rows(options);
    if (options.checks_resources || options.times_compiler) {
      constexpr int skipped = 77;
      if (!cuda::has_nvrtc()) return skipped;
      if (options.times_compiler) print_compile_times();
      return options.checks_resources ? std::min(check_resources(options.rows), 1) : 0;
    }
    fmt::print(stderr, "{}", app.help());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
