// What the fake driver holds: streams, what was asked of them and is not done, memory, modules.
#pragma once

#include "tests/cuda/fake/fake.h"
#include "tests/cuda/fake/graph.h"
#include "tests/cuda/fake/module.h"
#include "tests/cuda/fake/region.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <set>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace nitinol::test {

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
  illegal_state = 401,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  peer_access_enabled = 704,
  launch_failed = 719,
  capture_unsupported = 900,
  capture_broken = 901,
  capture_wrong_thread = 908,
};

inline constexpr std::size_t most_poison = std::size_t{1} << 20, most_devices = 4;
inline constexpr int device_version = 13000;

struct Stream {
  int device;
  bool has_copies = false, has_launches = false;
  std::unique_ptr<Capture> capture = nullptr;  ///< while it is captured
  [[nodiscard]] bool is_of_copies() const { return has_copies && !has_launches; }
};
struct Event {
  int device;
  const Stream* stream = nullptr;  ///< null: not recorded
  uint64_t number = 0;             ///< of the latest work before it
  bool has_time = false;
};
struct Work {
  const Stream* stream;
  uint64_t number;
  std::function<bool()> run;
  std::shared_ptr<Module> module;       ///< to be compiled before
  Event after = {};                     ///< what is waited for, if it has a stream
  std::function<bool()> is_ready = {};  ///< or whether another process lets it run by now
  std::shared_ptr<const ReadyNodes> nodes = nullptr;  ///< of a graph
};
struct LoadedModule {
  int device;
  std::vector<std::shared_ptr<Module>> parts;
};
struct LoadedFunction {
  const void* handle;  ///< of its module
  int device;
  Function function;
};

struct Driver {
  std::recursive_mutex mutex;
  bool is_initialized = false;
  static inline std::atomic<bool> is_forked_off = false;
  const int forks = ::pthread_atfork(nullptr, nullptr, [] { is_forked_off = true; });
  std::array<std::unique_ptr<Region>, most_devices> regions;  ///< of the devices in use
  std::array<int, most_devices> lost = {};
  std::map<const void*, std::unique_ptr<Stream>> streams;
  std::map<const void*, std::unique_ptr<Event>> events;
  std::map<const void*, LoadedModule> modules;
  std::map<const void*, std::unique_ptr<LoadedFunction>> functions;
  std::map<const void*, std::unique_ptr<Graph>> graphs;
  std::map<const void*, std::unique_ptr<GraphExec>> execs;
  std::map<const void*, std::size_t> pinned;
  std::list<Work> queue;
  std::set<std::pair<int, int>> peers;  ///< a device, and one whose memory it can read
  uint64_t last_number = 0;
  FakeCounts counts;
  int open_count = 0;

  /// Whether the process that has loaded this forked the one that runs.
  [[nodiscard]] static bool is_child() { return is_forked_off.load(std::memory_order_relaxed); }
  /// Does what was asked of a stream up to a number, and of what other streams have been asked for
  /// only what it waits for: they may be slower.
  int run(const Stream& stream, uint64_t last = std::numeric_limits<uint64_t>::max()) {
    const auto device = static_cast<std::size_t>(stream.device);
    const auto next = [&] {
      return std::ranges::find_if(
          queue, [&](const Work& work) { return work.stream == &stream && work.number <= last; });
    };
    if (next() == queue.end()) return lost[device];
    compile_queued();
    const Opened opened(*this);
    for (auto work = next(); work != queue.end(); work = next()) {
      if (is_pending(work->after))
        static_cast<void>(run(*work->after.stream, work->after.number));
      else if (work->is_ready && !work->is_ready())
        let_others();
      else
        do_now(work);
    }
    return lost[device];
  }
  /// Streams of copies alone do what they can: they may be faster, too.
  void run_early() {
    const Opened opened(*this);
    for (const auto& [handle, stream] : streams) {
      if (!stream->is_of_copies()) continue;
      const auto next = [&] { return std::ranges::find(queue, stream.get(), &Work::stream); };
      const auto can_run = [&](const Work& work) {
        return !is_pending(work.after) && (!work.is_ready || work.is_ready());
      };
      for (auto work = next(); work != queue.end() && can_run(*work); work = next()) do_now(work);
    }
  }
  int run_all(int device) {
    for (const auto& [handle, stream] : streams) {
      if (stream->device == device) static_cast<void>(run(*stream));
    }
    return lost[static_cast<std::size_t>(device)];
  }
  [[nodiscard]] bool is_pending(const Event& event) const {
    return event.stream != nullptr && std::ranges::any_of(queue, [&](const Work& work) {
             return work.stream == event.stream && work.number <= event.number;
           });
  }
  [[nodiscard]] bool is_pinned(const void* address, std::size_t bytes) const {
    auto found = pinned.upper_bound(address);
    if (found == pinned.begin()) return false;
    --found;
    const auto before = static_cast<std::size_t>(static_cast<const std::byte*>(address) -
                                                 static_cast<const std::byte*>(found->first));
    return before + bytes <= found->second;
  }

 private:
  /// Memory is open to the device's work while there is one: of all devices, as some copies are
  /// between two. Opening may cost more than the work.
  struct Opened {
    explicit Opened(Driver& driver) : driver(driver) {
      if (driver.open_count++ == 0) driver.open(true);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() {
      if (--driver.open_count == 0) driver.open(false);
    }
    Driver& driver;
  };
  void open(bool is_open) const {
    for (const auto& region : regions) {
      if (region != nullptr) region->open(is_open);
    }
  }
  /// Lets other threads call the driver for a while.
  void let_others() {
    const int opened = std::exchange(open_count, 0);
    open(false);
    mutex.unlock();
    ::usleep(20);
    mutex.lock();
    open_count = opened;
    open(true);
  }
  void do_now(std::list<Work>::iterator work) {
    const auto device = static_cast<std::size_t>(work->stream->device);
    if (lost[device] == success && !work->run()) lost[device] = launch_failed;
    queue.erase(work);
  }
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

}  // namespace nitinol::test
