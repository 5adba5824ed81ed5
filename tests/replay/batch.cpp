#include "tests/replay/batch.h"

#include "backends/cuda/runtime/call.h"
#include "backends/cuda/text/prelude.h"
#include "backends/cuda/text/printer.h"
#include "tests/replay/fibers.h"
#include "tests/replay/placed.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <fstream>
#include <memory>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace nitinol::test {
namespace {

using Run = void (*)(void* arguments, uint32_t entry);

bool waits(const std::string& text) {
  return text.find("barrier(") != std::string::npos || text.find("shuffled") != std::string::npos;
}

/// One launch of the case; what is wrong with it.
std::string failure_of(const Printed& printed, const Case& value, Run run, Fence fence,
                       ThreadOrder order, bool is_gated, Shim& shim) {
  PlacedCase placed(value, fence);
  placed.reset();
  const Launch launch = value.launch(placed.buffers());
  const cuda::Workspace needed = cuda::workspace_of(value.kernel, printed.schedule, launch);
  const FencedPages workspace(needed.bytes, 0, fence);
  std::vector<uint32_t> counters(needed.counters, 0);
  uint32_t status = 0;
  const uint32_t gate = is_gated ? 1 : 0;
  cuda::Call call = cuda::call_of(value.kernel, printed.schedule, launch,
                                  {.workspace = workspace.start(),
                                   .counters = counters.data(),
                                   .status = &status,
                                   .gate = &gate});
  for (uint32_t entry = 0; entry < call.blocks.size(); ++entry) {
    const auto thread = [&] { run(call.arguments.data(), entry); };
    const Blocks blocks = {.count = call.blocks[entry], .threads = call.threads};
    std::string failure = waits(printed.text) ? run_blocks(shim, blocks, order, thread)
                                              : run_plain(shim, blocks, order, thread);
    if (!failure.empty()) return failure;
  }
  if (std::ranges::count(counters, 0U) != static_cast<std::ptrdiff_t>(counters.size()))
    return "a counter is not 0 afterwards";
  if (!workspace.is_untouched()) return "something was written beside the workspace";
  if (is_gated && !workspace.is_as_made()) return "the workspace was written behind a shut gate";
  if (is_gated) return status == 0 ? placed.failure(false) : "the status was written";
  if (status != value.status)
    return fmt::format("the status is {}, expected {}", status, value.status);
  return status != 0 ? std::string() : placed.failure(true);
}

struct Way {
  Fence fence;
  ThreadOrder order;
  bool is_gated = false;
};
constexpr Way ways[] = {{Fence::behind, ThreadOrder::forward},
                        {Fence::before, ThreadOrder::backward},
                        {Fence::behind, ThreadOrder::random},
                        {Fence::behind, ThreadOrder::forward, true}};

/// What parent and child both see.
struct Progress {
  std::atomic<std::size_t> kernel, index, way;
};

std::string describe(const Printed& printed, const Case& value, const std::string& failure) {
  return fmt::format("{}\n  schedule: {}\n  sizes: {}\n  strides: {}\n{}", failure,
                     to_string(printed.schedule), fmt::join(value.sizes, " "),
                     fmt::join(value.strides, " "), to_string(value.kernel));
}

/// Runs all from where `progress` stands; failures go to `out`.
void run_all(const std::vector<Printed>& batch, void* library, Progress& progress, FILE* out) {
  const auto set_shim = reinterpret_cast<void (*)(Shim*)>(::dlsym(library, "set_shim"));
  const auto shim = std::make_unique<Shim>();
  set_shim(shim.get());
  for (; progress.kernel < batch.size(); ++progress.kernel, progress.index = 0) {
    const Printed& printed = batch[progress.kernel];
    const auto run = reinterpret_cast<Run>(
        ::dlsym(library, fmt::format("run{}", progress.kernel.load()).c_str()));
    for (; progress.index < printed.cases.size(); ++progress.index, progress.way = 0) {
      for (; progress.way < std::size(ways); ++progress.way) {
        const Way& way = ways[progress.way];
        const Case& value = printed.cases[progress.index];
        std::string failure;
        try {
          failure = failure_of(printed, value, run, way.fence, way.order, way.is_gated, *shim);
        } catch (const std::exception& error) {
          failure = error.what();
        }
        if (failure.empty()) continue;
        const std::string text = describe(printed, value, failure);
        fmt::print(out, "kernel {} case {} way {}: {}{}", progress.kernel.load(),
                   progress.index.load(), progress.way.load(), text, '\0');
        std::fflush(out);
        break;
      }
    }
  }
}

}  // namespace

