// libcuda.so.1 made of CPU code: memory that nobody may touch but the device, work that is done
// when something waits for it, kernels compiled for the host against the replay's shim.
#include "tests/cuda/fake/calls.h"
#include "tests/cuda/fake/entry.h"
#include "tests/cuda/fake/fake.h"
#include "tests/cuda/fake/module.h"
#include "tests/cuda/fake/region.h"
#include "tests/cuda/fake/state.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

FAKE_CALLS;

namespace nitinol::test {

Driver& driver() {
  static Driver& instance = *new Driver;
  return instance;
}

int& current_device() {
  thread_local int device = -1;
  return device;
}

namespace {

int device_count() {
  return static_cast<int>(std::min(number_of("NITINOL_FAKE_DEVICES", 1), most_devices));
}

std::array<int, most_devices> contexts;  // their addresses are the devices' contexts

Region& region() {
  return *driver().regions[static_cast<std::size_t>(current_device())];
}

/// Into the graph of a stream that is captured.
int note(Capture& capture, std::function<bool()> work, std::shared_ptr<Module> module,
         const Event& after) {
  if (capture.thread != std::this_thread::get_id()) return broken(capture, "another thread");
  if (after.stream != nullptr) return broken(capture, "an event of another stream");
  std::list<GraphNode>& nodes = capture.graph->nodes;
  GraphNode node = {
      .after = {}, .run = std::move(work), .module = std::move(module), .child = nullptr};
  if (!nodes.empty()) node.after = {&nodes.back()};
  nodes.push_back(std::move(node));
  return success;
}

int enqueue(const void* handle, std::function<bool()> work,
            std::shared_ptr<Module> module = nullptr, Event after = {}) {
  static const bool is_early = number_of("NITINOL_FAKE_EARLY", 0) != 0;
  Stream* const stream = find(driver().streams, handle);
  if (stream == nullptr) return invalid_handle;
  if (stream->capture != nullptr)
    return note(*stream->capture, std::move(work), std::move(module), after);
  if (module != nullptr) stream->has_launches = true;
  driver().queue.push_back(
      {stream, ++driver().last_number, std::move(work), std::move(module), after});
  if (is_early) driver().run_early();
  return success;
}

int wait(const Stream& stream, uint64_t last = std::numeric_limits<uint64_t>::max()) {
  ++driver().counts.waits;
  return driver().run(stream, last);
}

/// For what a graph of this driver does not have.
int refuse_capture(const void* handle, const char* what) {
  const Stream* const stream = find(driver().streams, handle);
  if (stream == nullptr || stream->capture == nullptr) return success;
  return broken(*stream->capture, what);
}

/// As the driver does: what is not pinned is read at the call.
int upload(const void* stream, uint64_t to, const void* from, std::size_t bytes) {
  if (!region().holds(to, bytes)) return invalid_value;
  if (const int result = refuse_capture(stream, "a copy from the host"); result != success)
    return result;
  driver().counts.uploaded += bytes;
  const auto* const first = static_cast<const std::byte*>(from);
  if (Stream* const found = find(driver().streams, stream)) found->has_copies = true;
  std::vector<std::byte> staged;
  if (!driver().is_pinned(from, bytes)) staged.assign(first, first + bytes);
  return enqueue(stream, [=, staged = std::move(staged)] {
    std::memcpy(reinterpret_cast<void*>(to), staged.empty() ? first : staged.data(), bytes);
    return true;
  });
}

/// As the driver does: into what is not pinned before it returns.
int download(const void* handle, void* to, uint64_t from, std::size_t bytes) {
  if (!region().holds(from, bytes)) return invalid_value;
  if (const int result = refuse_capture(handle, "a copy to the host"); result != success)
    return result;
  driver().counts.downloaded += bytes;
  const int result = enqueue(handle, [=] {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return true;
  });
  if (result != success || driver().is_pinned(to, bytes)) return result;
  return wait(*find(driver().streams, handle));
}

template <class T>
void fill(uint64_t to, T value, std::size_t count) {
  std::fill_n(reinterpret_cast<T*>(to), count, value);
}

template <class T>
int enqueue_fill(const void* stream, uint64_t to, std::size_t pitch, T value, std::size_t width,
                 std::size_t height = 1) {
  if (height == 0 || to % sizeof value != 0 || (height > 1 && pitch < width * sizeof value) ||
      !region().holds(to, pitch * (height - 1) + width * sizeof value))
    return invalid_value;
  return enqueue(stream, [=] {
    for (std::size_t row = 0; row < height; ++row) fill(to + row * pitch, value, width);
    return true;
  });
}

}  // namespace
}  // namespace nitinol::test

using namespace nitinol::test;  // NOLINT: functions of C's

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): the driver's names

