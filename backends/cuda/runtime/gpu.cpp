#include "backends/cuda/runtime/gpu.h"

#include "backends/cuda/runtime/call.h"
#include "backends/cuda/runtime/graph.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/interrupt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace nitinol::cuda {
namespace {

constexpr unsigned non_blocking = 1;
constexpr std::size_t least_counters = 4096;

// Of CUdevice_attribute.
constexpr int major_attribute = 75, minor_attribute = 76;

// CUresults that no later call of the context survives: addresses, instructions, assertions and
// time limits of kernels, and errors of the hardware.
constexpr std::array lasting = {4,   214, 220, 226, 700, 702, 710, 714,
                                715, 716, 717, 718, 719, 721, 911};

std::string name_of_result(int result) {
  const char* name = nullptr;
  if (driver().cuGetErrorName(result, &name) != 0 || name == nullptr) return "unknown";
  return name;
}

std::string words_of(int result, const char* what) {
  return fmt::format("{} failed with error {} ({})", what, result, name_of_result(result));
}

void throw_if_failed(int result, const char* what, int number) {
  if (result == 0) [[likely]]
    return;
  throw Error(ErrorKind::device,
              {.where = fmt::format("cuda:{}", number), .what = words_of(result, what)});
}

}  // namespace

Properties properties_of(int number) {
  const auto check = [&](int result, const char* what) { throw_if_failed(result, what, number); };
  int device = 0;
  check(driver().cuDeviceGet(&device, number), "finding the device");
  std::array<char, 256> name = {};
  check(driver().cuDeviceGetName(name.data(), static_cast<int>(name.size()), device), "its name");
  int major = 0, minor = 0;
  check(driver().cuDeviceGetAttribute(&major, major_attribute, device), "an attribute");
  check(driver().cuDeviceGetAttribute(&minor, minor_attribute, device), "an attribute");
  Properties properties = {.name = name.data(), .architecture = 10 * major + minor};
  check(driver().cuDeviceTotalMem_v2(&properties.total_bytes, device), "its memory");
  check(driver().cuDeviceGetUuid_v2(&properties.uuid, device), "its number");
  return properties;
}

Gpu::Gpu(int number, Backend& owner)
    : driver_(driver()),
      number_(number),
      properties_(properties_of(number)),
      memory_(*this, owner),
      staging_(new Staging(*this)) {
  int device = 0, version = 0;
  check(driver_.cuDeviceGet(&device, number), "finding the device");
  check(driver_.cuDriverGetVersion(&version), "its driver's version");
  // From CUDA 12.1 on, kernels of compute capability 7.0 take 32,764 bytes of parameters.
  constexpr int volta = 70, first_large = 12'010;
  most_argument_bytes_ =
      version >= first_large && properties_.architecture >= volta ? 32'764 : 4'096;
  check(driver_.cuDevicePrimaryCtxRetain(&context_, device), "its context");
  const Entered entered = enter();
  check(driver_.cuStreamCreate(&stream_, non_blocking), "its stream");
}

void Gpu::expect_usable() const {
  if (is_forked_off()) [[unlikely]] {
    throw Error(ErrorKind::device, {.where = fmt::format("cuda:{}", number_),
                                    .what = std::string(does_not_survive_fork),
                                    .fix = "Start the other process by spawn, or fork before a GPU "
                                           "is used or asked for."});
  }
  if (is_lost_.load(std::memory_order_acquire)) [[unlikely]] {
    const std::lock_guard lock(mutex_);
    lose(lost_);
  }
}

Entered Gpu::enter() const {
  expect_usable();
  Driver::Context before = nullptr;
  check(driver_.cuCtxGetCurrent(&before), "asking for the context");
  if (before == context_) return {driver_, nullptr};
  check(driver_.cuCtxSetCurrent(context_), "entering its context");
  return {driver_, before};
}

