// Gpu: a GPU by the driver's own functions, for this program alone; tensors come with the backend.
#pragma once

#include "backends/cuda/runtime/call.h"
#include "backends/cuda/runtime/libraries.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nitinol::test {

using Address = cuda::Driver::Address;

/// Throws Error(device) with the driver's name for a result that is not 0.
void check(int result, const char* what);

/// The first GPU of the machine, made current, and a stream of it, on which all is done.
class Gpu {
 public:
  Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  [[nodiscard]] const std::string& name() const { return name_; }
  /// 90 for compute capability 9.0.
  [[nodiscard]] int architecture() const { return architecture_; }
  [[nodiscard]] int multiprocessors() const { return multiprocessors_; }
  [[nodiscard]] int driver_version() const { return driver_version_; }
  /// Of the cache before its memory.
  [[nodiscard]] int cache_bytes() const { return cache_bytes_; }
  [[nodiscard]] cuda::Driver::Stream stream() const { return stream_; }
  void wait() const { check(driver_.cuStreamSynchronize(stream_), "waiting"); }

  void upload(std::span<const std::byte> from, Address to) const;
  /// Waits.
  void download(Address from, std::span<std::byte> to) const;
  void copy(Address from, Address to, std::size_t bytes) const;
  void clear(Address at, std::size_t bytes) const;

 private:
  const cuda::Driver& driver_;
  std::string name_;
  int architecture_ = 0, multiprocessors_ = 0, driver_version_ = 0, cache_bytes_ = 0;
  cuda::Driver::Stream stream_ = nullptr;
};

/// Memory of the GPU.
class GpuMemory {
 public:
  explicit GpuMemory(std::size_t bytes);
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory();
  [[nodiscard]] Address address() const { return address_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  Address address_ = 0;
  std::size_t bytes_;
};

/// The functions of a cubin.
class GpuModule {
 public:
  GpuModule(std::span<const std::byte> cubin, std::size_t entries);
  GpuModule(const GpuModule&) = delete;
  GpuModule& operator=(const GpuModule&) = delete;
  ~GpuModule();
  /// Launches all entries, one after another.
  void launch(const Gpu& gpu, const cuda::Call& call) const;

 private:
  cuda::Driver::Module module_ = nullptr;
  std::vector<cuda::Driver::Function> entries_;
};

/// Milliseconds of the GPU that `work` takes when it is called `times` times, for one call. It is
/// asked for while the GPU still copies `before`, so that the host's time is not in it.
template <class Work>
double milliseconds(const Gpu& gpu, const GpuMemory& before, int times, const Work& work) {
  const cuda::Driver& driver = cuda::driver();
  cuda::Driver::Event begin = nullptr, end = nullptr;
  check(driver.cuEventCreate(&begin, 0), "an event");
  check(driver.cuEventCreate(&end, 0), "an event");
  work();
  gpu.copy(before.address(), before.address() + before.bytes() / 2, before.bytes() / 2);
  check(driver.cuEventRecord(begin, gpu.stream()), "an event");
  for (int i = 0; i < times; ++i) work();
  check(driver.cuEventRecord(end, gpu.stream()), "an event");
  check(driver.cuEventSynchronize(end), "an event");
  float elapsed = 0;
  check(driver.cuEventElapsedTime(&elapsed, begin, end), "an event");
  for (cuda::Driver::Event event : {begin, end}) check(driver.cuEventDestroy_v2(event), "an event");
  return static_cast<double>(elapsed) / times;
}

}  // namespace nitinol::test
