// libcuda.so.1 made of CPU code: memory that nobody may touch but the device, work that is done
// when something waits, kernels compiled for the host against the replay's shim.
#include "tests/cuda/fake/fake.h"
#include "tests/cuda/fake/module.h"
#include "tests/cuda/fake/region.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace nitinol::test {
namespace {

enum Result : int {
  success = 0,
  invalid_value = 1,
  no_memory = 2,
  not_initialized = 3,
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  launch_failed = 719,
};

constexpr std::size_t most_poison = std::size_t{1} << 20;
constexpr int device_version = 13000;

struct Event {
  bool is_done = true;
};

struct Work {
  std::function<bool()> run;
  std::shared_ptr<Module> module;  ///< to be compiled before
};

struct Driver {
  std::recursive_mutex mutex;
  Region region;
  bool is_initialized = false;
  pid_t process = ::getpid();
  std::set<const void*> streams, events;
  std::map<const void*, std::shared_ptr<Module>> modules;
  std::map<const void*, std::unique_ptr<Function>> functions;
  std::map<const void*, std::size_t> pinned;
  std::deque<Work> queue;
  int lost = success;
  FakeCounts counts;
  std::map<std::string, uint64_t, std::less<>> calls;
  struct Failure {
    std::string name;
    uint64_t after;
    int result;
  };
  std::vector<Failure> failures;

  /// In the order in which it was asked for, whichever the stream: one of the orders allowed.
  int run_all() {
    compile_queued();
    region.open(true);
    while (!queue.empty()) {
      const Work work = std::move(queue.front());
      queue.pop_front();
      if (lost == success && !work.run()) lost = launch_failed;
    }
    region.open(false);
    return lost;
  }

 private:
  void compile_queued() {
    std::vector<Module*> missing;
    for (const Work& work : queue) {
      if (work.module != nullptr && work.module->run == nullptr &&
          std::ranges::none_of(missing,
                               [&](const Module* m) { return m->text == work.module->text; }))
        missing.push_back(work.module.get());
    }
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < missing.size(); i = next++)
        ::nitinol::test::compile(*missing[i]);
    };
    if (missing.size() > 1) {
      std::thread other(work);
      work();
      other.join();
    }
  }
};

Driver& driver() {
  static Driver& instance = *new Driver;
  return instance;
}

thread_local bool has_context = false;
int context_object;  // its address is the one context

/// What each function does first: counts, and fails where a test has asked for it.
struct Entry {
  explicit Entry(const char* name, bool needs_context = true) {
    Driver& d = driver();
    if (d.process != ::getpid()) {  // another thread's lock may be held for ever in the child
      result = not_initialized;
      return;
    }
    lock = std::unique_lock(d.mutex);
    ++d.calls[name];
    if (!d.is_initialized) result = not_initialized;
    if (result == success && needs_context && !has_context) result = invalid_context;
    if (result == success && needs_context) result = d.lost;
    for (auto& failure : d.failures) {
      if (failure.name == name && failure.after > 0 && --failure.after == 0)
        result = failure.result;
    }
  }
  std::unique_lock<std::recursive_mutex> lock;
  int result = success;
};

int enqueue(std::function<bool()> work, std::shared_ptr<Module> module = nullptr) {
  driver().queue.push_back({std::move(work), std::move(module)});
  return success;
}

bool is_stream(const void* stream) {
  return driver().streams.contains(stream);
}

int wait() {
  ++driver().counts.waits;
  return driver().run_all();
}

int enqueue_copy(void* to, const void* from, std::size_t bytes) {
  return enqueue([=] {
    std::memmove(to, from, bytes);
    return true;
  });
}

int upload(uint64_t to, const void* from, std::size_t bytes) {
  if (!driver().region.holds(to, bytes)) return invalid_value;
  driver().counts.uploaded += bytes;
  return enqueue_copy(reinterpret_cast<void*>(to), from, bytes);
}

int download(void* to, uint64_t from, std::size_t bytes) {
  if (!driver().region.holds(from, bytes)) return invalid_value;
  driver().counts.downloaded += bytes;
  return enqueue_copy(to, reinterpret_cast<const void*>(from), bytes);
}

template <class T>
void fill(uint64_t to, T value, std::size_t count) {
  std::fill_n(reinterpret_cast<T*>(to), count, value);
}

}  // namespace
}  // namespace nitinol::test

using namespace nitinol::test;  // NOLINT: functions of C's

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): the driver's names