void Gpu::check(int result, const char* what) const {
  if (result == 0) [[likely]]
    return;
  if (std::ranges::find(lasting, result) != lasting.end()) {
    const std::lock_guard lock(mutex_);
    if (lost_.empty())
      lost_ = fmt::format("{}; it is one of the latest launches, from the last:{}",
                          words_of(result, what), latest_labels());
    is_lost_.store(true, std::memory_order_release);
    lose(lost_);
  }
  throw_if_failed(result, what, number_);
}

void Gpu::check_wait(int result, const char* what) const {
  check(result, what);
  if (!is_cut_off_.load(std::memory_order_acquire)) [[likely]]
    return;
  const std::lock_guard lock(mutex_);
  throw Error(ErrorKind::io,
              {.where = fmt::format("cuda:{}", number_),
               .what = fmt::format("a collective was ended before it was done: {}", cut_off_),
               .fix = "What the device holds may be anything: start all ranks anew."});
}

void Gpu::cut_off(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (cut_off_.empty()) cut_off_ = why;
  is_cut_off_.store(true, std::memory_order_release);
}

void Gpu::await_exchanges() {
  if (exchanges_underway_.load(std::memory_order_acquire) == 0) [[likely]]
    return;
  constexpr int not_ready = 600, busy_polls = 500;
  constexpr std::chrono::microseconds pause(50);
  const Entered entered = enter();
  Driver::Event reached = nullptr;
  check(driver_.cuEventCreate(&reached, Driver::no_timing), "making an event");
  std::exception_ptr interrupt;
  if (driver_.cuEventRecord(reached, exchanges_) == 0) {
    auto asked = std::chrono::steady_clock::now();
    for (int polls = 0; driver_.cuEventQuery(reached) == not_ready; ++polls) {
      if (polls < busy_polls)  // as the driver's own waits
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(pause);
      if (interrupt || std::chrono::steady_clock::now() - asked < interrupt_interval) continue;
      try {
        check_interrupt();
      } catch (...) {
        interrupt = std::current_exception();
        is_interrupted_ = true;
      }
      asked = std::chrono::steady_clock::now();
    }
  }
  driver_.cuEventDestroy_v2(reached);
  if (!interrupt) return;
  is_interrupted_ = false;
  std::rethrow_exception(interrupt);
}

void Gpu::await(Driver::Event event, const char* what) {
  const Entered entered = enter();
  // It may be behind work that waits for them.
  if (exchanges_underway_.load(std::memory_order_acquire) != 0 && driver_.cuEventQuery(event) != 0)
    await_exchanges();
  check_wait(driver_.cuEventSynchronize(event), what);
}

void Gpu::expect_alive() const {
  const Entered entered = enter();
  check(driver_.cuStreamSynchronize(stream_), "waiting for launches");
}

void Gpu::lose(const std::string& what) const {
  throw Error(ErrorKind::device,
              {.where = fmt::format("cuda:{}", number_),
               .what = fmt::format("the device is lost to this process: {}", what),
               .fix = "Start the process anew; NITINOL_CUDA_WAIT=1 lets it wait after each launch, "
                      "which tells the first that fails."});
}

std::string Gpu::latest_labels() const {
  std::vector<std::pair<std::string_view, int>> latest;  // a label, and how often in succession
  const std::size_t count = std::min<std::size_t>(asked_ - done_, label_count);
  for (std::size_t i = 1; i <= count; ++i) {
    const std::string_view label = *labels_[(asked_ - i) % label_count];
    if (latest.empty() || latest.back().first != label) latest.emplace_back(label, 0);
    ++latest.back().second;
  }
  std::string text;
  for (const auto& [label, times] : latest) {
    text += fmt::format("\n  {}", label);
    if (times > 1) text += fmt::format(", {} times", times);
  }
  return text.empty() ? " none" : text;
}

void Gpu::upload(const void* from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  const Entered entered = enter();
  upload_by(to, bytes, [&](Driver::Stream stream) { staging_->upload(from, to, bytes, stream); });
}

