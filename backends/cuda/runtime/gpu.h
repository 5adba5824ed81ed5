// Gpu: one device by the driver's functions: its context, its streams, its memory.
#pragma once

#include "backends/cuda/runtime/gpu_memory.h"
#include "backends/cuda/runtime/libraries.h"
#include "backends/cuda/runtime/staging.h"
#include "backends/cuda/runtime/status_words.h"
#include "core/fork.h"
#include "core/function_ref.h"
#include "core/launch.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::cuda {

inline constexpr std::string_view does_not_survive_fork =
    "CUDA does not survive fork(): the child of a process that has used a GPU, or asked for "
    "devices(), cannot use one";

/// What a GPU is.
struct Properties {
  std::string name;
  int architecture = 0;  ///< 90 for compute capability 9.0
  std::size_t total_bytes = 0;
  Driver::Uuid uuid = {};  ///< no other GPU has it
};
/// Asks the driver, and makes no context. Throws Error(device).
[[nodiscard]] Properties properties_of(int number);

/// While it lives, a device's context is the thread's; then the one that the caller had, if any.
class Entered {
 public:
  Entered(const Driver& driver, Driver::Context before) : driver_(driver), before_(before) {}
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  ~Entered() {
    if (before_ != nullptr) driver_.cuCtxSetCurrent(before_);
  }

 private:
  const Driver& driver_;
  const Driver::Context before_;  ///< null: it stays
};

