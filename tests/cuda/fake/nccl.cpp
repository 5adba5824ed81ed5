// libnccl.so.2 made of CPU code: ranks of one host find each other by a file of shared memory that
// the id names, and what they send goes through it, piece by piece.
#include "tests/cuda/fake/calls.h"
#include "tests/cuda/fake/fake.h"
#include "tests/cuda/fake/library.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

FAKE_CALLS;

namespace nitinol::test {
namespace {

enum Result : int {
  success = 0,
  system_error = 2,
  invalid_argument = 4,
  invalid_usage = 5,
  in_progress = 7
};

constexpr int most_ranks = 8;

/// What goes from one rank to another.
struct Pipe {
  std::atomic<uint64_t> written, read;
  std::array<std::byte, 1 << 16> bytes;
};
struct Shared {
  std::atomic<int> joined;
  std::array<std::atomic<int>, most_ranks> devices;            ///< of those that joined; 0: not yet
  std::array<std::array<Pipe, most_ranks>, most_ranks> pipes;  ///< from, to
};

struct Id {
  char data[128];
};

struct Message {
  std::byte* bytes;
  std::size_t count, done = 0;
  int peer;
  bool is_sent;
};

struct Communicator {
  Shared* shared = nullptr;
  std::string name;
  int ranks = 0, rank = 0;
  std::atomic<bool> is_aborted = false;
  std::atomic<int> failure = success;