bool Gpu::upload_written(void* to, std::size_t bytes,
                         FunctionRef<void(std::span<std::byte>)> write) {
  if (bytes == 0) {
    write({});
    return true;
  }
  const Entered entered = enter();
  const Staging::Taken taken = staging_->take(bytes);
  if (!taken) return false;
  write(taken.memory());
  upload_by(to, bytes, [&](Driver::Stream stream) { taken.upload(to, stream); });
  return true;
}

void Gpu::upload_by(void* to, std::size_t bytes, FunctionRef<void(Driver::Stream)> copy) {
  Graph::expect_none(*this, "a copy from the host");
  if (!GpuMemory::is_large(bytes)) return copy(stream_);
  const Driver::Stream stream = copies();
  if (const Driver::Event used = memory_.last_use(to))
    wait_for(used, stream, "a copy after its block's last use");
  try {
    copy(stream);
  } catch (...) {
    driver_.cuStreamSynchronize(stream);  // the block will be handed out again
    throw;
  }
}

Driver::Stream Gpu::made(Driver::Stream& stream, const char* what) {
  static ForkSafeMutex mutex;
  const std::lock_guard lock(mutex);
  if (stream == nullptr) check(driver_.cuStreamCreate(&stream, non_blocking), what);
  return stream;
}

Driver::Stream Gpu::copies() {
  return made(copies_, "its stream of copies");
}

Driver::Stream Gpu::exchanges() {
  return made(exchanges_, "its stream of exchanges");
}

void Gpu::wait_for(Driver::Event event, Driver::Stream stream, const char* what) const {
  check(driver_.cuStreamWaitEvent(stream, event, 0), what);
}

Driver::Event Gpu::mark() {
  const Entered entered = enter();
  if (mark_ == nullptr) check(driver_.cuEventCreate(&mark_, Driver::no_timing), "making an event");
  check(driver_.cuEventRecord(mark_, stream_), "recording an event");
  return mark_;
}

void Gpu::reach(const Gpu& other) {
  // Without it the driver takes the copies through the host's memory, which is right too.
  if (reached_.insert(other.number_).second)
    static_cast<void>(driver_.cuCtxEnablePeerAccess(other.context_, 0));
}

void Gpu::copy_from(Gpu& source, const void* from, void* to, std::size_t bytes) {
  constexpr const char* what = "copying between devices";
  Graph::expect_none(*this, what);
  static ForkSafeMutex mutex;  // of all marks, and of who reaches whom
  const std::lock_guard lock(mutex);
  const Driver::Event made = source.mark();
  const Entered entered = enter();
  reach(source);
  wait_for(made, stream_, what);
  check(driver_.cuMemcpyPeerAsync(Driver::address_of(to), context_, Driver::address_of(from),
                                  source.context_, bytes, stream_),
        what);
  try {
    // What is released there may be reused by later work of that device.
    const Driver::Event copied = mark();
    const Entered there = source.enter();
    source.wait_for(copied, source.stream_, what);
  } catch (...) {
    driver_.cuCtxSetCurrent(context_);
    driver_.cuStreamSynchronize(stream_);
    throw;
  }
}

void Gpu::download(const void* from, void* to, std::size_t bytes) {
  Graph::expect_none(*this, "a copy to the host");
  await_exchanges();
  const Entered entered = enter();
  if (bytes > 0) staging_->download(from, to, bytes);
}

void Gpu::fill(void* to, uint64_t bits, std::size_t element_bytes, std::size_t count) {
  Graph::expect_none(*this, "filling memory");
  fill_now(to, bits, element_bytes, count);
}

