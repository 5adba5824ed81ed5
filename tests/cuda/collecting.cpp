#include "tests/cuda/collecting.h"

#include "backends/cpu/device.h"
#include "backends/cuda/runtime/call.h"
#include "backends/cuda/text/routine_text.h"
#include "backends/cuda/text/schedule.h"
#include "backends/host/host_memory.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/library.h"
#include "tests/cuda/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unistd.h>

namespace nitinol::test {
namespace {

/// Cases of a kernel by a schedule, and bytes of memory of a case.
constexpr int most_alike = 3;
constexpr int64_t most_bytes = int64_t{1} << 23;

class Collection {
 public:
  explicit Collection(std::string folder) : folder_(std::move(folder)) {}

  /// Whether one more case like this is wanted; it is counted as there.
  bool wants(const Kernel& kernel, const Launch& launch) {
    std::string key = cuda::to_string(cuda::schedule_of(kernel, launch));
    const std::vector<std::byte> bytes = canonical_bytes(kernel);
    key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::string sizes = key;
    for (const int64_t size : launch.sizes) sizes += fmt::format(" {}", size);
    const std::lock_guard lock(mutex_);
    if (!sizes_.insert(std::hash<std::string>()(sizes)).second) return false;
    return ++counts_[std::hash<std::string>()(key)] <= most_alike;
  }

  void add(const Case& value) {
    const std::lock_guard lock(mutex_);
    open();
    write(*cases_, value);
    cases_->flush();
  }

  /// The text of a library call, which runs nothing: the fake driver finds it compiled.
  void add(const LibraryCall& call) {
    std::string text;
    try {
      text = cuda::routine_text(call).text;
    } catch (const Error&) {
      return;  // a GPU has none
    }
    const std::lock_guard lock(mutex_);
    if (!texts_.insert(text).second) return;
    open();
    *texts_file_ << text << '\0' << std::flush;
  }

 private:
  /// A child of fork() writes files of its own.
  void open() {
    if (writer_ == ::getpid()) return;
    writer_ = ::getpid();
    const auto file = [&](const char* kind) {
      return std::make_unique<std::ofstream>(fmt::format("{}/{}.{}", folder_, writer_, kind),
                                             std::ios::binary | std::ios::app);
    };
    cases_ = file("cases");
    texts_file_ = file("texts");
  }

  const std::string folder_;
  std::mutex mutex_;
  std::set<std::size_t> sizes_;
  std::map<std::size_t, int> counts_;
  std::set<std::string> texts_;
  pid_t writer_ = 0;
  std::unique_ptr<std::ofstream> cases_, texts_file_;
};

class CollectingExecutable final : public Executable {
 public:
  CollectingExecutable(const Kernel& kernel, std::unique_ptr<Executable> inner,
                       Collection& collection)
      : kernel_(kernel), inner_(std::move(inner)), collection_(collection) {}

  void launch(const Launch& launch) const override {
    if (cuda::is_empty(kernel_, launch) || bytes_of(launch) > most_bytes ||
        !collection_.wants(kernel_, launch)) {
      return inner_->launch(launch);
    }
    Case value = before(launch);
    const uint32_t status = launch.status != nullptr ? launch.status->code.exchange(0) : 0;
    inner_->launch(launch);
    if (launch.status != nullptr) {
      value.status = launch.status->code;
      if (status != 0) launch.status->code = status;
    }
    for (std::size_t k = 0; k < kernel_.operands.size(); ++k) {
      if (kernel_.operands[k].role == Role::output) value.memory[k].after = after(value, launch, k);
    }
    collection_.add(value);
  }
  [[nodiscard]] BuildReport report() const override { return inner_->report(); }

