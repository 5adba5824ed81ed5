// Backend: all that the library asks of a device.
#pragma once

#include "core/device.h"
#include "core/device_limits.h"
#include "core/device_mark.h"
#include "core/device_rates.h"
#include "core/executable.h"
#include "core/function_ref.h"
#include "core/memory.h"
#include "core/sequence.h"
#include "core/storage.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace nitinol {

struct Kernel;
struct LibraryCall;
/// One unit of device work: a generated kernel, or a call that the backend knows by name. Who makes
/// one includes both, core/kernel.h and core/library.h.
using Step = std::variant<Kernel, LibraryCall>;

/// What a Plan launches: see Executable::specialise().
struct Expected {
  const Executable* executable = nullptr;
  std::vector<Launch> examples;
  std::unique_ptr<const Executable> specialised;  ///< what that has returned
};

/// All that the library asks of a device; a new device implements this and nothing else. Never
/// destroyed; any thread may call any function.
///
/// Launches, uploads, copies and fills take effect in the order in which they were asked for, but
/// perhaps later (is_asynchronous()): only download() and synchronize() wait. A block that is
/// released may be handed out again at once, since what uses it next comes later in that order.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual Device device() const = 0;
  /// What devices() says of it.
  [[nodiscard]] virtual std::string description() const = 0;

  // ---- memory

  /// At least `bytes` of 64-byte aligned memory. Throws Error(value) when the budget or the machine
  /// is exhausted.
  virtual StorageHandle allocate(std::size_t bytes) = 0;
  /// As allocate(), for what an upload() fills before anything else uses it: that has less to wait
  /// for.
  virtual StorageHandle allocate_for_upload(std::size_t bytes) { return allocate(bytes); }
  /// Whether the device's memory is the host's, so that tensors in it have Storage::backend null.
  [[nodiscard]] virtual bool is_host_memory() const { return false; }
  /// From the host's memory to the device's. `from` may be reused on return.
  virtual void upload(const void* from, void* to, std::size_t bytes) = 0;
  /// The same of what `write` puts into memory of the host's, which is the device's to copy from at
  /// best. `write` is called once.
  virtual void upload_written(void* to, std::size_t bytes,
                              FunctionRef<void(std::span<std::byte>)> write);
  /// From the device's memory to the host's, when what was asked for earlier has been done. Throws
  /// what a launch among that has failed with.
  virtual void download(const void* from, void* to, std::size_t bytes) = 0;
  /// From another device's memory to this one's, after what was asked of both. False, and nothing
  /// done, if it has to go through the host.
  virtual bool copy_from(Backend& /*source*/, const void* /*from*/, void* /*to*/,
                         std::size_t /*bytes*/) {
    return false;
  }
  /// `count` elements of `element_bytes` each (1, 2, 4 or 8), the low bytes of `bits`.
  virtual void fill(void* to, uint64_t bits, std::size_t element_bytes, std::size_t count) = 0;
  virtual MemoryStatistics memory() = 0;
  /// Most bytes that may be in use and cached; 0 lifts the limit.
  virtual void set_memory_budget(std::size_t bytes) = 0;
  /// Gives cached blocks back to the system.
  virtual void release_cached_memory() = 0;
  /// Lets the peak of memory() begin anew at what is in use.
  virtual void reset_peak_memory() = 0;

  // ---- work

  /// Generates code or creates a vendor handle. Slow: callers keep the result (core/executables.h).
  /// Throws Error(unsupported) if the device cannot run the step, Error(compile) if codegen fails.
  virtual std::unique_ptr<Executable> prepare(const Step& step) = 0;
  /// Executable::specialise() for all that a Plan launches, at once: what is compiled for them may
  /// be compiled together.
  virtual void specialise(std::span<Expected> plan) {
    for (Expected& each : plan) each.specialised = each.executable->specialise(each.examples);
  }
  /// Whether record() may give a Sequence.
  [[nodiscard]] virtual bool can_record() const { return false; }
  /// Notes what `launch` launches on this thread when it is called with 0, 1, ..., `parts` - 1, and
  /// does none of it. All of it must have been launched before. Throws Error(unsupported), with the
  /// reason, if it cannot be noted, and what failed.
  [[nodiscard]] virtual std::unique_ptr<Sequence> record(
      std::size_t /*parts*/, FunctionRef<void(std::size_t part)> /*launch*/) {
    return nullptr;
  }
  /// Bytes of operand b of this matmul as LibraryCall::Kind::pack writes it, if it is faster to
  /// pack it once and run `uses` such products as packed_matmul, and no bit changes by that; else
  /// 0. The same of the weight of a conv2d, for pack_filter and packed_conv2d. May prepare these
  /// calls.
  [[nodiscard]] virtual std::size_t packed_bytes(const LibraryCall& /*product*/,
                                                 std::size_t /*uses*/) {
    return 0;
  }
  /// Whether this conv2d or window_max, whose result has fewer rows or columns than its windows
  /// give, gives the bits that these have in the whole result. May prepare the call.
  [[nodiscard]] virtual bool computes_part(const LibraryCall& /*call*/) { return false; }
  /// Whether launches may run after Executable::launch has returned.
  [[nodiscard]] virtual bool is_asynchronous() const { return false; }
  /// The address, for launches on an asynchronous device, of a word that is `ok`, or what earlier
  /// launches leave in the word `after`. The word is the device's: the host reads it by
  /// read_status() or post_status(). (StatusWord, DeferredCheck)
  virtual Status* take_status(const Status* /*after*/) { return nullptr; }
  /// What earlier launches leave in the word `from` is in `to` for those that come later.
  virtual void copy_status(const Status* /*from*/, Status* /*to*/) {}
  /// Brings to the host what the launches asked for so far will leave in a word.
  virtual std::unique_ptr<PostedStatus> post_status(const Status* /*status*/) { return nullptr; }
  /// What launches have left in a word, when all that was asked for has been done.
  virtual Status::Code read_status(const Status* /*status*/) { return Status::ok; }
  /// For a word that no launch will be asked to write any more; `is_ok`: nobody has written it.
  virtual void give_status(Status* /*status*/, bool /*is_ok*/) {}
  /// Marks where the device will have done all that was asked for so far; null unless
  /// is_asynchronous().
  virtual std::unique_ptr<DeviceMark> mark() { return nullptr; }
  /// Waits for all launches and rethrows the first failure among them.
  virtual void synchronize() = 0;
  /// False if prepare() on a fused Kernel interprets instead of generating code.
  [[nodiscard]] virtual bool can_generate_code() = 0;
  [[nodiscard]] virtual DeviceLimits limits() const { return {}; }
  /// What it does at most when so many threads of the host compute; empty if that is not known. May
  /// have to measure it, which takes a fraction of a second.
  [[nodiscard]] virtual DeviceRates rates(int /*threads*/) { return {}; }
};

