#include "tests/replay/cubins.h"

#include "backends/cuda/compiler.h"
#include "tests/thread_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace nitinol::test {
namespace {

struct Compiled {
  double milliseconds = 0;
  int registers = 0;
  int64_t stack_bytes = 0;
};

}  // namespace

int compile_all(const std::vector<Printed>& all, const CubinOptions& options) {
  const std::vector<int>& architectures = options.architectures;
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::vector<Compiled> compiled;
  int failures = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < all.size() * architectures.size(); i = next++) {
      const std::size_t number = i / architectures.size(), turn = i % architectures.size();
      const Printed& printed = all[number];
      const int architecture = architectures[turn];
      if (number % options.share != 0) continue;
      if (options.takes_turns && number / options.share % architectures.size() != turn) continue;
      const cuda::Request request = {&printed.cases.front().kernel, printed.schedule, architecture};
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
        if (++failures < 4) fmt::print("FAILED: {}\n{}\n", error.what(), printed.text);
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
