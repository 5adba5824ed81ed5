#include "backends/cuda/vendor/communicator.h"

#include "backends/cuda/runtime/gpu.h"
#include "core/error.h"
#include "core/interrupt.h"

#include <fmt/format.h>

#include <exception>
#include <thread>
#include <utility>

namespace nitinol::cuda {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Whether an event's work is done.
bool is_done(Gpu& gpu, Driver::Event event) {
  constexpr int not_ready = 600;
  const Entered entered = gpu.enter();
  const int result = driver().cuEventQuery(event);
  if (result == not_ready) return false;
  gpu.check(result, "looking at an event");
  return true;
}

}  // namespace

void copy_kept(const Gpu& gpu, const dist::Dealings& dealings, Driver::Stream stream) {
  if (dealings.kept == nullptr) return;
  gpu.check(
      driver().cuMemcpyDtoDAsync_v2(Driver::address_of(dealings.kept_to),
                                    Driver::address_of(dealings.kept), dealings.bytes, stream),
      "copying a rank's own part");
}

Communicator::Exchange::Exchange(Gpu& gpu, const dist::OnDevice& here)
    : gpu_(gpu), group_(here.group()), rank_(here.rank()), what_(here.text()) {
  gpu.check(driver().cuEventCreate(&done_, Driver::no_timing), "making an event");
}

Communicator::Exchange::~Exchange() {
  try {
    const Entered entered = gpu_.enter();
    driver().cuEventDestroy_v2(done_);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the device is lost, and its events with it
  }
}

void Communicator::Exchange::be_waited_for() const {
  const Entered entered = gpu_.enter();
  gpu_.check(driver().cuStreamWaitEvent(gpu_.stream(), done_, 0), "work after an exchange");
}

Communicator::Communicator(Gpu& gpu, const dist::OnDevice& here, const Nccl::Id& id) : gpu_(gpu) {
  const Entered entered = gpu_.enter();
  Nccl::Config config;
  settle(here, nccl().ncclCommInitRankConfig(&communicator_, here.size(), id, here.rank(), &config),
         "meeting by NCCL");
}

std::shared_ptr<const Communicator::Exchange> Communicator::begin(const dist::OnDevice& here,
                                                                  const dist::Dealings& dealings) {
  const Entered entered = gpu_.enter();
  const auto exchange = std::make_shared<Exchange>(gpu_, here);
  const Driver::Stream stream = gpu_.exchanges();
  const auto follow = [&](Driver::Stream later, Driver::Stream earlier) {
    gpu_.check(driver().cuEventRecord(exchange->done_, earlier), "recording an event");
    gpu_.check(driver().cuStreamWaitEvent(later, exchange->done_, 0), "an exchange after work");
  };
  follow(stream, gpu_.stream());
  try {
    copy_kept(gpu_, dealings, stream);
    ask(here, dealings);
    gpu_.check(driver().cuEventRecord(exchange->done_, stream), "recording an event");
  } catch (const std::exception& error) {
    // Some of it may go on, in memory that is now released, and others wait for the rest.
    cut_off(here.group(), error.what());
    throw;
  }
  const std::lock_guard lock(mutex_);
  on_their_way_.push_back(exchange);
  gpu_.add_exchanges(1);
  if (!std::exchange(is_watched_, true)) std::thread(&Communicator::watch, this).detach();
  has_changed_.notify_all();
  return exchange;
}

void Communicator::ask(const dist::OnDevice& here, const dist::Dealings& dealings) {
  const Driver::Stream stream = gpu_.exchanges();
  settle(here, nccl().ncclGroupStart(), "a group of messages");
  const char* failed = nullptr;
  int result = 0;
  const auto expect = [&](int status, const char* what) {
    if (status == 0 || status == Nccl::in_progress || failed != nullptr) return;
    result = status;
    failed = what;
  };
  for (const dist::Dealing& dealing : dealings.others) {
    if (dealing.out != nullptr)
      expect(nccl().ncclSend(dealing.out, dealings.bytes, Nccl::bytes, dealing.member,
                             communicator_, stream),
             "sending");
    if (dealing.in != nullptr)
      expect(nccl().ncclRecv(dealing.in, dealings.bytes, Nccl::bytes, dealing.member, communicator_,
                             stream),
             "receiving");
  }
  const int ended = nccl().ncclGroupEnd();
  if (failed != nullptr) settle(here, result, failed);
  settle(here, ended, "sending and receiving");
}