/// The word that the checks of some launches write. On an asynchronous device it lies in the
/// device's memory, which kernels read before anything else.
class StatusWord {
 public:
  /// `backend`: where they run; null if they check nothing.
  explicit StatusWord(Backend* backend)
      : backend_(backend != nullptr && backend->is_asynchronous() ? backend : nullptr),
        word_(backend_ != nullptr ? backend_->take_status(nullptr) : &own_) {}
  StatusWord(const StatusWord&) = delete;
  StatusWord& operator=(const StatusWord&) = delete;
  ~StatusWord() {
    if (backend_ != nullptr) backend_->give_status(word_, is_ok_);
  }
  /// For Launch::status.
  [[nodiscard]] Status* get() const { return word_; }
  /// Waits for the launches. To be asked when all of them are asked for.
  [[nodiscard]] bool has_failed() {
    if (backend_ == nullptr) return word_->code.load(std::memory_order_acquire) != Status::ok;
    is_ok_ = backend_->read_status(word_) == Status::ok;
    return !is_ok_;
  }

 private:
  Backend* const backend_;  ///< null unless it is asynchronous
  Status own_;
  Status* const word_;
  bool is_ok_ = false;  ///< known to be
};

/// The backend of a device. Throws Error(device), with the reason, if it cannot be used.
/// (backends/backends.cpp)
[[nodiscard]] Backend& backend(Device device);

/// Makes a device known whose backend is not the library's own. There must be none of its name.
/// (backends/backends.cpp)
void add_backend(Backend& backend);

}  // namespace nitinol
