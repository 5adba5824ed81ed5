// The words that the checks of launches write, in the device's memory, and their way to the host.
#pragma once

#include "backends/cuda/runtime/libraries.h"
#include "core/fork.h"
#include "core/launch.h"
#include "core/storage.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace nitinol::cuda {

class Gpu;

/// What Backend promises of take_status() and its like. Any thread.
class StatusWords {
 public:
  explicit StatusWords(Gpu& gpu) : gpu_(gpu) {}
  StatusWords(const StatusWords&) = delete;
  StatusWords& operator=(const StatusWords&) = delete;

  [[nodiscard]] Status* take(const Status* after);
  void copy(const Status* from, Status* to);
  [[nodiscard]] Status::Code read(const Status* status);
  [[nodiscard]] std::unique_ptr<PostedStatus> post(const Status* status);
  void give(Status* status, bool is_ok);

 private:
  class Posted;
  /// A word of pinned memory that one post() at a time is copied to, and the event behind the copy.
  struct Arrival {
    std::atomic<uint32_t>* word = nullptr;
    Driver::Event copied = nullptr;
  };

  [[nodiscard]] Status* take_any();
  void add_words();
  [[nodiscard]] Arrival take_arrival();
  void give(Arrival arrival);

  Gpu& gpu_;
  ForkSafeMutex mutex_;         ///< of what follows
  std::vector<Status*> words_;  ///< `ok` when the stream gets to what is asked for next
  std::vector<StorageHandle> blocks_;
  std::vector<Arrival> arrivals_;               ///< that no copy is on its way to
  std::vector<std::atomic<uint32_t>*> unused_;  ///< pinned words without an event
};

}  // namespace nitinol::cuda