int cuInit(unsigned) {
  if (driver().is_child()) return not_initialized;
  const std::lock_guard lock(driver().mutex);
  if (const int failure = Calls::instance().note(__func__); failure != success) return failure;
  if (device_count() == 0) return no_device;
  driver().is_initialized = true;
  return success;
}
int cuDriverGetVersion(int* version) {
  if (const int failure = Calls::instance().note(__func__); failure != success) return failure;
  *version = static_cast<int>(number_of("NITINOL_FAKE_VERSION", device_version));
  return success;
}
int cuGetErrorName(int result, const char** name) {
  if (const int failure = Calls::instance().note(__func__); failure != success) return failure;
  static const std::map<int, const char*> names = {{invalid_value, "CUDA_ERROR_INVALID_VALUE"},
                                                   {no_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {not_initialized, "CUDA_ERROR_NOT_INITIALIZED"},
                                                   {invalid_context, "CUDA_ERROR_INVALID_CONTEXT"},
                                                   {invalid_handle, "CUDA_ERROR_INVALID_HANDLE"},
                                                   {illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                   {launch_failed, "CUDA_ERROR_LAUNCH_FAILED"},
                                                   {999, "CUDA_ERROR_UNKNOWN"}};
  const auto found = names.find(result);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? static_cast<int>(invalid_value) : success;
}
int cuDeviceGetCount(int* count) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  *count = device_count();
  return success;
}
int cuDeviceGet(int* device, int number) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  *device = number;
  return number >= 0 && number < device_count() ? success : invalid_device;
}
int cuDeviceGetName(char* name, int length, int) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  std::snprintf(name, static_cast<std::size_t>(length), "fake GPU");
  return success;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  static const std::map<int, int> values = {{13, 1'000'000},  // kHz
                                            {16, 2},          // multiprocessors
                                            {38, 1 << 20},    // bytes of the cache
                                            {75, 9},          // compute capability 9.0
                                            {76, 0}};
  const auto found = values.find(attribute);
  if (found == values.end()) return invalid_value;
  *value = found->second;
  return success;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  *bytes = Region::budget();
  return success;
}
int cuDeviceGetUuid_v2(std::array<std::byte, 16>* uuid, int device) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  *uuid = {static_cast<std::byte>(device + 1)};  // of all processes: ranks may share one
  return success;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  if (device < 0 || device >= device_count()) return invalid_device;
  auto& region = driver().regions[static_cast<std::size_t>(device)];
  if (region == nullptr) region = std::make_unique<Region>();
  *context = &contexts[static_cast<std::size_t>(device)];
  return success;
}
int cuCtxGetCurrent(void** context) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  *context = current_device() < 0 ? nullptr : &contexts[static_cast<std::size_t>(current_device())];
  return success;
}
int cuCtxSetCurrent(void* context) {
  FAKE_ENTRY_WITHOUT_CONTEXT;
  const auto found =
      std::ranges::find_if(contexts, [&](const int& object) { return &object == context; });
  if (context != nullptr && found == contexts.end()) return invalid_context;
  current_device() = context == nullptr ? -1 : static_cast<int>(found - contexts.begin());
  return success;
}
int cuCtxEnablePeerAccess(void* context, unsigned flags) {
  FAKE_ENTRY_WITH_CONTEXT;
  const auto found =
      std::ranges::find_if(contexts, [&](const int& object) { return &object == context; });
  if (found == contexts.end() || flags != 0) return invalid_value;
  const auto other = static_cast<int>(found - contexts.begin());
  if (other == current_device()) return invalid_device;
  return driver().peers.insert({current_device(), other}).second ? success : peer_access_enabled;
}
int cuStreamCreate(void** handle, unsigned) {
  FAKE_ENTRY_WITH_CONTEXT;
  auto stream = std::make_unique<Stream>(current_device());
  *handle = stream.get();
  driver().streams[*handle] = std::move(stream);
  return success;
}
int cuStreamSynchronize(void* handle) {
  FAKE_ENTRY_WITH_CONTEXT;
  const Stream* const stream = find(driver().streams, handle);
  return stream != nullptr ? wait(*stream) : invalid_handle;
}
int cuStreamWaitEvent(void* handle, void* event, unsigned) {
  FAKE_ENTRY_WITH_CONTEXT;
  const auto found = driver().events.find(event);  // perhaps another device's
  if (found == driver().events.end()) return invalid_handle;
  return enqueue(
      handle, [] { return true; }, nullptr, *found->second);
}
int cuEventCreate(void** handle, unsigned flags) {
  FAKE_ENTRY_WITH_CONTEXT;
  constexpr unsigned no_timing = 2;
  auto event = std::make_unique<Event>(current_device());
  event->has_time = (flags & no_timing) == 0;
  *handle = event.get();
  driver().events[*handle] = std::move(event);
  return success;
}
int cuEventDestroy_v2(void* handle) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (find(driver().events, handle) == nullptr) return invalid_handle;
  driver().events.erase(handle);
  return success;
}
int cuEventRecord(void* handle, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  Event* const event = find(driver().events, handle);
  if (event == nullptr || find(driver().streams, stream) == nullptr) return invalid_handle;
  if (const int result = refuse_capture(stream, "an event"); result != success) return result;
  event->stream = find(driver().streams, stream);
  event->number = driver().last_number;
  return success;
}
int cuEventQuery(void* handle) {
  FAKE_ENTRY_WITH_CONTEXT;
  const Event* const event = find(driver().events, handle);
  if (event == nullptr) return invalid_handle;
  return driver().is_pending(*event) ? not_ready : success;
}
int cuEventSynchronize(void* handle) {
  FAKE_ENTRY_WITH_CONTEXT;
  const Event* const event = find(driver().events, handle);
  if (event == nullptr) return invalid_handle;
  return event->stream == nullptr ? success : wait(*event->stream, event->number);
}
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  FAKE_ENTRY_WITH_CONTEXT;
  const Event* const begin = find(driver().events, from);
  const Event* const end = find(driver().events, to);
  if (begin == nullptr || end == nullptr || begin->stream == nullptr || end->stream == nullptr ||
      !begin->has_time || !end->has_time)
    return invalid_handle;
  if (driver().is_pending(*begin) || driver().is_pending(*end)) return not_ready;
  // A millisecond for each piece of work: what is timed can be told.
  *milliseconds = static_cast<float>(end->number) - static_cast<float>(begin->number);
  return success;
}
int cuMemAlloc_v2(uint64_t* address, std::size_t bytes) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (bytes == 0) return invalid_value;
  *address = region().allocate(bytes);
  if (*address == 0) return no_memory;
  region().open(true);
  fill<uint8_t>(*address, 0xa5, std::min(bytes, most_poison));
  region().open(false);
  return success;
}
int cuMemFree_v2(uint64_t address) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (const int result = driver().run_all(current_device()); result != success) return result;
  return region().release(address) ? success : invalid_value;
}
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  FAKE_ENTRY_WITH_CONTEXT;
  constexpr std::size_t page = 4096;
  *memory = std::aligned_alloc(page, (bytes + page - 1) / page * page);
  if (*memory == nullptr) return no_memory;
  driver().pinned[*memory] = bytes;
  return success;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, std::size_t bytes, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  return upload(stream, to, from, bytes);
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, std::size_t bytes, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  return download(stream, to, from, bytes);
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, std::size_t bytes, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (!region().holds(from, bytes) || !region().holds(to, bytes)) return invalid_value;
  return enqueue(stream, [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return true;
  });
}
int cuMemcpyPeerAsync(uint64_t to, void* to_context, uint64_t from, void* from_context,
                      std::size_t bytes, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  const auto holds = [&](void* context, uint64_t address) {
    const auto found =
        std::ranges::find_if(contexts, [&](const int& object) { return &object == context; });
    if (found == contexts.end()) return false;
    const auto& region = driver().regions[static_cast<std::size_t>(found - contexts.begin())];
    return region != nullptr && region->holds(address, bytes);
  };
  if (!holds(to_context, to) || !holds(from_context, from)) return invalid_value;
  const auto number = [](void* context) {
    return static_cast<int>(static_cast<int*>(context) - contexts.data());
  };
  if (!driver().peers.contains({number(to_context), number(from_context)}))
    driver().counts.peers_by_host += bytes;
  return enqueue(stream, [=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return true;
  });
}
int cuMemsetD8Async(uint64_t to, unsigned char value, std::size_t count, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  return enqueue_fill(stream, to, 0, value, count);
}
int cuMemsetD16Async(uint64_t to, unsigned short value, std::size_t count, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  return enqueue_fill(stream, to, 0, value, count);
}
int cuMemsetD32Async(uint64_t to, unsigned value, std::size_t count, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  return enqueue_fill(stream, to, 0, value, count);
}
int cuMemsetD2D32Async(uint64_t to, std::size_t pitch, unsigned value, std::size_t width,
                       std::size_t height, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  return enqueue_fill(stream, to, pitch, value, width, height);
}