#define FAKE_ENTRY(...)                     \
  const Entry entry(__func__, __VA_ARGS__); \
  if (entry.result != success) return entry.result
#define FAKE_ENTRY_WITH_CONTEXT FAKE_ENTRY(true)
#define FAKE_ENTRY_WITHOUT_CONTEXT FAKE_ENTRY(false)

int cuInit(unsigned) {
  if (driver().process != ::getpid()) return not_initialized;
  const std::lock_guard lock(driver().mutex);
  if (number_of("NITINOL_FAKE_DEVICES", 1) == 0) return no_device;
  driver().is_initialized = true;
  return success;
}
int cuDriverGetVersion(int* version) {
  *version = static_cast<int>(number_of("NITINOL_FAKE_VERSION", device_version));
  return success;
}
int cuGetErrorName(int result, const char** name) {
  *name = result == no_memory         ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == launch_failed   ? "CUDA_ERROR_LAUNCH_FAILED"
          : result == invalid_context ? "CUDA_ERROR_INVALID_CONTEXT"
          : result == not_initialized ? "CUDA_ERROR_NOT_INITIALIZED"
                                      : "CUDA_ERROR";
  return success;
}
int cuDeviceGetCount(int* count) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  *count = static_cast<int>(number_of("NITINOL_FAKE_DEVICES", 1));
  return success;
}
int cuDeviceGet(int* device, int number) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  *device = number;
  return number == 0 ? success : invalid_device;
}
int cuDeviceGetName(char* name, int length, int) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  std::snprintf(name, static_cast<std::size_t>(length), "fake GPU");
  return success;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  constexpr int major = 75, minor = 76;
  *value = attribute == major ? 9 : attribute == minor ? 0 : 1;
  return success;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  *bytes = driver().region.budget();
  return success;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  *context = &context_object;
  return success;
}
int cuCtxSetCurrent(void* context) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  if (context != nullptr && context != &context_object) return invalid_context;
  has_context = context != nullptr;
  return success;
}
int cuCtxSynchronize() {
  FAKE_ENTRY_WITH_CONTEXT;
  return wait();
}
int cuStreamCreate(void** stream, unsigned) {
  FAKE_ENTRY_WITH_CONTEXT;
  *stream = new char;
  driver().streams.insert(*stream);
  return success;
}
int cuStreamSynchronize(void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  return is_stream(stream) ? wait() : invalid_handle;
}
int cuEventCreate(void** event, unsigned) {
  FAKE_ENTRY_WITH_CONTEXT;
  *event = new Event;
  driver().events.insert(*event);
  return success;
}
int cuEventRecord(void* event, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (!driver().events.contains(event) || !is_stream(stream)) return invalid_handle;
  static_cast<Event*>(event)->is_done = false;
  return enqueue([event] { return static_cast<Event*>(event)->is_done = true; });
}
int cuEventSynchronize(void* event) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (!driver().events.contains(event)) return invalid_handle;
  if (!static_cast<Event*>(event)->is_done) return wait();
  ++driver().counts.waits;
  return success;
}
int cuEventElapsedTime(float* milliseconds, void*, void*) {
  FAKE_ENTRY_WITH_CONTEXT;
  *milliseconds = 1;
  return success;
}
int cuMemAlloc_v2(uint64_t* address, std::size_t bytes) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (bytes == 0) return invalid_value;
  *address = driver().region.allocate(bytes);
  if (*address == 0) return no_memory;
  const uint64_t at = *address;
  return enqueue([at, bytes] {
    fill<uint8_t>(at, 0xa5, std::min(bytes, most_poison));
    return true;
  });
}
int cuMemFree_v2(uint64_t address) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (const int result = wait(); result != success) return result;
  return driver().region.release(address) ? success : invalid_value;
}
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  FAKE_ENTRY_WITH_CONTEXT;
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*memory == nullptr) return no_memory;
  driver().pinned[*memory] = bytes;
  return success;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, std::size_t bytes, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  return is_stream(stream) ? upload(to, from, bytes) : invalid_handle;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, std::size_t bytes, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  return is_stream(stream) ? download(to, from, bytes) : invalid_handle;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, std::size_t bytes, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (!is_stream(stream)) return invalid_handle;
  if (!driver().region.holds(from, bytes) || !driver().region.holds(to, bytes))
    return invalid_value;
  return enqueue_copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, std::size_t bytes) {
  FAKE_ENTRY_WITH_CONTEXT;
  const int result = upload(to, from, bytes);
  return result == success ? wait() : result;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, std::size_t bytes) {
  FAKE_ENTRY_WITH_CONTEXT;
  const int result = download(to, from, bytes);
  return result == success ? wait() : result;
}

