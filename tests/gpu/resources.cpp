#include "tests/gpu/resources.h"

#include "backends/cuda/runtime/call.h"
#include "backends/cuda/runtime/compiler.h"
#include "backends/cuda/text/launch_loops.h"
#include "backends/cuda/text/printer.h"
#include "tests/gpu/disassembly.h"
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

/// What a row would take of an H100, as far as it can be counted.
struct Estimate {
  double bytes = 0;         ///< moved, with those that are read again
  double instructions = 0;  ///< of all threads
  std::size_t launches = 0;
  int64_t shared_bytes = 0;
  std::map<int, int> loads, stores;
};
/// Measured copies on an H100, and what its 132 multiprocessors of 128 lanes issue at 1,755 MHz.
constexpr double copied_bytes = 3.0e12, issued_instructions = 29.7e12;

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
    {"columns.1000x1000", {32, 544, false, 0}},
    {"columns.32x128", {32, 272, false, 0}},
    {"take.rows", {28, 120, false, 0}},
    {"transpose.f32", {36, 424, false, 0}},
    {"transpose.bf16", {36, 448, false, 0}},
    {"softmax.4096", {48, 1000, false, 0}},
    {"softmax.bf16.4096", {47, 1144, false, 0}},
    {"norm.4096", {56, 944, false, 0}},
    {"softmax.5000", {80, 1240, false, 0}},
    {"softmax.bf16.5000", {64, 1456, false, 0}},
    {"norm.5000", {80, 1200, false, 0}},
    {"softmax.16384", {56, 1008, false, 0}},
    {"softmax.bf16.16384", {64, 1144, false, 0}},
    {"norm.16384", {64, 936, false, 0}},
    {"softmax.32768", {56, 1024, false, 0}},
    {"softmax.bf16.32768", {63, 1152, false, 0}},
    {"norm.32768", {64, 952, false, 0}},
    {"softmax.40000", {32, 968, false, 16}},
    {"softmax.bf16.40000", {32, 1024, false, 16}},
    {"norm.40000", {40, 1360, false, 0}},
    {"W2.sum", {34, 648, false, 0}},
    {"W2.mean", {32, 240, false, 0}},
    {"W2.softmax", {48, 912, false, 0}},
    {"W2.layernorm", {63, 880, false, 0}},
    {"W2.layernorm-grad", {100, 1296, false, 0}},
    {"W2.layernorm-grad.bf16", {100, 1520, false, 0}},
    {"W2.var", {32, 432, false, 0}},
    {"W2.argmax", {32, 584, false, 0}},
};

Taken taken_by(const Kernel& kernel, const cuda::Schedule& schedule, cuda::Cubin& cubin) {
  static const std::regex wide(R"(ld\.global(\.nc)?(\.L1::\w+)?\.v(4\.[ubf]32|2\.[ubf]64))");
  constexpr int instruction_bytes = 16;
  const cuda::Request request = {&kernel, schedule, architecture};
  const std::string text = cuda::text_of(request);
  Taken taken;
  cubin = cuda::compile_text(text, architecture);
  for (const cuda::Resources& used : cuda::resources_of(cubin)) {
    taken.registers = std::max(taken.registers, used.registers);
    taken.instructions += static_cast<int>(used.code_bytes / instruction_bytes);
    taken.stack_bytes = std::max(taken.stack_bytes, used.stack_bytes);
  }
  taken.has_wide_loads = std::regex_search(cuda::ptx_of(text, architecture), wide);
  return taken;
}

/// How often an operand's elements are read from memory.
double times_read(const RowLaunch& launch, const cuda::Schedule& schedule, uint16_t k) {
  if (k < 64 && (schedule.kept >> k & 1) != 0) return 1;
  const auto reads = std::ranges::count_if(launch.kernel.stages, [k](const Stage& stage) {
    return std::ranges::count(stage.sources, Source{Source::Kind::operand, k}) > 0;
  });
  return std::max<double>(1, static_cast<double>(reads));
}