int cuModuleLoadData(void** handle, const void* image) {
  FAKE_ENTRY_WITH_CONTEXT;
  const std::vector<std::shared_ptr<Module>> parts = read_image(image);
  if (parts.empty()) return invalid_image;
  *handle = parts[0].get();
  driver().modules[*handle] = {current_device(), parts};
  return success;
}
int cuModuleUnload(void* handle) {
  FAKE_ENTRY_WITH_CONTEXT;
  const auto found = driver().modules.find(handle);
  if (found == driver().modules.end() || found->second.device != current_device())
    return invalid_handle;
  const auto& parts = found->second.parts;
  const auto is_of = [&](const ReadyNodes& nodes) {
    return std::ranges::any_of(parts, [&](const auto& part) { return uses_module(nodes, *part); });
  };
  if (std::ranges::any_of(driver().queue, [&](const Work& work) {
        return (work.nodes != nullptr && is_of(*work.nodes)) ||
               (work.module != nullptr && std::ranges::find(parts, work.module) != parts.end());
      })) {
    std::fputs("fake driver: a module is unloaded that launches still need\n", stderr);
    return invalid_value;
  }
  if (std::ranges::any_of(driver().execs,
                          [&](const auto& exec) { return is_of(*exec.second->nodes); })) {
    std::fputs("fake driver: a module is unloaded that a graph still needs\n", stderr);
    return invalid_value;
  }
  std::erase_if(driver().functions,
                [&](const auto& item) { return item.second->handle == handle; });
  driver().modules.erase(found);
  return success;
}
int cuModuleGetFunction(void** handle, void* module, const char* name) {
  FAKE_ENTRY_WITH_CONTEXT;
  const auto found = driver().modules.find(module);
  if (found == driver().modules.end() || found->second.device != current_device())
    return invalid_handle;
  uint32_t part = 0, number = 0;
  const bool is_part = std::sscanf(name, "part%u_entry%u", &part, &number) == 2;
  if (!is_part && std::sscanf(name, "entry%u", &number) != 1) return not_found;
  const auto& parts = found->second.parts;
  const std::size_t at = is_part ? part - 1 : 0;
  if (is_part == (parts[0]->part == 0) || at >= parts.size() || number >= parts[at]->threads.size())
    return not_found;
  auto function =
      std::make_unique<LoadedFunction>(module, current_device(), Function{parts[at], number});
  *handle = function.get();
  driver().functions[*handle] = std::move(function);
  return success;
}
int cuLaunchKernel(void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   void* stream, void** parameters, void** extra) {
  FAKE_ENTRY_WITH_CONTEXT;
  const LoadedFunction* const found = find(driver().functions, handle);
  if (found == nullptr) return invalid_handle;
  if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x == 0 ||
      block_x > found->function.module->threads[found->function.entry] || block_y != 1 ||
      block_z != 1 || shared != 0 || parameters == nullptr || extra != nullptr)
    return invalid_value;
  std::vector<std::byte> arguments = arguments_of(found->function, parameters[0]);
  // For other threads to come between launches that belong together.
  static const bool yields = number_of("NITINOL_FAKE_YIELD", 0) != 0;
  if (yields) std::this_thread::yield();
  ++driver().counts.launches;
  return enqueue(
      stream,
      [function = found->function, blocks = Blocks{grid_x, block_x}, arguments]() mutable {
        return run_launch(function, blocks, arguments);
      },
      found->function.module);
}