std::string source_of(const std::vector<Printed>& batch, const std::string& shim) {
  std::string text = fmt::format("#include \"{}\"\n{}", shim, cuda::common_words());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    text += fmt::format("namespace kernel{} {{\n{}}}\n", i, batch[i].text);
    text += fmt::format("extern \"C\" void run{}(void* arguments, u32 entry) {{\n", i);
    text += fmt::format(
        "  if (entry == ~0u) return (void)(*(u64*)arguments = sizeof(kernel{0}::Arguments));\n"
        "  const auto& a = *(const kernel{0}::Arguments*)arguments;\n",
        i);
    const auto has_entry = [&](int e) {
      return batch[i].text.find(fmt::format("KERNEL(entry{}, ", e)) != std::string::npos;
    };
    for (int e = 0; has_entry(e); ++e)
      text += fmt::format("  if (entry == {0}) return kernel{1}::entry{0}(a);\n", e, i);
    text += "}\n";
  }
  return text;
}

BatchResult run_batch(const std::vector<Printed>& batch, const std::string& shim,
                      const std::string& compiler, const std::string& path) {
  BatchResult result;
  for (const Printed& printed : batch) result.cases += static_cast<int>(printed.cases.size());
  std::ofstream(path + ".cpp") << source_of(batch, shim);
  const std::string command = fmt::format("{0} -o {1}.so {1}.cpp >{1}.log 2>&1", compiler, path);
  result.has_failed.resize(batch.size());
  if (std::system(command.c_str()) != 0) {
    result.has_failed.assign(batch.size(), true);
    result.failures.push_back(fmt::format("does not compile: {}.log", path));
    return result;
  }
  void* const shared =
      ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& progress = *new (shared) Progress{};
  while (progress.kernel < batch.size()) {
    FILE* const out = std::tmpfile();
    const pid_t child = ::fork();
    if (child == 0) {
      void* const library = ::dlopen((path + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) ::_exit(3);
      run_all(batch, library, progress, out);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    std::rewind(out);
    std::string text;
    for (int c = std::fgetc(out); c != EOF; c = std::fgetc(out)) {
      if (c != 0) {
        text += static_cast<char>(c);
        continue;
      }
      result.has_failed[std::stoul(text.substr(text.find(' ')))] = true;  // "kernel 3 case ..."
      result.failures.push_back(std::move(text));
      text.clear();
    }
    std::fclose(out);
    if (status == 0) break;
    const Printed& printed = batch[progress.kernel];
    result.has_failed[progress.kernel] = true;
    result.failures.push_back(
        describe(printed, printed.cases[progress.index],
                 fmt::format("kernel {} case {} way {}: died of signal {}", progress.kernel.load(),
                             progress.index.load(), progress.way.load(), WTERMSIG(status))));
    progress.way = 0;
    if (++progress.index >= printed.cases.size()) {
      progress.index = 0;
      ++progress.kernel;
    }
  }
  ::munmap(shared, sizeof(Progress));
  if (result.failures.empty()) {
    for (const char* const end : {".cpp", ".log"}) ::unlink((path + end).c_str());
  }
  return result;
}

}  // namespace nitinol::test
