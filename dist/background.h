// Background: a thread on which a group's collectives go on while others compute.
#pragma once

#include "core/function_ref.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace nitinol::dist {

/// Runs jobs one after the other. Its thread begins with the first and ends with it.
class Background {
 public:
  /// A job and what has become of it.
  class Job {
   public:
    explicit Job(std::function<void()> work) : work_(std::move(work)) {}

   private:
    friend class Background;
    std::function<void()> work_;
    std::mutex mutex_;
    std::condition_variable has_ended_;
    bool is_done_ = false;
    std::exception_ptr failure_;
  };

  Background() : queue_(std::make_shared<Queue>()) {}
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();

  [[nodiscard]] std::shared_ptr<Job> add(std::function<void()> work);
  /// Until one of its jobs has been done. Throws what that has thrown. Where check_interrupt()
  /// throws meanwhile, calls `interrupted`, which has the job end, and passes that on.
  void wait_for(Job& job, FunctionRef<void()> interrupted);
  /// Whether somebody does nothing but wait.
  [[nodiscard]] bool is_awaited() const { return awaited_.load(std::memory_order_relaxed) > 0; }
  /// For a job: sleeps so long, or until somebody does nothing but wait.
  void pause(std::chrono::microseconds longest);
  /// Until there is no job any more.
  void wait_until_idle();

 private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable has_changed;
    std::deque<std::shared_ptr<Job>> jobs;  ///< the first is being run
    bool is_running = false, is_over = false;
  };
  static void run(const std::shared_ptr<Queue>& queue);

  /// The thread's, too, which may outlive the group: its last job may hold that.
  std::shared_ptr<Queue> queue_;
  std::atomic<int> awaited_ = 0;
};

}  // namespace nitinol::dist