  /// Whether all ranks are there.
  int meet() {
    if (shared->joined.load() < ranks) return in_progress;
    ::shm_unlink(name.c_str());
    for (int other = 0; other < ranks; ++other) {
      if (other != rank && shared->devices[static_cast<std::size_t>(other)] ==
                               shared->devices[static_cast<std::size_t>(rank)])
        return invalid_usage;  // "Duplicate GPU detected"
    }
    return success;
  }
  Pipe& pipe(int from, int to) {
    return shared->pipes[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  /// Moves what can be moved by now; whether nothing is left.
  bool advance(Message& message) {
    Pipe& pipe = message.is_sent ? this->pipe(rank, message.peer) : this->pipe(message.peer, rank);
    const uint64_t written = pipe.written.load(std::memory_order_acquire);
    const uint64_t read = pipe.read.load(std::memory_order_acquire);
    const uint64_t at = message.is_sent ? written : read;
    const std::size_t room =
        message.is_sent ? pipe.bytes.size() - (written - read) : written - read;
    std::size_t piece =
        std::min({room, message.count - message.done, pipe.bytes.size() - at % pipe.bytes.size()});
    std::byte* const inside = pipe.bytes.data() + at % pipe.bytes.size();
    std::byte* const outside = message.bytes + message.done;
    if (message.is_sent)
      std::memcpy(inside, outside, piece);
    else
      std::memcpy(outside, inside, piece);
    (message.is_sent ? pipe.written : pipe.read).store(at + piece, std::memory_order_release);
    message.done += piece;
    return message.done == message.count;
  }
};

/// What ncclGroupEnd() puts on a stream.
struct Group {
  Communicator* communicator;
  std::vector<Message> messages;
  bool is_stalled = false;  ///< nothing ever moves
};

bool advance(void* data) {
  auto* const group = static_cast<Group*>(data);
  bool is_over = true;
  // Messages between two ranks follow on one another.
  std::array<std::array<bool, 2>, most_ranks> is_busy = {};
  if (!group->communicator->is_aborted) {
    if (group->is_stalled) return false;
    for (Message& message : group->messages) {
      bool& busy = is_busy[static_cast<std::size_t>(message.peer)][message.is_sent ? 1 : 0];
      if (busy || message.done == message.count) continue;
      if (!group->communicator->advance(message)) busy = true, is_over = false;
    }
  }
  if (is_over) delete group;
  return is_over;
}

/// Does what was asked of streams, as a device does without being waited for.
class Runner {
 public:
  static Runner& instance() {
    static Runner& runner = *new Runner;
    return runner;
  }
  void add(void* stream, int device) {
    const std::lock_guard lock(mutex_);
    streams_.emplace_back(stream, device);
    if (!is_running_) std::thread([this] { run(); }).detach();
    is_running_ = true;
    has_changed_.notify_all();
  }

 private:
  void run() {
    while (true) {
      std::unique_lock lock(mutex_);
      has_changed_.wait(lock, [this] { return !streams_.empty(); });
      const auto [stream, device] = streams_.front();
      streams_.pop_front();
      lock.unlock();
      fake_driver().run(device, stream);
    }
  }
  std::mutex mutex_;
  std::condition_variable has_changed_;
  std::deque<std::pair<void*, int>> streams_;
  bool is_running_ = false;
};

thread_local int depth = 0;
struct Pending {
  Communicator* communicator;
  void* stream;
  Message message;
};
thread_local std::vector<Pending> pending;  // NOLINT(cert-err58-cpp)

int add(void* bytes, std::size_t count, int type, int peer, Communicator* c, void* stream,
        bool is_sent) {
  if (type != 0 || peer < 0 || peer >= c->ranks || depth == 0) return invalid_argument;
  if (!fake_driver().holds(bytes, count)) return invalid_argument;
  pending.push_back({c, stream, {static_cast<std::byte*>(bytes), count, 0, peer, is_sent}});
  return success;
}

}  // namespace
}  // namespace nitinol::test

using namespace nitinol::test;  // NOLINT: functions of C's

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): NCCL's names

int ncclGetVersion(int* version) {
  FAKE_ENTRY;
  const char* const set = std::getenv("NITINOL_FAKE_NCCL");
  *version = set != nullptr ? std::atoi(set) : 22'800;
  return success;
}
int ncclGetUniqueId(Id* id) {
  FAKE_ENTRY;
  static std::atomic<int> last = 0;
  const std::string name =
      "/nitinol-fake-nccl-" + std::to_string(::getpid()) + "-" + std::to_string(++last);
  *id = {};
  name.copy(id->data, sizeof(id->data) - 1);
  return success;
}
int ncclCommInitRankConfig(Communicator** made, int ranks, Id id, int rank, void* config) {
  FAKE_ENTRY;
  struct Config {
    std::size_t size;
    unsigned magic, version;
    int is_blocking;
  };
  const auto* const given = static_cast<const Config*>(config);
  if (given->magic != 0xcafebeef || given->version < 21'400 || given->size < sizeof(Config) ||
      given->is_blocking != 0 || ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks ||
      fake_driver().device() < 0)
    return invalid_argument;
  const int file = ::shm_open(id.data, O_CREAT | O_RDWR, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(Shared)) != 0) return system_error;
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) return system_error;
  auto* const c = new Communicator;
  c->shared = static_cast<Shared*>(memory);
  c->name = id.data;
  c->ranks = ranks;
  c->rank = rank;
  c->shared->devices[static_cast<std::size_t>(rank)] = fake_driver().device() + 1;
  ++c->shared->joined;
  *made = c;
  c->failure = c->meet();
  return c->failure;
}
int ncclCommAbort(Communicator* c) {
  FAKE_ENTRY;
  c->is_aborted = true;
  return success;
}
int ncclCommGetAsyncError(Communicator* c, int* result) {
  FAKE_ENTRY;
  if (c->failure == in_progress) c->failure = c->meet();
  *result = c->failure;
  return success;
}
const char* ncclGetErrorString(int result) {
  return result == invalid_usage ? "invalid usage" : "some error";
}
int ncclGroupStart() {
  FAKE_ENTRY;
  ++depth;
  return success;
}
int ncclGroupEnd() {
  FAKE_ENTRY;
  if (depth == 0) return invalid_usage;
  if (--depth > 0 || pending.empty()) return success;
  static int last_stalled = 0;
  const char* const stalled = std::getenv("NITINOL_FAKE_STALL");
  auto* const group = new Group{pending.front().communicator, {}};
  group->is_stalled = stalled != nullptr && ++last_stalled >= std::atoi(stalled);
  void* const stream = pending.front().stream;
  for (const Pending& p : pending) {
    if (p.communicator != group->communicator || p.stream != stream) return invalid_usage;
    group->messages.push_back(p.message);
  }
  pending.clear();
  if (fake_driver().enqueue_tried(stream, advance, group) != 0) return system_error;
  Runner::instance().add(stream, fake_driver().device());
  return success;
}
int ncclSend(const void* bytes, std::size_t count, int type, int peer, Communicator* c,
             void* stream) {
  FAKE_ENTRY;
  return add(const_cast<void*>(bytes), count, type, peer, c, stream, true);
}
int ncclRecv(void* bytes, std::size_t count, int type, int peer, Communicator* c, void* stream) {
  FAKE_ENTRY;
  return add(bytes, count, type, peer, c, stream, false);
}

// NOLINTEND(readability-identifier-naming)
}  // extern "C"
