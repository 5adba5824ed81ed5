// Communicator: what a GPU exchanges with those of other processes, by NCCL.
#pragma once

#include "backends/cuda/runtime/libraries.h"
#include "dist/collective.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace nitinol::cuda {

class Gpu;

/// Asks for the copy of what a member gives itself.
void copy_kept(const Gpu& gpu, const dist::Dealings& dealings, Driver::Stream stream);

/// One a group. NCCL waits on the device, and for ever, for a rank that does not come; so a thread
/// looks at what is on its way, and ends it when the group has failed or time is over. Any thread,
/// in an order that is the same on all ranks: the group's mutex is held. Never destroyed, as a rank
/// that has all cannot know whether the others have.
class Communicator {
 public:
  /// An exchange that the device has been asked for.
  class Exchange {
   public:
    Exchange(Gpu& gpu, const dist::OnDevice& here);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    ~Exchange();
    /// What is asked of the device from now on comes after it.
    void be_waited_for() const;

   private:
    friend class Communicator;
    Gpu& gpu_;
    const int group_, rank_;
    const std::string what_;
    const std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
    Driver::Event done_ = nullptr;
  };

  /// Meets the other ranks, which call it, too, with the first one's id. Throws Error(io).
  Communicator(Gpu& gpu, const dist::OnDevice& here, const Nccl::Id& id);

  /// Asks for it, behind all that the device was asked for before: dealings of some bytes with some
  /// others. Throws Error(io) if NCCL does not take it, and breaks the group.
  [[nodiscard]] std::shared_ptr<const Exchange> begin(const dist::OnDevice& here,
                                                      const dist::Dealings& dealings);
  /// Until nothing is on its way, or that has failed.
  void finish();

 private:
  void ask(const dist::OnDevice& here, const dist::Dealings& dealings);
  /// Waits while NCCL is at work on the host, and throws for what has failed.
  void settle(const dist::OnDevice& here, int result, const char* what) const;
  [[noreturn]] void fail(const dist::OnDevice& here, const std::string& why) const;
  /// Ends what is on its way: whoever waits for the device is told why.
  void cut_off(int group, const std::string& why);
  /// Why the exchange will have no end; empty if it may.
  [[nodiscard]] std::string trouble(const Exchange& exchange) const;
  void watch();

  Gpu& gpu_;
  Nccl::Communicator communicator_ = nullptr;
  std::mutex mutex_;  ///< of what follows
  std::condition_variable has_changed_;
  std::deque<std::shared_ptr<const Exchange>> on_their_way_;
  bool is_watched_ = false;
};

}  // namespace nitinol::cuda