void Gpu::fill_now(void* to, uint64_t bits, std::size_t element_bytes, std::size_t count) {
  if (count == 0) return;
  const Entered entered = enter();
  const Driver::Address at = Driver::address_of(to);
  switch (element_bytes) {
    case 1:
      return check(driver_.cuMemsetD8Async(at, static_cast<uint8_t>(bits), count, stream_),
                   "filling memory");
    case 2:
      return check(driver_.cuMemsetD16Async(at, static_cast<uint16_t>(bits), count, stream_),
                   "filling memory");
    default:
      break;
  }
  const auto low = static_cast<uint32_t>(bits), high = static_cast<uint32_t>(bits >> 32);
  if (element_bytes == 4 || low == high) {
    return check(driver_.cuMemsetD32Async(at, low, count * (element_bytes / 4), stream_),
                 "filling memory");
  }
  // Words of 8 bytes: the low halves as a column of a matrix two wide, then the high ones.
  check(driver_.cuMemsetD2D32Async(at, 8, low, 1, count, stream_), "filling memory");
  check(driver_.cuMemsetD2D32Async(at + 4, 8, high, 1, count, stream_), "filling memory");
}

void Gpu::wait() {
  Graph::expect_none(*this, "waiting");
  await_exchanges();
  const Entered entered = enter();
  uint64_t asked = 0;
  {
    const std::lock_guard lock(mutex_);
    asked = asked_;
  }
  check_wait(driver_.cuStreamSynchronize(stream_), "waiting for launches");
  const std::lock_guard lock(mutex_);
  done_ = std::max(done_, asked);
}

void Gpu::launch(Driver::Function function, uint32_t blocks, uint32_t threads,
                 std::span<const std::byte> arguments,
                 const std::shared_ptr<const std::string>& label) {
  if (Graph* const graph = Graph::noting(*this))
    return graph->add(function, blocks, threads, arguments, label);
  check(enqueue(function, blocks, threads, arguments, stream_), "a launch");
  note(label);
}

int Gpu::launch(FunctionRef<int(Driver::Stream)> call, const std::array<void*, 3>& operands,
                const std::shared_ptr<const std::string>& label) {
  const std::lock_guard order(order_);
  if (Graph* const graph = Graph::noting(*this)) {
    graph->capture(call, operands, label);
    return 0;
  }
  const int result = call(stream_);
  if (result == 0) note(label);
  return result;
}

void Gpu::note(const std::shared_ptr<const std::string>& label) {
  const std::lock_guard lock(mutex_);
  labels_[asked_++ % label_count] = label;
}

void* Gpu::workspace() {
  {
    const std::lock_guard lock(mutex_);
    if (workspace_) return workspace_->data;
  }
  // Without the lock, which a lost device's error takes.
  StorageHandle fresh = memory_.allocate(workspace_bytes);
  const std::lock_guard lock(mutex_);
  if (!workspace_) std::swap(workspace_, fresh);
  return workspace_->data;
}

uint32_t* Gpu::counters(std::size_t count) {
  if (count == 0) return nullptr;
  const auto found = [&] {
    if (Graph* const graph = Graph::noting(*this)) graph->keep(counters_);
    return static_cast<uint32_t*>(counters_->data);
  };
  {
    const std::lock_guard lock(mutex_);
    if (count <= counter_count_) return found();
  }
  // Who still uses the old ones is earlier on the stream than who gets their memory next.
  const std::size_t words = std::max(least_counters, 2 * count);
  StorageHandle fresh = memory_.allocate(words * sizeof(uint32_t));
  fill_now(fresh->data, 0, sizeof(uint32_t), words);
  const std::lock_guard lock(mutex_);
  if (words > counter_count_) {
    std::swap(counters_, fresh);
    counter_count_ = words;
  }
  return found();
}

StorageHandle Gpu::scratch(std::size_t bytes) {
  Graph* const graph = Graph::noting(*this);
  return graph != nullptr ? graph->scratch(bytes) : memory_.allocate(bytes);
}

Driver::Stream Gpu::captures() {
  return made(captures_, "its stream of captures");
}

bool Gpu::take_for_graphs(std::size_t bytes) {
  constexpr std::size_t share = 64;  // of the device's memory
  const std::size_t budget = properties_.total_bytes / share;
  if (graph_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= budget) return true;
  give_back_to_graphs(bytes);
  return false;
}

void Gpu::give_back_to_graphs(std::size_t bytes) {
  graph_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace nitinol::cuda
