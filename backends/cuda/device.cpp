#include "backends/cuda/device.h"

#include "backends/cuda/runtime/compiler.h"
#include "backends/cuda/runtime/executables.h"
#include "backends/cuda/runtime/gpu.h"
#include "backends/cuda/runtime/graph.h"
#include "backends/cuda/runtime/mark.h"
#include "backends/cuda/runtime/rates.h"
#include "backends/cuda/vendor/executables.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/kernel.h"
#include "core/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

namespace nitinol::cuda {
namespace {

constexpr int most_devices = 16;

Device device_of(int number) {
  return {.kind = Device::Kind::cuda, .index = static_cast<int8_t>(number)};
}

std::string text_of(const Properties& properties) {
  constexpr int digits = 10;
  constexpr double gigabyte = 1 << 30;
  return fmt::format("{}, compute capability {}.{}, {:.1f} GiB", properties.name,
                     properties.architecture / digits, properties.architecture % digits,
                     static_cast<double>(properties.total_bytes) / gigabyte);
}

/// Launches return at once; whoever reads a value waits.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int number) : gpu_(number, *this) {}

  [[nodiscard]] Device device() const override { return device_of(gpu_.number()); }
  [[nodiscard]] std::string description() const override { return text_of(gpu_.properties()); }

  StorageHandle allocate(std::size_t bytes) override { return gpu_.memory().allocate(bytes); }
  StorageHandle allocate_for_upload(std::size_t bytes) override {
    return gpu_.memory().allocate_for_upload(bytes);
  }
  void upload(const void* from, void* to, std::size_t bytes) override {
    gpu_.upload(from, to, bytes);
  }
  void upload_written(void* to, std::size_t bytes,
                      FunctionRef<void(std::span<std::byte>)> write) override {
    if (!gpu_.upload_written(to, bytes, write)) Backend::upload_written(to, bytes, write);
  }
  bool copy_from(Backend& source, const void* from, void* to, std::size_t bytes) override {
    auto* const other = dynamic_cast<CudaBackend*>(&source);
    if (other != nullptr) gpu_.copy_from(other->gpu_, from, to, bytes);
    return other != nullptr;
  }
  void download(const void* from, void* to, std::size_t bytes) override {
    gpu_.download(from, to, bytes);
  }
  void fill(void* to, uint64_t bits, std::size_t element_bytes, std::size_t count) override {
    gpu_.fill(to, bits, element_bytes, count);
  }
  MemoryStatistics memory() override { return gpu_.memory().statistics(); }
  void set_memory_budget(std::size_t bytes) override { gpu_.memory().set_budget(bytes); }
  void release_cached_memory() override { gpu_.memory().release_cached(); }
  void reset_peak_memory() override { gpu_.memory().reset_peak(); }

  std::unique_ptr<Executable> prepare(const Step& step) override {
    if (const auto* const kernel = std::get_if<Kernel>(&step)) return make_printed(gpu_, *kernel);
    const auto& call = std::get<LibraryCall>(step);
    if (call.kind == LibraryCall::Kind::collective) return make_collective(gpu_, call);
    if (auto product = make_product(gpu_, call)) return product;
    if (auto convolution = make_convolution(gpu_, call)) return convolution;
    return make_routine(gpu_, call);
  }
  void specialise(std::span<Expected> plan) override {
    std::vector<Request> requests;
    for (const Expected& expected : plan) {
      if (const auto* const compiled = dynamic_cast<const Compiled*>(expected.executable))
        compiled->add_requests(expected.examples, requests);
    }
    static_cast<void>(CubinCache::instance().get_all(requests));
    Backend::specialise(plan);
  }
  [[nodiscard]] bool can_record() const override { return true; }
  std::unique_ptr<Sequence> record(std::size_t parts,
                                   FunctionRef<void(std::size_t part)> launch) override {
    auto graph = std::make_unique<Graph>(gpu_);
    graph->record(parts, launch);
    return graph;
  }
  [[nodiscard]] bool is_asynchronous() const override { return true; }
  Status* take_status(const Status* after) override { return gpu_.status_words().take(after); }
  void copy_status(const Status* from, Status* to) override { gpu_.status_words().copy(from, to); }
  std::unique_ptr<PostedStatus> post_status(const Status* status) override {
    return gpu_.status_words().post(status);
  }
  Status::Code read_status(const Status* status) override {
    return gpu_.status_words().read(status);
  }
  void give_status(Status* status, bool is_ok) override { gpu_.status_words().give(status, is_ok); }
  std::unique_ptr<DeviceMark> mark() override { return make_mark(gpu_); }
  void synchronize() override { gpu_.wait(); }
  bool can_generate_code() override { return true; }
  [[nodiscard]] DeviceLimits limits() const override { return cuda::limits(); }
  DeviceRates rates(int /*threads*/) override {
    const std::lock_guard lock(rates_mutex_);
    if (!rates_) rates_ = measured_rates(gpu_);
    return *rates_;
  }

