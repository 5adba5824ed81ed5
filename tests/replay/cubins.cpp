#include "tests/replay/cubins.h"

#include "backends/cuda/runtime/compiler.h"
#include "tests/replay/statements.h"
#include "tests/thread_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

namespace nitinol::test {
namespace {

struct Compiled {
  double milliseconds = 0;
  int registers = 0;
  int64_t stack_bytes = 0;
};

struct Task {
  const Printed* printed;
  int architecture;
};

/// What is to be compiled. Of thousands of texts most say what others say, of other names and
/// numbers.
std::vector<Task> tasks_of(const std::vector<Printed>& all, const CubinOptions& options) {
  const std::vector<int>& architectures = options.architectures;
  std::vector<Task> tasks;
  std::unordered_set<std::string> said;
  std::size_t turn = 0;
  for (const Printed& printed : all) {
    if (!options.is_short) {
      for (const int architecture : architectures) tasks.push_back({&printed, architecture});
      continue;
    }
    bool says_more = false;
    for (std::string& statement : statements_of(printed.text))
      says_more |= said.insert(std::move(statement)).second;
    if (says_more) tasks.push_back({&printed, architectures[turn++ % architectures.size()]});
  }
  return tasks;
}

}  // namespace

int compile_all(const std::vector<Printed>& all, const CubinOptions& options) {
  const std::vector<Task> tasks = tasks_of(all, options);
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::vector<Compiled> compiled;
  int failures = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      const auto& [printed, architecture] = tasks[i];
      const cuda::Request request = {&printed->cases.front().kernel, printed->schedule,
                                     architecture};
      const double start = thread_seconds();
      try {
        const cuda::Cubin cubin = cuda::compile_text(cuda::text_of(request), architecture);
        Compiled one = {.milliseconds = 1e3 * (thread_seconds() - start)};
        for (const cuda::Resources& used : cuda::resources_of(cubin)) {
          one.registers = std::max(one.registers, used.registers);
          one.stack_bytes = std::max(one.stack_bytes, used.stack_bytes);
        }
        const std::lock_guard lock(mutex);
        compiled.push_back(one);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        if (++failures < 4) fmt::print("FAILED: {}\n{}\n", error.what(), printed->text);
      }
    }
  };
  std::vector<std::thread> workers;
  for (int j = 0; j < options.jobs; ++j) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  if (compiled.empty()) return failures;
  std::ranges::sort(compiled, {}, &Compiled::milliseconds);
  const auto part = [&](std::size_t percent) {
    return compiled[(compiled.size() - 1) * percent / 100].milliseconds;
  };
  const auto stacks =
      std::ranges::count_if(compiled, [](const Compiled& one) { return one.stack_bytes > 0; });
  const auto registers = std::ranges::max(compiled, {}, &Compiled::registers).registers;
  fmt::print(
      "{} cubins: {:.0f} ms of CPU in the median, {:.0f} for 90 %, {:.0f} at most; at most {} "
      "registers; {} use a stack\n",
      compiled.size(), part(50), part(90), part(100), registers, stacks);
  return failures;
}

}  // namespace nitinol::test