#define FAKE_FILL(to, value, count, stream)                                      \
  if (!is_stream(stream)) return invalid_handle;                                 \
  if (!driver().region.holds(to, (count) * sizeof(value))) return invalid_value; \
  return enqueue([=] { return fill(to, value, count), true; })

int cuMemsetD8_v2(uint64_t to, unsigned char value, std::size_t count) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (!driver().region.holds(to, count)) return invalid_value;
  return enqueue([=] { return fill(to, value, count), true; });
}
int cuMemsetD8Async(uint64_t to, unsigned char value, std::size_t count, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  FAKE_FILL(to, value, count, stream);
}
int cuMemsetD16Async(uint64_t to, unsigned short value, std::size_t count, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (to % sizeof value != 0) return invalid_value;
  FAKE_FILL(to, value, count, stream);
}
int cuMemsetD32Async(uint64_t to, unsigned value, std::size_t count, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (to % sizeof value != 0) return invalid_value;
  FAKE_FILL(to, value, count, stream);
}
int cuMemsetD2D32Async(uint64_t to, std::size_t pitch, unsigned value, std::size_t width,
                       std::size_t height, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (!is_stream(stream)) return invalid_handle;
  if (height == 0 || to % sizeof value != 0 || pitch < width * sizeof value ||
      !driver().region.holds(to, pitch * (height - 1) + width * sizeof value))
    return invalid_value;
  return enqueue([=] {
    for (std::size_t row = 0; row < height; ++row) fill(to + row * pitch, value, width);
    return true;
  });
}

int cuModuleLoadData(void** handle, const void* image) {
  FAKE_ENTRY_WITH_CONTEXT;
  const std::shared_ptr<Module> module = read_image(image);
  if (module == nullptr) return invalid_image;
  *handle = module.get();
  driver().modules[*handle] = module;
  return success;
}
int cuModuleUnload(void* handle) {
  FAKE_ENTRY_WITH_CONTEXT;
  std::erase_if(driver().functions,
                [&](const auto& item) { return item.second->module.get() == handle; });
  return driver().modules.erase(handle) > 0 ? success : invalid_handle;
}
int cuModuleGetFunction(void** handle, void* module, const char* name) {
  FAKE_ENTRY_WITH_CONTEXT;
  const auto found = driver().modules.find(module);
  if (found == driver().modules.end()) return invalid_handle;
  const auto number = static_cast<uint32_t>(std::strtoul(name + std::strlen("entry"), nullptr, 10));
  if (number >= found->second->entries) return not_found;
  auto function = std::make_unique<Function>(Function{found->second, number});
  *handle = function.get();
  driver().functions[*handle] = std::move(function);
  return success;
}
int cuLaunchKernel(void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   void* stream, void** parameters, void** extra) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (!is_stream(stream)) return invalid_handle;
  const auto found = driver().functions.find(handle);
  if (found == driver().functions.end()) return invalid_handle;
  constexpr unsigned threads = 256;
  if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x != threads || block_y != 1 ||
      block_z != 1 || shared != 0 || parameters != nullptr || extra == nullptr)
    return invalid_value;
  const auto* const from = static_cast<const std::byte*>(extra[1]);
  const std::vector<std::byte> arguments(from, from + *static_cast<std::size_t*>(extra[3]));
  ++driver().counts.launches;
  return enqueue([function = *found->second, grid_x,
                  arguments] { return run_launch(function, grid_x, arguments); },
                 found->second->module);
}

// ---- for the other libraries, and tests

int fake_enqueue(void* stream, void (*work)(void*), void* data) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (!is_stream(stream)) return invalid_handle;
  return enqueue([=] { return work(data), true; });
}
FakeCounts fake_counts() {
  const std::lock_guard lock(driver().mutex);
  FakeCounts counts = driver().counts;
  counts.allocations = driver().region.live();
  counts.modules = driver().modules.size();
  counts.queued = driver().queue.size();
  return counts;
}
uint64_t fake_calls(const char* name) {
  const std::lock_guard lock(driver().mutex);
  const auto found = driver().calls.find(name);
  return found == driver().calls.end() ? 0 : found->second;
}
void fake_fail(const char* name, uint64_t call, int result) {
  const std::lock_guard lock(driver().mutex);
  driver().failures.push_back({name, call, result});
}

// NOLINTEND(readability-identifier-naming)

}  // extern "C"