/// Adds what a launch takes. Where elements are visited in loops, each element stage counts as much
/// as the largest loop an element.
void add(Estimate& estimate, const RowLaunch& launch, const cuda::Schedule& schedule,
         const cuda::Cubin& cubin, const std::map<std::string, Function>& functions) {
  const Launch host = launch.launch(launch.buffers);
  const cuda::Call call = cuda::call_of(launch.kernel, schedule, host, {});
  const cuda::LaunchLoops loops(launch.kernel, host);
  estimate.launches += call.blocks.size();
  double operands = 0, largest = 1;
  for (std::size_t k = 0; k < launch.kernel.operands.size(); ++k) {
    const Operand& operand = launch.kernel.operands[k];
    if (operand.role != Role::input && operand.role != Role::output) continue;
    const Reach reach = reach_of(launch.kernel, host, k);
    estimate.bytes +=
        static_cast<double>(reach.high - reach.low) *
        (operand.role == Role::input ? times_read(launch, schedule, static_cast<uint16_t>(k)) : 1);
    if (operand.role == Role::input && operand.inner != StrideClass::zero) ++operands;
    largest = std::max(largest, static_cast<double>(8 * size_of(operand.dtype)));
  }
  for (const cuda::Resources& used : cuda::resources_of(cubin))
    estimate.shared_bytes = std::max(estimate.shared_bytes, used.shared_bytes);
  for (std::size_t entry = 0; entry < call.blocks.size(); ++entry) {
    const Function& function = functions.at(cuda::function_name(0, entry));
    const double threads = double{1} * call.blocks[entry] * call.threads;
    for (const auto& [bits, count] : function.all.loads) estimate.loads[bits] += count;
    for (const auto& [bits, count] : function.all.stores) estimate.stores[bits] += count;
    if (function.loops.empty()) {
      estimate.instructions += threads * function.all.instructions;
      continue;
    }
    double most = 0, each = 0;
    for (const Code& loop : function.loops) {
      double bits = 0;
      for (const auto& [of, count] : loop.loads) bits += of * count;
      if (bits < most) continue;
      most = bits;
      each = loop.instructions / std::max(1.0, bits / largest / std::max(1.0, operands));
    }
    const auto stages =
        std::ranges::count(launch.kernel.stages, Stage::Level::element, &Stage::level);
    estimate.instructions += static_cast<double>(loops.points()) * each *
                             (schedule.is_split ? 1 : static_cast<double>(stages));
  }
}

std::string to_string(const std::map<int, int>& widths) {
  std::string text;
  for (const auto& [bits, count] : widths)
    text += fmt::format("{}{} x{}", text.empty() ? "" : " ", bits, count);
  return text;
}

/// "2 launches, 5.3 instructions an element, ...": and which share of a copy's speed that allows.
std::string to_string(const Estimate& estimate, const Row& row) {
  double elements = 0;
  for (const RowLaunch& launch : row.launches) {
    const Launch host = launch.launch(launch.buffers);
    elements =
        std::max(elements, static_cast<double>(cuda::LaunchLoops(launch.kernel, host).points()));
  }
  const double copy = row.bytes / copied_bytes;
  const double takes =
      std::max(estimate.bytes / copied_bytes, estimate.instructions / issued_instructions);
  return fmt::format(
      "{} launches, {:.1f} instructions an element, loads {}, stores {}, {} bytes shared, {:.1f} "
      "bytes an element: {:.2f} of a copy",
      estimate.launches, estimate.instructions / elements, to_string(estimate.loads),
      to_string(estimate.stores), estimate.shared_bytes, estimate.bytes / elements, copy / takes);
}

std::string fault_of(const Taken& taken, const Taken& expected) {
  if (taken.registers > expected.registers)
    return fmt::format("more than {} registers", expected.registers);
  if (taken.stack_bytes > expected.stack_bytes) return "variables in memory";
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

int check_resources(const std::vector<std::string>& names) {
  int faults = 0;
  for_each_row(names, [&](const Row& row) {
    Taken most;
    Estimate estimate;
    std::string schedules;
    for (const RowLaunch& launch : row.launches) {
      const cuda::Schedule schedule =
          cuda::schedule_of(launch.kernel, launch.launch(launch.buffers));
      cuda::Cubin cubin;
      const Taken taken = taken_by(launch.kernel, schedule, cubin);
      if (const auto functions = disassembled(cubin)) {
        add(estimate, launch, schedule, cubin, *functions);
        schedules += fmt::format("\n    {} of {}", cuda::to_string(schedule),
                                 fmt::join(launch.sizes, " x "));
      }
      if (taken.instructions > most.instructions) most = taken;
    }
    const auto found = table.find(row.name);
    const std::string fault =
        found == table.end() ? "not in the table" : fault_of(most, found->second);
    faults += fault.empty() ? 0 : 1;
    fmt::print("{{\"{}\", {{{}, {}, {}}}}},{}{}\n", row.name, most.registers, most.instructions,
               most.has_wide_loads, fault.empty() ? "" : "  FAILED: ", fault);
    if (estimate.launches > 0) fmt::print("    {}{}\n", to_string(estimate, row), schedules);
  });
  return faults;
}

}  // namespace nitinol::test
