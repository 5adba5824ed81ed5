#include "tests/gpu/resources.h"

#include "backends/cuda/runtime/compiler.h"
#include "backends/cuda/text/printer.h"
#include "tests/gpu/rows.h"
#include "tests/thread_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace nitinol::test {
namespace {

constexpr int architecture = 90;

/// Of the largest kernel of a row.
struct Taken {
  int registers = 0;
  int instructions = 0;         ///< in the code of all its functions
  bool has_wide_loads = false;  ///< 128 bits at once
  int64_t stack_bytes = 0;
};

// By NVRTC 13.0.
const std::map<std::string, Taken> table = {
    {"W1a", {24, 64, true, 0}},
    {"W1b", {23, 344, true, 0}},
    {"W1c", {22, 392, false, 0}},
    {"W1d", {27, 376, false, 0}},
    {"W1a.bf16", {32, 200, true, 0}},
    {"W1b.bf16", {25, 688, true, 0}},
    {"W1c.bf16", {25, 424, false, 0}},
    {"W1d.bf16", {27, 448, false, 0}},
    {"W1a.f16", {30, 176, true, 0}},
    {"W1b.f16", {28, 680, true, 0}},
    {"W1c.f16", {24, 416, false, 0}},
    {"W1d.f16", {28, 448, false, 0}},
    {"W2.sum", {34, 648, false, 0}},
    {"W2.mean", {32, 240, false, 0}},
    {"W2.softmax", {48, 1120, false, 0}},
    {"W2.layernorm", {34, 1216, false, 0}},
    {"W2.var", {32, 432, false, 0}},
    {"W2.argmax", {32, 584, false, 0}},
    {"columns.1000x1000", {40, 472, false, 0}},
    {"columns.32x128", {32, 168, false, 0}},
    {"take.rows", {28, 120, false, 0}},
};

Taken taken_by(const Kernel& kernel, const cuda::Schedule& schedule) {
  static const std::regex wide(R"(ld\.global(\.nc)?(\.L1::\w+)?\.v(4\.[ubf]32|2\.[ubf]64))");
  constexpr int instruction_bytes = 16;
  const cuda::Request request = {&kernel, schedule, architecture};
  const std::string text = cuda::text_of(request);
  Taken taken;
  for (const cuda::Resources& used : cuda::resources_of(cuda::compile_text(text, architecture))) {
    taken.registers = std::max(taken.registers, used.registers);
    taken.instructions += static_cast<int>(used.code_bytes / instruction_bytes);
    taken.stack_bytes = std::max(taken.stack_bytes, used.stack_bytes);
  }
  taken.has_wide_loads = std::regex_search(cuda::ptx_of(text, architecture), wide);
  return taken;
}

std::string fault_of(const Taken& taken, const Taken& expected) {
  if (taken.registers > expected.registers)
    return fmt::format("more than {} registers", expected.registers);
  if (taken.stack_bytes > 0) return "variables in memory";
  if (expected.has_wide_loads && !taken.has_wide_loads) return "no wide loads";
  const double ratio = static_cast<double>(taken.instructions) / expected.instructions;
  if (std::abs(ratio - 1) > 0.1) return fmt::format("not {} instructions", expected.instructions);
  return {};
}

/// CPU time of compiling all, as a Plan has it done, in milliseconds.
double time_together(const std::vector<cuda::Request>& requests) {
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    cuda::CubinCache cache(nullptr);
    const std::clock_t begin = std::clock();
    static_cast<void>(cache.get_all(requests));
    fastest = std::min(fastest, 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return fastest;
}

void print_compile_time(const Row& row) {
  std::set<std::string> texts;
  std::vector<cuda::Request> requests;
  for (const RowLaunch& launch : row.launches) {
    const cuda::Schedule schedule = cuda::schedule_of(launch.kernel, launch.launch(launch.buffers));
    requests.push_back({&launch.kernel, schedule, architecture});
    texts.insert(cuda::text_of(requests.back()));
  }
  double all = 0, slowest = 0;
  for (const std::string& text : texts) {
    double fastest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
      const double begin = thread_seconds();
      static_cast<void>(cuda::compile_text(text, architecture));
      fastest = std::min(fastest, 1e3 * (thread_seconds() - begin));
    }
    all += fastest;
    slowest = std::max(slowest, fastest);
  }
  fmt::print("{:18} {} kernels: {:.0f} ms, the slowest {:.0f}; together {:.0f}\n", row.name,
             texts.size(), all, slowest, time_together(requests));
}

}  // namespace

void print_compile_times() {
  for_each_row({}, print_compile_time);
  step_row(print_compile_time);
}

int check_resources() {
  int faults = 0;
  for_each_row({}, [&](const Row& row) {
    Taken most;
    for (const RowLaunch& launch : row.launches) {
      const Taken taken =
          taken_by(launch.kernel, cuda::schedule_of(launch.kernel, launch.launch(launch.buffers)));
      if (taken.instructions > most.instructions) most = taken;
    }
    const auto found = table.find(row.name);
    const std::string fault =
        found == table.end() ? "not in the table" : fault_of(most, found->second);
    faults += fault.empty() ? 0 : 1;
    fmt::print("{{\"{}\", {{{}, {}, {}}}}},{}{}\n", row.name, most.registers, most.instructions,
               most.has_wide_loads, fault.empty() ? "" : "  FAILED: ", fault);
  });
  return faults;
}

}  // namespace nitinol::test