// ---- for the other libraries, and tests

int fake_enqueue(void* stream, void (*work)(void*), void* data) {
  FAKE_ENTRY_WITH_CONTEXT;
  return enqueue(stream, [=] { return work(data), true; });
}
int fake_enqueue_again(void* stream, void (*work)(void*), void* data, void (*end)(void*)) {
  const std::shared_ptr<void> owned(data, end);
  FAKE_ENTRY_WITH_CONTEXT;
  return enqueue(stream, [work, owned] { return work(owned.get()), true; });
}
int fake_enqueue_tried(void* stream, bool (*work)(void*), void* data) {
  FAKE_ENTRY_WITH_CONTEXT;
  const int result = enqueue(stream, [] { return true; });
  if (result == success) driver().queue.back().is_ready = [=] { return work(data); };
  return result;
}
int fake_run(int device, void* stream) {
  current_device() = device;
  FAKE_ENTRY_WITH_CONTEXT;
  const Stream* const found = find(driver().streams, stream);
  return found != nullptr ? driver().run(*found) : invalid_handle;
}
int fake_device() {
  return current_device();
}
bool fake_holds(const void* address, std::size_t bytes) {
  const std::lock_guard lock(driver().mutex);
  return current_device() >= 0 && region().holds(reinterpret_cast<uint64_t>(address), bytes);
}
FakeCounts fake_counts() {
  const std::lock_guard lock(driver().mutex);
  FakeCounts counts = driver().counts;
  for (const auto& region : driver().regions)
    counts.blocks += region != nullptr ? region->live() : 0;
  counts.pinned = driver().pinned.size();
  counts.streams = driver().streams.size();
  counts.events = driver().events.size();
  counts.modules = driver().modules.size();
  counts.graphs = driver().graphs.size() + driver().execs.size();
  counts.queued = driver().queue.size();
  counts.queued_beside = static_cast<uint64_t>(std::ranges::count_if(
      driver().queue, [](const Work& work) { return work.stream->is_of_copies(); }));
  return counts;
}

// NOLINTEND(readability-identifier-naming)

}  // extern "C"
