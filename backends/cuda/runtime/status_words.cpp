#include "backends/cuda/runtime/status_words.h"

#include "backends/cuda/runtime/gpu.h"
#include "core/error.h"

#include <new>
#include <utility>

namespace nitinol::cuda {
namespace {

constexpr std::size_t status_block_bytes = 4096;
constexpr uint32_t on_its_way = ~uint32_t{0};  // no Status::Code

}  // namespace

/// Gives its word of pinned memory back.
class StatusWords::Posted final : public PostedStatus {
 public:
  Posted(StatusWords& words, Arrival arrival) : words_(words), arrival_(arrival) {}
  Posted(const Posted&) = delete;
  Posted& operator=(const Posted&) = delete;
  ~Posted() override {
    if (!is_there()) driver().cuEventSynchronize(arrival_.copied);
    words_.give(arrival_);
  }

  [[nodiscard]] bool is_there() override {
    return arrival_.word->load(std::memory_order_acquire) != on_its_way;
  }
  Status::Code wait() override {
    if (!is_there()) words_.gpu_.await(arrival_.copied, "waiting for checks");
    return static_cast<Status::Code>(arrival_.word->load(std::memory_order_acquire));
  }

 private:
  StatusWords& words_;
  const Arrival arrival_;
};

void StatusWords::add_words() {
  constexpr std::size_t count = status_block_bytes / sizeof(Status);
  StorageHandle block = gpu_.memory().allocate(status_block_bytes);
  gpu_.fill(block->data, 0, sizeof(uint32_t), count);
  auto* const words = static_cast<Status*>(block->data);  // addresses of the device's
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < count; ++i) words_.push_back(words + i);
  blocks_.push_back(std::move(block));
}

Status* StatusWords::take_any() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (!words_.empty()) {
        Status* const status = words_.back();
        words_.pop_back();
        return status;
      }
    }
    add_words();
  }
}

Status* StatusWords::take(const Status* after) {
  Status* const status = take_any();
  if (after == nullptr) return status;
  try {
    copy(after, status);
  } catch (...) {
    give(status, false);
    throw;
  }
  return status;
}

void StatusWords::copy(const Status* from, Status* to) {
  const Entered entered = gpu_.enter();
  gpu_.check(driver().cuMemcpyDtoDAsync_v2(Driver::address_of(to), Driver::address_of(from),
                                           sizeof(Status), gpu_.stream()),
             "copying a word of checks");
}

Status::Code StatusWords::read(const Status* status) {
  uint32_t code = 0;
  gpu_.download(status, &code, sizeof(code));
  return static_cast<Status::Code>(code);
}

std::unique_ptr<PostedStatus> StatusWords::post(const Status* status) {
  const Entered entered = gpu_.enter();
  const Arrival arrival = take_arrival();
  arrival.word->store(on_its_way, std::memory_order_relaxed);
  int result = driver().cuMemcpyDtoHAsync_v2(arrival.word, Driver::address_of(status),
                                             sizeof(Status), gpu_.stream());
  if (result == 0) {
    result = driver().cuEventRecord(arrival.copied, gpu_.stream());
    if (result != 0) driver().cuStreamSynchronize(gpu_.stream());
  }
  if (result != 0) {
    give(arrival);
    gpu_.check(result, "asking for a word of checks");
  }
  return std::make_unique<Posted>(*this, arrival);
}

void StatusWords::give(Status* status, bool is_ok) {
  // Who gets the word next is later on the stream than this, and than all that writes it now.
  try {
    if (!is_ok) gpu_.fill(status, Status::ok, sizeof(uint32_t), 1);
  } catch (const Error&) {
    return;  // a lost device has no words
  }
  const std::lock_guard lock(mutex_);
  words_.push_back(status);
}

StatusWords::Arrival StatusWords::take_arrival() {
  const std::lock_guard lock(mutex_);
  if (!arrivals_.empty()) {
    const Arrival arrival = arrivals_.back();
    arrivals_.pop_back();
    return arrival;
  }
  if (unused_.empty()) {
    void* memory = nullptr;
    gpu_.check(driver().cuMemHostAlloc(&memory, status_block_bytes, Driver::portable_and_mapped),
               "pinning memory");
    auto* const words = static_cast<std::atomic<uint32_t>*>(memory);
    for (std::size_t i = 0; i < status_block_bytes / sizeof(uint32_t); ++i)
      unused_.push_back(::new (words + i) std::atomic<uint32_t>(0));
  }
  Arrival arrival;
  gpu_.check(driver().cuEventCreate(&arrival.copied, Driver::no_timing), "making an event");
  arrival.word = unused_.back();
  unused_.pop_back();
  return arrival;
}

void StatusWords::give(Arrival arrival) {
  const std::lock_guard lock(mutex_);
  arrivals_.push_back(arrival);
}

}  // namespace nitinol::cuda
