#include "tests/fenced.h"

#include "backends/reference/device.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/kernel.h"
#include "core/library.h"
#include "tests/backends/kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace nitinol::test {
namespace {

constexpr std::size_t pool_bytes = std::size_t{8} << 30;  // of addresses; pages come when touched
constexpr std::size_t class_count = 48;

[[noreturn]] void fail(const char* what) {
  throw Error(ErrorKind::internal, {.where = "the fenced device", .what = what});
}

/// Memory mapped twice.
class Pool {
 public:
  Pool() {
    const int file = ::memfd_create("fenced", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, pool_bytes) != 0) fail("no memory to map twice");
    fence_ = map(file, PROT_NONE);
    open_ = map(file, PROT_READ | PROT_WRITE);
    ::close(file);
  }

  void* take(std::size_t size_class) {
    const std::lock_guard lock(mutex_);
    std::vector<void*>& free = free_[size_class];
    if (!free.empty()) {
      void* const block = free.back();
      free.pop_back();
      return block;
    }
    const std::size_t bytes = std::size_t{1} << size_class;
    if (bytes > pool_bytes - used_) {
      throw Error(ErrorKind::value,
                  {.where = "allocate", .what = "the fenced device's memory is exhausted"});
    }
    used_ += bytes;
    return fence_ + (used_ - bytes);
  }
  void give(void* block, std::size_t size_class) {
    const std::lock_guard lock(mutex_);
    free_[size_class].push_back(block);
  }

  /// The address at which the device itself sees what tensors know as `address`. What is none of
  /// its memory is a mistake of whoever launches.
  [[nodiscard]] std::byte* opened(const void* address) const {
    if (address == nullptr) return nullptr;
    const auto* const at = static_cast<const std::byte*>(address);
    if (at < fence_ || at > fence_ + pool_bytes) fail("an address that is none of its memory");
    return open_ + (at - fence_);
  }

 private:
  static std::byte* map(int file, int protection) {
    void* const at = ::mmap(nullptr, pool_bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED) fail("no addresses to map twice");
    return static_cast<std::byte*>(at);
  }

  std::mutex mutex_;
  std::byte* fence_ = nullptr;
  std::byte* open_ = nullptr;
  std::size_t used_ = 0;
  std::array<std::vector<void*>, class_count> free_;
};

Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

/// What was asked for and not yet done.
class Queue {
 public:
  void add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
    ++counts_.asked;
  }
  void add_launch(std::function<void()> work) {
    add(std::move(work));
    const std::lock_guard lock(mutex_);
    ++counts_.launches;
  }
  void note_specialised() {
    const std::lock_guard lock(mutex_);
    ++counts_.specialised;
  }

  /// Does all, in order, and throws what the first failed with.
  void wait() {
    const std::lock_guard running(running_);
    std::exception_ptr failure;
    for (std::function<void()> work = next(); work; work = next()) {
      try {
        work();
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

  FencedCounts counts() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  std::function<void()> next() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      ++counts_.waits;
      return {};
    }
    std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    ++counts_.done;
    return work;
  }

  std::mutex running_;  ///< of all that is done
  std::mutex mutex_;    ///< of the list
  std::deque<std::function<void()>> waiting_;
  FencedCounts counts_;
};

Queue& queue() {
  static Queue& instance = *new Queue;
  return instance;
}

/// What the launch points to, with its memory opened.
test::Call held(const Launch& launch) {
  const auto copied = [](const auto& list) { return std::vector(list.begin(), list.end()); };
  test::Call call = {.buffers = {},
                     .sizes = copied(launch.sizes),
                     .strides = copied(launch.strides),
                     .offsets = copied(launch.offsets),
                     .scalars = copied(launch.scalars),
                     .threads = launch.threads};
  for (void* const buffer : launch.buffers) call.buffers.push_back(pool().opened(buffer));
  return call;
}

class FencedExecutable final : public Executable {
 public:
  FencedExecutable(std::shared_ptr<const Executable> inner, bool heeds_gates)
      : inner_(std::move(inner)), heeds_gates_(heeds_gates) {}
  void launch(const Launch& launch) const override {
    const bool is_gated = launch.is_gated && heeds_gates_;
    queue().add_launch([inner = inner_, call = held(launch), status = launch.status, is_gated] {
      if (is_gated && status->code != Status::ok) return;
      inner->launch(call.launch(status));
    });
  }
  std::unique_ptr<const Executable> specialise(std::span<const Launch> examples) const override {
    for (const Launch& example : examples) {
      if (std::ranges::any_of(example.buffers, [](void* b) { return b != nullptr; }))
        fail("an example with buffers");
    }
    queue().note_specialised();
    return nullptr;
  }
  [[nodiscard]] BuildReport report() const override { return inner_->report(); }
  [[nodiscard]] std::string describe(std::span<const Launch> examples) const override {
    return inner_->describe(examples);
  }