/// All work of a device goes to one stream in the order in which it is asked for, so that a block
/// of memory may be reused as soon as it is released. Large copies from the host go to a second
/// one, beside the work that was asked for before; what is asked for afterwards waits for them. Any
/// thread. Never destroyed.
class Gpu {
 public:
  /// Retains the primary context, which other libraries of the process share. Throws Error(device).
  Gpu(int number, Backend& owner);

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] const Properties& properties() const { return properties_; }
  /// Most bytes of a launch's arguments.
  [[nodiscard]] std::size_t most_argument_bytes() const { return most_argument_bytes_; }

  /// Throws Error(device) if the device is lost, and in the child of a fork.
  void expect_usable() const;
  /// The same, and makes the context the calling thread's. Lives around every use of the driver.
  [[nodiscard]] Entered enter() const;
  /// Throws Error(device) with the driver's words for a result that is not 0; what no later call
  /// survives makes the device lost.
  void check(int result, const char* what) const;
  /// The same of a call that has waited. Throws Error(io), too, if work was cut off, since what is
  /// in memory then may be anything.
  void check_wait(int result, const char* what) const;
  /// Work that waited for another process has been ended before it was done: `why` is what all who
  /// wait from now on are told.
  void cut_off(const std::string& why);
  /// While there are some, the device may wait for other processes, and so may whoever waits for
  /// it.
  void add_exchanges(int more) { exchanges_underway_ += more; }
  /// Before a thread waits: if there are some, until they are done, or throws what
  /// check_interrupt() throws. Then is_interrupted() holds, by which who has asked for them ends
  /// them, until they have come to their ends.
  void await_exchanges();
  /// Waits for an event, and as await_exchanges() does if others have to be waited for.
  void await(Driver::Event event, const char* what);
  [[nodiscard]] bool is_interrupted() const { return is_interrupted_; }
  /// For a library that has failed: throws Error(device) if the device is lost, with the launches
  /// it was lost in. Waits for all that was asked for.
  void expect_alive() const;

  [[nodiscard]] Driver::Stream stream() const { return stream_; }
  /// The stream of what goes to other processes, made when it is first needed.
  [[nodiscard]] Driver::Stream exchanges();
  [[nodiscard]] GpuMemory& memory() { return memory_; }

  /// A large one goes beside what was asked for before, but for what uses its memory.
  void upload(const void* from, void* to, std::size_t bytes);
  /// The same of what `write` puts into pinned memory; false, and nothing done, if there is none
  /// for so many bytes.
  bool upload_written(void* to, std::size_t bytes, FunctionRef<void(std::span<std::byte>)> write);
  /// Behind what was asked of both devices; none of them is waited for.
  void copy_from(Gpu& source, const void* from, void* to, std::size_t bytes);
  void download(const void* from, void* to, std::size_t bytes);
  void fill(void* to, uint64_t bits, std::size_t element_bytes, std::size_t count);
  /// Waits until all that was asked for is done.
  void wait();

  /// One function, by blocks of `threads` threads. `label`: what a lost device is told by.
  void launch(Driver::Function function, uint32_t blocks, uint32_t threads,
              std::span<const std::byte> arguments,
              const std::shared_ptr<const std::string>& label);
  /// What a library puts on the stream that `call` is given, for which it has `operands`; returns
  /// what `call` returns, 0 for success.
  int launch(FunctionRef<int(Driver::Stream)> call, const std::array<void*, 3>& operands,
             const std::shared_ptr<const std::string>& label);
  /// Notes work that has been put on the stream.
  void note(const std::shared_ptr<const std::string>& label);

  [[nodiscard]] StatusWords& status_words() { return status_words_; }

  /// To be held from the first to the last launch of those that share the workspace, or expect
  /// counters to be as they left them.
  [[nodiscard]] ForkSafeMutex& order() { return order_; }
  /// workspace_bytes of any content for whoever launches; the next launch overwrites it.
  [[nodiscard]] void* workspace();
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
  /// Words that are 0 whenever no launch runs; the same ones for all, as one launch runs at a time.
  [[nodiscard]] uint32_t* counters(std::size_t count);
  /// Memory for launches that are asked for while it is held.
  [[nodiscard]] StorageHandle scratch(std::size_t bytes);

  /// The stream for captures, made when it is first needed; nothing else is put on it. order() is
  /// held.
  [[nodiscard]] Driver::Stream captures();
  /// Of a budget of bytes that graphs hold in the device's memory; false if it has no more.
  [[nodiscard]] bool take_for_graphs(std::size_t bytes);
  void give_back_to_graphs(std::size_t bytes);

 private:
  /// By the stream that an upload of so many bytes goes, behind the last use of its memory.
  void upload_by(void* to, std::size_t bytes, FunctionRef<void(Driver::Stream)> copy);
  [[nodiscard]] Driver::Stream made(Driver::Stream& stream, const char* what);
  /// The stream of large copies, made when it is first needed.
  [[nodiscard]] Driver::Stream copies();
  void fill_now(void* to, uint64_t bits, std::size_t element_bytes, std::size_t count);
  void wait_for(Driver::Event event, Driver::Stream stream, const char* what) const;
  /// Lets this device's copies read the other one's memory, if the machine has a way.
  void reach(const Gpu& other);
  /// An event behind all that was asked for; the device's own, which the next call records again.
  [[nodiscard]] Driver::Event mark();
  [[noreturn]] void lose(const std::string& what) const;
  [[nodiscard]] std::string latest_labels() const;

  const Driver& driver_;
  const int number_;
  const Properties properties_;
  std::size_t most_argument_bytes_ = 0;
  Driver::Context context_ = nullptr;
  Driver::Stream stream_ = nullptr, copies_ = nullptr, exchanges_ = nullptr, captures_ = nullptr;
  Driver::Event mark_ = nullptr;
  std::set<int> reached_;
  GpuMemory memory_;
  std::unique_ptr<Staging> staging_;
  StatusWords status_words_{*this};

  std::atomic<std::size_t> graph_bytes_ = 0;

  ForkSafeMutex order_;
  mutable ForkSafeMutex mutex_;  ///< of what follows
  uint64_t asked_ = 0, done_ = 0;
  StorageHandle workspace_, counters_;
  std::size_t counter_count_ = 0;
  static constexpr std::size_t label_count = 16;
  std::array<std::shared_ptr<const std::string>, label_count> labels_;  ///< of the latest work
  mutable std::string lost_;  ///< why the device cannot be used any more
  mutable std::atomic<bool> is_lost_ = false;
  std::string cut_off_;  ///< why what is in memory may be anything
  std::atomic<bool> is_cut_off_ = false;
  std::atomic<int> exchanges_underway_ = 0;
  std::atomic<bool> is_interrupted_ = false;
};

}  // namespace nitinol::cuda