 private:
  Gpu gpu_;
  ForkSafeMutex rates_mutex_;
  std::optional<DeviceRates> rates_;  ///< once they are measured
};

int device_count() {
  int count = 0;
  if (!has_driver() || driver().cuDeviceGetCount(&count) != 0) return 0;
  return std::min(count, most_devices);
}

/// Made at the first use that succeeds.
struct Slot {
  std::atomic<CudaBackend*> backend = nullptr;
  ForkSafeMutex mutex;
  std::string missing;  ///< why there is none
};

Slot& slot_of(int number) {
  static auto& slots = *new std::array<Slot, most_devices>;
  return slots[static_cast<std::size_t>(number)];
}

void fill(Slot& slot, int number) {
  const std::lock_guard lock(slot.mutex);
  if (slot.backend.load(std::memory_order_acquire) != nullptr) return;
  if (is_forked_off()) {
    slot.missing = does_not_survive_fork;
    return;
  }
  if (number >= device_count()) {
    slot.missing = has_driver() ? fmt::format("the driver sees {} devices", device_count())
                                : "no driver of NVIDIA's: " + missing_driver();
    return;
  }
  try {
    slot.backend.store(new CudaBackend(number), std::memory_order_release);
    slot.missing.clear();
  } catch (const Error& error) {
    slot.missing = error.report().what;
  }
}

}  // namespace

DeviceLimits limits() {
  // Stores have no hint to go around caches, and a row stage keeps nothing in memory: a value is
  // computed again or stays in registers, as the schedule has it.
  return {.streaming_bytes = std::numeric_limits<std::size_t>::max(),
          .kept_row_bytes = 0,
          .cheap_instructions = std::numeric_limits<std::size_t>::max()};
}

Backend* device(int number) {
  if (number < 0 || number >= most_devices) return nullptr;
  Slot& slot = slot_of(number);
  if (Backend* const found = slot.backend.load(std::memory_order_acquire)) return found;
  fill(slot, number);
  return slot.backend.load(std::memory_order_acquire);
}

std::string missing(int number) {
  if (number < 0 || number >= most_devices) return "there is no device of that number";
  if (device(number) != nullptr) return "";
  Slot& slot = slot_of(number);
  const std::lock_guard lock(slot.mutex);
  return slot.missing;
}

std::vector<DeviceInfo> infos() {
  if (device_count() == 0) {
    return {{.device = device_of(0), .description = "a GPU of NVIDIA's", .missing = missing(0)}};
  }
  std::vector<DeviceInfo> list;
  for (int number = 0; number < device_count(); ++number) {
    DeviceInfo info = {.device = device_of(number), .description = {}, .missing = {}};
    try {
      info.description = text_of(properties_of(number));
    } catch (const Error& error) {
      info.missing = error.report().what;
    }
    list.push_back(std::move(info));
  }
  return list;
}

}  // namespace nitinol::cuda