 private:
  const std::shared_ptr<const Executable> inner_;
  const bool heeds_gates_;  ///< as kernels do
};

void release_fenced(Storage* storage) noexcept {
  pool().give(storage->data, storage->size_class);
  delete storage;
}

struct FencedStatus final : PostedStatus {
  static constexpr uint32_t on_its_way = ~uint32_t{0};
  explicit FencedStatus(std::shared_ptr<const std::atomic<uint32_t>> of) : word(std::move(of)) {}
  [[nodiscard]] bool is_there() override { return word->load() != on_its_way; }
  Status::Code wait() override {
    queue().wait();
    return static_cast<Status::Code>(word->load());
  }
  const std::shared_ptr<const std::atomic<uint32_t>> word;
};

class FencedBackend final : public Backend {
 public:
  [[nodiscard]] Device device() const override { return fenced_device; }
  [[nodiscard]] std::string description() const override { return "for tests"; }

  StorageHandle allocate(std::size_t bytes) override {
    if (bytes > pool_bytes) {
      throw Error(ErrorKind::value,
                  {.where = "allocate", .what = "the fenced device's memory is exhausted"});
    }
    const auto size_class =
        static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(bytes, 64) - 1));
    auto* const storage = new Storage;
    storage->data = pool().take(size_class);
    storage->bytes = bytes;
    storage->backend = this;
    storage->release = release_fenced;
    storage->size_class = static_cast<uint8_t>(size_class);
    return StorageHandle(storage, false);
  }
  void upload(const void* from, void* to, std::size_t bytes) override {
    const auto* const first = static_cast<const std::byte*>(from);
    queue().add([held = std::vector<std::byte>(first, first + bytes), at = pool().opened(to)] {
      std::ranges::copy(held, at);
    });
  }
  void download(const void* from, void* to, std::size_t bytes) override {
    queue().wait();
    std::memcpy(to, pool().opened(from), bytes);
  }
  void fill(void* to, uint64_t bits, std::size_t element_bytes, std::size_t count) override {
    queue().add(
        [=, at = pool().opened(to)] { reference::device().fill(at, bits, element_bytes, count); });
  }
  MemoryStatistics memory() override { return {}; }
  void set_memory_budget(std::size_t) override {}
  void release_cached_memory() override {}
  void reset_peak_memory() override {}

  std::unique_ptr<Executable> prepare(const Step& step) override {
    return std::make_unique<FencedExecutable>(reference::device().prepare(step),
                                              std::holds_alternative<Kernel>(step));
  }
  [[nodiscard]] bool is_asynchronous() const override { return true; }
  Status* take_status(const Status* after) override {
    auto* const status = new Status;
    if (after != nullptr) queue().add([=] { status->code = after->code.load(); });
    return status;
  }
  std::unique_ptr<PostedStatus> post_status(const Status* status) override {
    auto word = std::make_shared<std::atomic<uint32_t>>(FencedStatus::on_its_way);
    queue().add([=] { *word = status->code.load(); });
    return std::make_unique<FencedStatus>(std::move(word));
  }
  Status::Code read_status(const Status* status) override {
    queue().wait();
    return static_cast<Status::Code>(status->code.load());
  }
  void give_status(Status* status, bool) override {
    // A launch that was never waited for may still write it.
    queue().add([status] { delete status; });
  }
  void synchronize() override { queue().wait(); }
  bool can_generate_code() override { return false; }
  /// Others than the host's, so that results which depend on them are seen.
  [[nodiscard]] DeviceLimits limits() const override {
    return {.streaming_bytes = 1 << 20,
            .kept_row_bytes = 256,
            .cheap_instructions = 3,
            .rows_of_vectors = 16};
  }
};

}  // namespace

bool use_test_device() {
  add_backend(*new FencedBackend);
  const char* const name = std::getenv("NITINOL_TEST_DEVICE");
  if (name == nullptr || *name == '\0') return true;
  const std::optional<Device> device = device_named(name);
  if (device) {
    set_default_device(*device);
    return true;
  }
  std::fprintf(stderr, "NITINOL_TEST_DEVICE: there is no device of the name %s\n", name);
  return false;
}

FencedCounts fenced_counts() {
  return queue().counts();
}

}  // namespace nitinol::test
