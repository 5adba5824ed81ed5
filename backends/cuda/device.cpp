#include "backends/cuda/device.h"

#include "backends/cuda/executables.h"
#include "backends/cuda/gpu.h"
#include "core/error.h"
#include "core/kernel.h"
#include "core/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>

namespace nitinol::cuda {
namespace {

constexpr int most_devices = 16;

/// Launches return at once; whoever reads a value waits.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int number) : number_(number), gpu_(number, *this) {}

  [[nodiscard]] Device device() const override {
    return {.kind = Device::Kind::cuda, .index = static_cast<int8_t>(number_)};
  }
  [[nodiscard]] std::string description() const override {
    constexpr int digits = 10;
    constexpr double gigabyte = 1 << 30;
    return fmt::format("{}, compute capability {}.{}, {:.1f} GiB", gpu_.name(),
                       gpu_.architecture() / digits, gpu_.architecture() % digits,
                       static_cast<double>(gpu_.total_bytes()) / gigabyte);
  }

  StorageHandle allocate(std::size_t bytes) override { return gpu_.memory().allocate(bytes); }
  void upload(const void* from, void* to, std::size_t bytes) override {
    gpu_.upload(from, to, bytes);
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
    if (auto product = make_product(gpu_, call)) return product;
    return make_routine(gpu_, call);
  }
  [[nodiscard]] bool is_asynchronous() const override { return true; }
  Status* take_status() override { return gpu_.take_status(); }
  void give_status(Status* status) override { gpu_.give_status(status); }
  void synchronize() override { gpu_.wait(); }
  bool can_generate_code() override { return true; }
  [[nodiscard]] DeviceLimits limits() const override {
    // Stores have no hint to go around caches, and a row stage keeps nothing in memory: a value is
    // computed again or stays in registers, as the schedule has it.
    return {.streaming_bytes = std::numeric_limits<std::size_t>::max(),
            .kept_row_bytes = 0,
            .cheap_instructions = std::numeric_limits<std::size_t>::max()};
  }

 private:
  const int number_;
  Gpu gpu_;
};

int device_count() {
  int count = 0;
  return has_driver() && driver().cuDeviceGetCount(&count) == 0 ? count : 0;
}

/// Made at the first use, or why it could not be.
struct Slot {
  std::once_flag once;
  CudaBackend* backend = nullptr;
  std::string missing;
};

Slot& slot(int number) {
  static auto& slots = *new std::array<Slot, most_devices>;
  Slot& slot = slots[static_cast<std::size_t>(number)];
  std::call_once(slot.once, [&] {
    try {
      slot.backend = new CudaBackend(number);
    } catch (const Error& error) {
      slot.missing = error.report().what;
    }
  });
  return slot;
}

std::string listed(const std::vector<PlaceTried>& places) {
  std::string text;
  for (const PlaceTried& tried : places)
    text += fmt::format("\n  {}{}{}", tried.place, tried.why.empty() ? "" : ": ", tried.why);
  return text;
}

}  // namespace

Backend* device(int number) {
  if (number < 0 || number >= std::min(device_count(), most_devices)) return nullptr;
  return slot(number).backend;
}

std::string missing(int number) {
  if (!has_driver())
    return fmt::format("no driver of NVIDIA's: {}. Looked for:{}", missing_driver(),
                       listed(places_of_driver()));
  if (number >= std::min(device_count(), most_devices))
    return fmt::format("the driver sees {} devices", device_count());
  if (slot(number).backend == nullptr) return slot(number).missing;
  return {};
}

std::vector<DeviceInfo> infos() {
  std::vector<DeviceInfo> list;
  const int count = std::clamp(device_count(), 1, most_devices);
  for (int number = 0; number < count; ++number) {
    Backend* const found = device(number);
    list.push_back({.device = {.kind = Device::Kind::cuda, .index = static_cast<int8_t>(number)},
                    .description = found != nullptr ? found->description() : "a GPU of NVIDIA's",
                    .missing = missing(number)});
  }
  return list;
}

}  // namespace nitinol::cuda
