// Many copies in a row are timed by two events: a short one takes less than its launch, and of what
// the cache holds several go on at once. The best of several counts, as on a CPU. It takes so
// little time that each process measures anew.
#include "backends/cuda/runtime/rates.h"

#include "backends/cuda/runtime/mark.h"
#include "core/error.h"

#include <algorithm>
#include <cstddef>

namespace nitinol::cuda {
namespace {

/// Bytes read and written. The last is more than any GPU's cache holds.
constexpr std::size_t copied_bytes[] = {std::size_t{8} << 20, std::size_t{32} << 20,
                                        std::size_t{128} << 20, std::size_t{256} << 20};
constexpr std::size_t most_bytes = copied_bytes[std::size(copied_bytes) - 1];
constexpr int samples = 4;  // the first warms up

// Of CUdevice_attribute.
constexpr int clock_attribute = 13, multiprocessors_attribute = 16;

/// Multiplications and additions that a multiprocessor can begin in a clock cycle. CUDA C++
/// Programming Guide, "Throughput of Native Arithmetic Instructions".
int lanes(int architecture) {
  return architecture == 60 || (architecture >= 70 && architecture <= 80) ? 64 : 128;
}

double operations_per_s(const Gpu& gpu) {
  int device = 0, kilohertz = 0, multiprocessors = 0;
  gpu.check(driver().cuDeviceGet(&device, gpu.number()), "finding the device");
  gpu.check(driver().cuDeviceGetAttribute(&kilohertz, clock_attribute, device), "its clock");
  gpu.check(driver().cuDeviceGetAttribute(&multiprocessors, multiprocessors_attribute, device),
            "its multiprocessors");
  return 2.0 * lanes(gpu.properties().architecture) * multiprocessors * 1e3 * kilohertz;
}

/// Memory of the driver's own: the cache of blocks and what is counted of it stay as they are.
class Scratch {
 public:
  explicit Scratch(const Gpu& gpu) : gpu_(gpu) {
    const Entered entered = gpu_.enter();
    gpu_.check(driver().cuMemAlloc_v2(&address_, most_bytes), "allocating memory");
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    try {
      const Entered entered = gpu_.enter();
      driver().cuMemFree_v2(address_);
    } catch (...) {  // NOLINT(bugprone-empty-catch): the device is lost, and its memory with it
    }
  }
  [[nodiscard]] Driver::Address address() const { return address_; }

 private:
  const Gpu& gpu_;
  Driver::Address address_ = 0;
};

DeviceRates::Copy measure_copy(Gpu& gpu, Driver::Address memory, std::size_t bytes) {
  const std::size_t rounds = most_bytes / bytes;
  double best_s = 1e9;
  for (int i = 0; i < samples; ++i) {
    const auto before = make_mark(gpu);
    {
      const Entered entered = gpu.enter();
      for (std::size_t round = 0; round < rounds; ++round) {
        gpu.check(
            driver().cuMemcpyDtoDAsync_v2(memory + bytes / 2, memory, bytes / 2, gpu.stream()),
            "copying memory");
      }
    }
    best_s = std::min(best_s, make_mark(gpu)->seconds_since(*before));
  }
  const auto moved = static_cast<double>(bytes);
  return {.bytes = moved, .bytes_per_s = moved * static_cast<double>(rounds) / best_s};
}

}  // namespace

DeviceRates measured_rates(Gpu& gpu) {
  DeviceRates rates;
  try {
    rates.operations_per_s = operations_per_s(gpu);
    const Scratch scratch(gpu);
    for (const std::size_t bytes : copied_bytes)
      rates.copies.push_back(measure_copy(gpu, scratch.address(), bytes));
  } catch (const Error&) {  // no memory, perhaps: a profile does not fail by that
    rates = {};
  }
  return rates;
}

}  // namespace nitinol::cuda
