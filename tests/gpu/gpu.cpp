#include "tests/gpu/gpu.h"

#include "core/error.h"

#include <fmt/format.h>

#include <array>

namespace nitinol::test {

void check(int result, const char* what) {
  if (result == 0) return;
  const char* name = nullptr;
  cuda::driver().cuGetErrorName(result, &name);
  throw Error(ErrorKind::device, {.where = "CUDA's driver",
                                  .what = fmt::format("{} failed with error {} ({})", what, result,
                                                      name != nullptr ? name : "?")});
}

Gpu::Gpu() : driver_(cuda::driver()) {
  constexpr int major_attribute = 75, minor_attribute = 76, multiprocessor_attribute = 16;
  constexpr int cache_attribute = 38;
  int device = 0, major = 0, minor = 0;
  check(driver_.cuDeviceGet(&device, 0), "opening GPU 0");
  std::array<char, 256> name = {};
  check(driver_.cuDeviceGetName(name.data(), static_cast<int>(name.size()), device), "its name");
  name_ = name.data();
  check(driver_.cuDeviceGetAttribute(&major, major_attribute, device), "its architecture");
  check(driver_.cuDeviceGetAttribute(&minor, minor_attribute, device), "its architecture");
  check(driver_.cuDeviceGetAttribute(&multiprocessors_, multiprocessor_attribute, device),
        "its size");
  check(driver_.cuDeviceGetAttribute(&cache_bytes_, cache_attribute, device), "its cache");
  check(driver_.cuDriverGetVersion(&driver_version_), "its driver's version");
  architecture_ = 10 * major + minor;
  cuda::Driver::Context context = nullptr;
  check(driver_.cuDevicePrimaryCtxRetain(&context, device), "its context");
  check(driver_.cuCtxSetCurrent(context), "its context");
  constexpr unsigned non_blocking = 1;
  check(driver_.cuStreamCreate(&stream_, non_blocking), "a stream");
}

void Gpu::upload(std::span<const std::byte> from, Address to) const {
  if (!from.empty())
    check(driver_.cuMemcpyHtoDAsync_v2(to, from.data(), from.size(), stream_), "an upload");
}

void Gpu::download(Address from, std::span<std::byte> to) const {
  if (!to.empty())
    check(driver_.cuMemcpyDtoHAsync_v2(to.data(), from, to.size(), stream_), "a download");
  wait();
}

void Gpu::copy(Address from, Address to, std::size_t bytes) const {
  check(driver_.cuMemcpyDtoDAsync_v2(to, from, bytes, stream_), "a copy");
}

void Gpu::clear(Address at, std::size_t bytes) const {
  check(driver_.cuMemsetD8Async(at, 0, bytes, stream_), "clearing");
}

GpuMemory::GpuMemory(std::size_t bytes) : bytes_(bytes) {
  check(cuda::driver().cuMemAlloc_v2(&address_, bytes), "allocating memory");
}

GpuMemory::~GpuMemory() {
  cuda::driver().cuMemFree_v2(address_);
}

GpuModule::GpuModule(std::span<const std::byte> cubin, std::size_t entries) {
  const cuda::Driver& driver = cuda::driver();
  check(driver.cuModuleLoadData(&module_, cubin.data()), "loading a cubin");
  for (std::size_t i = 0; i < entries; ++i) {
    cuda::Driver::Function entry = nullptr;
    check(driver.cuModuleGetFunction(&entry, module_, fmt::format("entry{}", i).c_str()),
          "finding a function");
    entries_.push_back(entry);
  }
}

GpuModule::~GpuModule() {
  cuda::driver().cuModuleUnload(module_);
}

void GpuModule::launch(const Gpu& gpu, const cuda::Call& call) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    check(cuda::enqueue(entries_[i], call.blocks[i], call.threads, call.arguments, gpu.stream()),
          "a launch");
}

}  // namespace nitinol::test
