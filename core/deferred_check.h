// DeferredCheck: what a call that has returned may yet be found to have failed at.
//
// On an asynchronous device a call with checks (core/op.h) does not wait to know what they say.
// What it has made is marked as its own until somebody knows: tensors by their Storage, Variables
// by their cell. Whoever would look at such memory settles the mark first, which waits, and throws
// what the call has failed with. A later call that can be held back by the same word follows it
// instead: its own word begins as what the earlier call leaves in its one, so that it, too, changes
// nothing if that has failed.
#pragma once

#include "core/error.h"
#include "core/launch.h"
#include "core/tensor.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>

namespace nitinol {

/// The check of one call. Any thread.
class DeferredCheck : public Counted {
 public:
  enum class State : uint8_t { open, passed, failed };

  /// Of launches on `device`, which is asynchronous; null or a call that this one follows.
  DeferredCheck(Backend& device, Handle<DeferredCheck> followed);
  virtual ~DeferredCheck();
  DeferredCheck(const DeferredCheck&) = delete;
  DeferredCheck& operator=(const DeferredCheck&) = delete;

  [[nodiscard]] Backend& device() const { return device_; }
  /// For Launch::status.
  [[nodiscard]] Status* word() const { return word_; }
  /// What is known without waiting, since the last look().
  [[nodiscard]] State state() const { return state_.load(std::memory_order_acquire); }
  /// Whether it is known to have failed, and the thread that made the call has not been told.
  [[nodiscard]] bool is_untold() const;
  /// The same for this thread.
  [[nodiscard]] bool is_news() const {
    return is_untold() && thread_ == std::this_thread::get_id();
  }

  /// Asks for what the word will hold when all launches asked for so far are done. Once.
  void post();
  /// Makes the call known to look() and synchronize(), when all that it has changed is marked and
  /// can be given back. Once, after post().
  void enlist();
  /// Finds the state of all calls that are done. What has failed is discarded, with all that
  /// follows it, for which this waits.
  static void look();
  /// Waits until the state is known. No cell may be locked.
  void wait();
  /// wait(), and throws the call's error if it has failed.
  void expect();
  /// Throws the error of a call that has failed, and notes that the thread that made it knows, or
  /// made the one which it follows.
  [[noreturn]] void tell();
  /// Of these, which are open: the one that follows all others; null if there is none.
  [[nodiscard]] static Handle<DeferredCheck> last_of(std::span<const Handle<DeferredCheck>> checks);
  /// For synchronize(): waits for all calls on `device`, and tells the first that failed and that
  /// nobody has been told of.
  static void expect_all(const Backend& device);

 protected:
  /// Gives back what the call has changed. `cause`: the call that failed, this or one that it
  /// follows. When all launches are done, by one thread at a time.
  virtual void discard() noexcept = 0;
  /// The error of the call, which has failed by itself. `followed_by`: how many calls were
  /// discarded with it.
  [[nodiscard]] virtual Error error(Status::Code code, int followed_by) = 0;
  /// The call has not failed, or all is given back and told: what was kept for that can go.
  virtual void let_go() noexcept = 0;
  /// Of a call that has failed: by itself, not because it follows one that has.
  [[nodiscard]] bool is_cause() const { return !cause_; }

 private:
  [[nodiscard]] bool follows_failure() const {
    return followed_ && followed_->state() == State::failed;
  }

  Backend& device_;
  const std::thread::id thread_ = std::this_thread::get_id();
  Handle<DeferredCheck> followed_;  ///< until the state is known
  Handle<DeferredCheck> cause_;     ///< of a failure; null: the call itself
  Status* const word_;
  std::unique_ptr<PostedStatus> posted_;
  std::atomic<State> state_ = State::open;
  std::atomic<bool> is_told_ = false;
  int discarded_with_ = 0;  ///< calls that followed it when it failed
  std::shared_ptr<const Error> error_;
};

void destroy(DeferredCheck* check);

/// Marks what a call fills.
void mark(std::span<Storage* const> filled, DeferredCheck& check);
/// The call that fills it and may have failed, or null.
[[nodiscard]] Handle<DeferredCheck> check_of(const Storage& storage);
/// The same of a tensor's memory; null if it has none, or is undefined.
[[nodiscard]] Handle<DeferredCheck> check_of(const Tensor& tensor);
/// Changes the mark from that of one call to that of another, or none; null if another one has it.
void replace_mark(Storage& storage, const DeferredCheck& from, DeferredCheck* to);

}  // namespace nitinol