void Communicator::settle(const dist::OnDevice& here, int result, const char* what) const {
  const Clock::time_point begin = Clock::now();
  Clock::time_point asked = begin;
  while (result == Nccl::in_progress) {
    if (const int failed = nccl().ncclCommGetAsyncError(communicator_, &result); failed != 0)
      result = failed;
    if (result != Nccl::in_progress) break;
    if (Clock::now() - asked > interrupt_interval) {
      asked = Clock::now();
      try {
        check_interrupt();
      } catch (...) {
        dist::let_fail(here.group(),
                       fmt::format("{}: rank {} was interrupted", here.text(), here.rank()));
        throw;
      }
    }
    if (const std::string why = dist::failure_of(here.group()); !why.empty()) fail(here, why);
    if (seconds_since(begin) > dist::patience())
      fail(here, fmt::format("{} took longer than {:.0f} s", what, dist::patience()));
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (result != 0)
    fail(here,
         fmt::format("{} failed with {} ({})", what, result, nccl().ncclGetErrorString(result)));
}

void Communicator::fail(const dist::OnDevice& here, const std::string& why) const {
  std::string text = fmt::format("{}: by NCCL on cuda:{} of rank {}: {}", here.text(),
                                 gpu_.number(), here.rank(), why);
  dist::let_fail(here.group(), text);
  throw Error(ErrorKind::io, {.where = {}, .what = std::move(text)});
}

void Communicator::cut_off(int group, const std::string& why) {
  gpu_.cut_off(why);  // before what waits for the device goes on
  nccl().ncclCommAbort(communicator_);
  dist::let_fail(group, why);
}

std::string Communicator::trouble(const Exchange& exchange) const {
  if (std::string why = dist::failure_of(exchange.group_); !why.empty()) return why;
  int result = 0;
  if (const int asked = nccl().ncclCommGetAsyncError(communicator_, &result); asked != 0)
    result = asked;
  if (result != 0 && result != Nccl::in_progress)
    return fmt::format("NCCL failed in {} with {} ({})", exchange.what_, result,
                       nccl().ncclGetErrorString(result));
  if (gpu_.is_interrupted())
    return fmt::format("{} on cuda:{}: rank {} was interrupted", exchange.what_, gpu_.number(),
                       exchange.rank_);
  if (seconds_since(exchange.asked_) > dist::patience())
    return fmt::format("{} on cuda:{} has waited {:.0f} s for other ranks' GPUs", exchange.what_,
                       gpu_.number(), dist::patience());
  return {};
}

void Communicator::watch() {
  constexpr std::chrono::milliseconds pause(5);
  std::unique_lock lock(mutex_);
  while (true) {
    has_changed_.wait(lock, [this] { return !on_their_way_.empty(); });
    std::shared_ptr<const Exchange> first = on_their_way_.front();
    lock.unlock();
    std::string why;
    bool is_over = false;
    try {
      is_over = is_done(gpu_, first->done_);
      if (!is_over) why = trouble(*first);
    } catch (const Error& error) {  // the device is lost
      why = error.what();
    }
    lock.lock();
    if (is_over) {
      gpu_.add_exchanges(-1);
      on_their_way_.pop_front();
      has_changed_.notify_all();
    } else if (why.empty()) {
      has_changed_.wait_for(lock, pause);
    } else {
      cut_off(first->group_, why);
      gpu_.add_exchanges(-static_cast<int>(on_their_way_.size()));
      on_their_way_.clear();
      has_changed_.notify_all();
      return;
    }
  }
}

void Communicator::finish() {
  std::unique_lock lock(mutex_);
  has_changed_.wait(lock, [this] { return on_their_way_.empty(); });
}

}  // namespace nitinol::cuda
