// tests/fuzz/programs.cpp -- Draws random programs and runs each in every way there is.
//
// A failure is shrunk and printed as C++, a crash too: the programs run in a child process, and
// when it dies the parent shrinks the program it was at, one child per attempt. Every program has a
// number; `--program N` with the same seed runs that one alone, `--print` shows it without running
// it.

#include "core/device.h"
#include "core/isa.h"
#include "core/log.h"
#include "core/parallel.h"
#include "eager/ops/ops.h"
#include "tests/cuda/collecting.h"
#include "tests/fuzz/programs/check.h"
#include "tests/fuzz/programs/draw.h"
#include "tests/fuzz/programs/extra_ops.h"
#include "tests/fuzz/programs/isolate.h"
#include "tests/fuzz/programs/shrink.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <sys/mman.h>

using namespace nitinol;
using namespace nitinol::fuzz;

namespace {

struct Options {
  double seconds = 10;
  double shrink_seconds = 60;
  uint64_t seed = 1;
  int64_t first = 0;
  int64_t count = -1;
  int64_t only = -1;
  int each = 0;
  std::vector<std::string> without;
  std::string device;
  bool is_tiny = false;
  bool prints = false;
  bool digests = false;
};

uint64_t seed_of(const Options& options, int64_t number) {
  return options.seed * 1000003 + static_cast<uint64_t>(number);
}

/// What Plans fuse, move and reduce: a few ops, in any order.
constexpr std::array<std::string_view, 12> tiny_ops = {"add",     "mul",     "neg",    "exp",
                                                       "permute", "reshape", "slice",  "expand",
                                                       "sum",     "max",     "concat", "cumsum"};

/// The vocabulary, and what else programs may do. They run on one device, as Plans do.
std::vector<const Op*> drawn_ops(const Options& options) {
  std::vector<const Op*> ops(all_ops().begin(), all_ops().end());
  ops.insert(ops.end(), extra_ops().begin(), extra_ops().end());
  std::erase_if(ops, [&](const Op* op) {
    if (options.is_tiny && std::ranges::find(tiny_ops, op->name) == tiny_ops.end()) return true;
    const bool is_elsewhere = !options.device.empty() || std::getenv("NITINOL_CASES") != nullptr;
    return op->kind == OpKind::transfer || (is_elsewhere && op->name.starts_with("fuzz.host.")) ||
           std::ranges::find(options.without, op->name) != options.without.end();
  });
  return ops;
}

/// In a child alone: a GPU does not survive a fork.
void use_device(const Options& options) {
  if (options.device.empty()) return;
  const std::optional<Device> device = device_named(options.device);
  if (!device) throw CLI::ValidationError("--device", "no device has that name");
  set_default_device(*device);
}

/// What failed, or an empty text.
std::string failure_of(const Options& options, const Program& program, uint64_t seed) {
  const auto failure =
      options.is_tiny ? first_compiled_failure(program, seed) : first_failure(program, seed);
  return failure.value_or("");
}

constexpr std::string_view rarely = "drawn less often than ";

/// The ops that were drawn less often than they should be, or an empty text.
std::string rare_ops(const Options& options, const Drawer& drawer) {
  std::string rare;
  for (const Op* op : drawn_ops(options)) {
    const auto found = drawer.counts().find(op);
    const int count = found == drawer.counts().end() ? 0 : found->second;
    if (count < options.each) rare += fmt::format(" {} ({} times)", op->name, count);
  }
  return rare;
}

/// Draws and checks one program after another; stops at the first that fails. `number` is where it
/// is.
std::string check_programs(const Options& options, std::atomic<int64_t>& number) {
  Drawer drawer(drawn_ops(options), options.is_tiny);
  const auto start = std::chrono::steady_clock::now();
  const auto goes_on = [&] {
    if (options.count >= 0) {  // and up to twice as many, until each op has been drawn
      const int64_t done = number - options.first;
      return done < options.count ||
             (done < 2 * options.count && !rare_ops(options, drawer).empty());
    }
    return std::chrono::steady_clock::now() - start <
           std::chrono::duration<double>(options.seconds);
  };
  for (number = options.first; goes_on(); ++number) {
    const uint64_t seed = seed_of(options, number);
    const Program program = drawer.draw(seed);
    const std::string failure = failure_of(options, program, seed);
    if (!failure.empty()) return failure;
  }
  fmt::print("{} programs, seed {}, {}: same bits everywhere\n", number - options.first,
             options.seed, name_of(current_isa()));
  const std::string rare = rare_ops(options, drawer);
  if (rare.empty()) return {};
  return fmt::format("{}{} times, so not tested:{}", rarely, options.each, rare);
}

/// The same text: how digests of several instruction sets are compared.
void print_programs(const Options& options) {
  Drawer drawer(drawn_ops(options), options.is_tiny);
  const int64_t first = options.only >= 0 ? options.only : options.first;
  const int64_t count = options.only >= 0 ? 1 : std::max<int64_t>(options.count, 1);
  for (int64_t number = first; number < first + count; ++number) {
    const uint64_t seed = seed_of(options, number);
    const Program program = drawer.draw(seed);
    if (options.prints)
      fmt::print("// --seed {} --program {}\n{}", options.seed, number, to_cpp(program, seed));
    if (!options.digests || has_library_call(program)) continue;
    fmt::print("{} {:016x}\n", number, digest(program, seed));
  }
}

int report(const Options& options, int64_t number, const std::string& failure) {
  if (failure.starts_with(rarely)) {  // all programs hold
    fmt::print("FAILED: {}\n", failure);
    return 1;
  }
  fmt::print("FAILED:{} --seed {} --program {}\n  {}\n\nshrinking ...\n",
             options.is_tiny ? " --tiny" : "", options.seed, number, failure);
  std::fflush(stdout);
  const uint64_t seed = seed_of(options, number);
  std::string last = failure;
  // This process stays without threads of the pool, which the children could not use.
  set_num_threads(1);
  Drawer drawer(drawn_ops(options), options.is_tiny);
  const ChildOutcome drawn = run_in_child([&] {
    use_device(options);
    static_cast<void>(drawer.draw(seed));
    return std::string();
  });
  if (drawn.has_crashed) {
    fmt::print("  {}, in eager code, while the program was drawn\n", drawn.text);
    return 1;
  }
  const auto fails = [&](const Program& candidate) {
    const ChildOutcome outcome = run_in_child([&] {
      use_device(options);
      return failure_of(options, candidate, seed);
    });
    if (!outcome.text.empty()) last = outcome.text;
    return !outcome.text.empty();
  };
  const Program program = drawer.draw(seed);
  if (!fails(program))
    fmt::print("  (alone it does not fail: it depends on the programs before it)\n");
  const Program small = shrunk(program, fails, options.shrink_seconds);
  fmt::print("  {}\n\n  // tests/fuzz/programs/program.h, check.h\n{}", last, to_cpp(small, seed));
  return 1;
}

int run(const Options& options) {
  if (options.prints || options.digests) {
    print_programs(options);
    return 0;
  }
  Options wanted = options;
  if (options.only >= 0) {
    wanted.first = options.only;
    wanted.count = 1;
  }
  void* shared = mmap(nullptr, sizeof(std::atomic<int64_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& number = *new (shared) std::atomic<int64_t>(0);
  const ChildOutcome outcome = run_in_child([&] {
    use_device(options);
    return check_programs(wanted, number);
  });
  return outcome.text.empty() ? 0 : report(options, number, outcome.text);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    set_log_level(LogLevel::off);  // why a function is eager is part of what failed
    Options options;
    CLI::App app("Random programs: eager x compiled x reference x threads, compared bit by bit.");
    app.add_option("--seconds", options.seconds, "how long to go on")->capture_default_str();
    app.add_option("--shrink-seconds", options.shrink_seconds, "how long to shrink")
        ->capture_default_str();
    app.add_option("--seed", options.seed, "another seed, other programs")->capture_default_str();
    app.add_option("--first", options.first, "the number of the first program")
        ->capture_default_str();
    app.add_option("--count", options.count, "how many programs, instead of --seconds");
    app.add_option("--program", options.only, "run only this one");
    app.add_option("--without", options.without, "ops not to draw, to get past a known mistake");
    app.add_option("--each", options.each, "fail if an op is drawn less often than that");
    app.add_option("--device", options.device, "where programs run, instead of the cpu");
    app.add_flag("--tiny", options.is_tiny,
                 "a few steps of a few ops on tiny tensors, eager x compiled: thousands of them");
    app.add_flag("--print", options.prints, "print programs as C++, without checking them");
    app.add_flag("--digest", options.digests,
                 "print hashes of results, to compare instruction sets");
    CLI11_PARSE(app, argc, argv);
#ifdef NITINOL_CUDA
    nitinol::test::collect_if_asked();
#endif
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
