#include "dist/background.h"

#include <thread>
#include <utility>

namespace nitinol::dist {

void Background::Job::wait() {
  std::unique_lock lock(mutex_);
  has_ended_.wait(lock, [this] { return is_done_; });
  if (failure_) std::rethrow_exception(failure_);
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
  queue_->has_changed.wait(lock, [this] { return queue_->jobs.empty(); });
}

void Background::run(const std::shared_ptr<Queue>& queue) {
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