 private:
  [[nodiscard]] bool has_memory(std::size_t k) const {
    return kernel_.operands[k].role == Role::input || kernel_.operands[k].role == Role::output;
  }
  [[nodiscard]] int64_t bytes_of(const Launch& launch) const {
    int64_t bytes = 0;
    for (std::size_t k = 0; k < kernel_.operands.size(); ++k) {
      const Reach reach = reach_of(kernel_, launch, k);
      if (has_memory(k)) bytes += reach.high - reach.low;
    }
    return bytes;
  }
  [[nodiscard]] std::vector<std::byte> bytes_at(const Launch& launch, std::size_t k) const {
    const Reach reach = reach_of(kernel_, launch, k);
    const auto* const first = static_cast<const std::byte*>(launch.buffers[k]);
    return {first + reach.low, first + reach.high};
  }

  /// What the launch has left of output k. What lies between its elements may be another's.
  [[nodiscard]] std::vector<std::byte> after(const Case& value, const Launch& launch,
                                             std::size_t k) const {
    const std::vector<std::byte> left = bytes_at(launch, k);
    if (std::ranges::count(launch.sizes, 0) > 0) return left;
    std::vector<std::byte> result = value.memory[k].before;
    const auto bytes = static_cast<int64_t>(size_of(kernel_.operands[k].dtype));
    for_each_element(value, k, [&](int64_t offset) {
      const int64_t at = value.memory[k].first + offset * bytes;
      std::copy_n(left.begin() + at, bytes, result.begin() + at);
    });
    return result;
  }

  [[nodiscard]] Case before(const Launch& launch) const {
    const auto copied = [](const auto& list) { return std::vector(list.begin(), list.end()); };
    Case value = {.kernel = kernel_,
                  .sizes = copied(launch.sizes),
                  .strides = copied(launch.strides),
                  .offsets = copied(launch.offsets),
                  .scalars = copied(launch.scalars),
                  .memory = std::vector<CaseMemory>(kernel_.operands.size())};
    for (std::size_t k = 0; k < kernel_.operands.size(); ++k) {
      if (!has_memory(k) || launch.buffers[k] == nullptr) continue;
      const auto address = reinterpret_cast<uintptr_t>(launch.buffers[k]);
      value.memory[k] = {.first = -reach_of(kernel_, launch, k).low,
                         .misalignment = static_cast<uint32_t>(address % 64),
                         .before = bytes_at(launch, k),
                         .after = {}};
      for (std::size_t other = 0; other < k; ++other) {
        const bool is_output = kernel_.operands[k].role == Role::output ||
                               kernel_.operands[other].role == Role::output;
        if (is_output && launch.buffers[other] == launch.buffers[k] && has_memory(other)) {
          value.memory[k].same_as = static_cast<int32_t>(other);
          break;
        }
      }
    }
    return value;
  }

  const Kernel kernel_;
  const std::unique_ptr<Executable> inner_;
  Collection& collection_;
};

class CollectingBackend final : public host::HostMemoryBackend {
 public:
  explicit CollectingBackend(const char* folder) : collection_(folder) {}
  [[nodiscard]] Device device() const override { return collecting_device; }
  [[nodiscard]] std::string description() const override { return "for tests: writes down cases"; }
  /// Without Order::turned, which no GPU is asked for.
  [[nodiscard]] DeviceLimits limits() const override { return {}; }
  std::unique_ptr<Executable> prepare(const Step& step) override {
    std::unique_ptr<Executable> inner = cpu::device().prepare(step);
    if (const auto* const kernel = std::get_if<Kernel>(&step))
      return std::make_unique<CollectingExecutable>(*kernel, std::move(inner), collection_);
    collection_.add(std::get<LibraryCall>(step));
    return inner;
  }
  bool can_generate_code() override { return cpu::device().can_generate_code(); }

 private:
  Collection collection_;
};

}  // namespace

void collect_if_asked() {
  const char* const folder = std::getenv("NITINOL_CASES");
  if (folder == nullptr || *folder == '\0') return;
  add_backend(*new CollectingBackend(folder));
  set_default_device(collecting_device);
}

}  // namespace nitinol::test
