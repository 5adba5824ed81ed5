#include "dist/background.h"

#include "core/interrupt.h"

#include <sys/prctl.h>
#include <thread>
#include <utility>

namespace nitinol::dist {

void Background::pause(std::chrono::microseconds longest) {
  std::unique_lock lock(queue_->mutex);
  queue_->has_changed.wait_for(lock, longest, [this] { return is_awaited(); });
}

void Background::wait_for(Job& job, FunctionRef<void()> interrupted) {
  {
    const std::lock_guard lock(queue_->mutex);
    awaited_.fetch_add(1, std::memory_order_relaxed);
    queue_->has_changed.notify_all();
  }
  const auto is_done = [&job] { return job.is_done_; };
  std::exception_ptr interrupt;
  std::unique_lock lock(job.mutex_);
  while (!job.has_ended_.wait_for(lock, interrupt_interval, is_done)) {
    if (interrupt) continue;
    lock.unlock();
    try {
      check_interrupt();
    } catch (...) {
      interrupt = std::current_exception();
      interrupted();
    }
    lock.lock();
  }
  lock.unlock();
  awaited_.fetch_sub(1, std::memory_order_relaxed);
  if (interrupt) std::rethrow_exception(interrupt);
  if (job.failure_) std::rethrow_exception(job.failure_);
}

Background::~Background() {
  const std::lock_guard lock(queue_->mutex);
  queue_->is_over = true;
  queue_->has_changed.notify_all();
}

std::shared_ptr<Background::Job> Background::add(std::function<void()> work) {
  auto job = std::make_shared<Job>(std::move(work));
  const std::lock_guard lock(queue_->mutex);
  queue_->jobs.push_back(job);
  if (!std::exchange(queue_->is_running, true)) std::thread(run, queue_).detach();
  queue_->has_changed.notify_all();
  return job;
}

void Background::wait_until_idle() {
  std::unique_lock lock(queue_->mutex);
  if (queue_->jobs.empty()) return;
  awaited_.fetch_add(1, std::memory_order_relaxed);
  queue_->has_changed.notify_all();
  queue_->has_changed.wait(lock, [this] { return queue_->jobs.empty(); });
  awaited_.fetch_sub(1, std::memory_order_relaxed);
}

void Background::run(const std::shared_ptr<Queue>& queue) {
  // Linux lets a thread that sleeps for a few microseconds sleep fifty more, in which a link idles.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  prctl(PR_SET_NAME, "nitinol dist");  // as tools that list threads show it
  std::unique_lock lock(queue->mutex);
  while (true) {
    queue->has_changed.wait(lock, [&] { return queue->is_over || !queue->jobs.empty(); });
    if (queue->jobs.empty()) return;
    const std::shared_ptr<Job> job = queue->jobs.front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      job->work_();
    } catch (...) {
      failure = std::current_exception();
    }
    job->work_ = {};
    lock.lock();
    queue->jobs.pop_front();
    queue->has_changed.notify_all();
    const std::lock_guard done(job->mutex_);
    job->failure_ = std::move(failure);
    job->is_done_ = true;
    job->has_ended_.notify_all();
  }
}

}  // namespace nitinol::dist
