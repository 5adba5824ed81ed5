// A sample is as many calls as last 20 ms, so that neither the clock's resolution nor one interrupt
// decides it. The modes of a row take turns sample by sample, so that a change of the machine's
// speed in between falls on all of them. The median of 7 samples is the figure, the fastest is
// noted too.

#include "bench/timer.h"

#include "core/device.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

namespace nitinol::bench {

namespace {

double loop(const std::function<void()>& call, int64_t count) {
  const double start = now();
  for (int64_t i = 0; i < count; ++i) call();
  synchronize();
  return now() - start;
}

/// Calls it often enough, or for long enough: the 64th call of a compiled function, which is
/// recorded, costs as much as several others do, and would be one of a sample's few. Softmax of
/// 4096 x 1024 took 3.2 ms with it and 2.6 without.
void settle(const Mode& mode, double longest_s) {
  constexpr int least = 16;
  const double start = now();
  for (int i = 0; i < mode.calls_to_settle && (i < least || now() - start < longest_s); ++i)
    mode.call();
  synchronize();
}

/// Calls per sample, so that a sample lasts at least `sample_s`.
int64_t calibrate(const std::function<void()>& call, double sample_s) {
  loop(call, 1);
  for (int64_t count = 1;;) {
    const double seconds = loop(call, count);
    if (seconds >= sample_s) return count;
    const auto wanted =
        static_cast<int64_t>(static_cast<double>(count) * sample_s * 1.3 / std::max(seconds, 1e-9));
    count = std::max(count + 1, std::min(count * 10, wanted));
  }
}

/// Seconds of a 32 MiB copy: how fast the machine is just now, whatever ran.
double probe_copy() {
  constexpr std::size_t bytes = 32 << 20;
  static const std::unique_ptr<std::byte[]> from(new std::byte[bytes]()),
      to(new std::byte[bytes]());
  double best = 1e9;
  for (int i = 0; i < 4; ++i) {
    const double start = now();
    std::memcpy(to.get(), from.get(), bytes);
    best = std::min(best, now() - start);
  }
  return best;
}

constexpr std::string_view profiled = "-profiled", checked = "-checked";

/// Each mode, and the same while a Profile is open, or while NaN is looked for.
std::vector<Mode> with_twins(const std::vector<Mode>& modes, const Options& options) {
  std::vector<Mode> all;
  for (const Mode& mode : modes) {
    all.push_back(mode);
    if (options.is_profiled) {
      all.push_back(mode);
      all.back().name += profiled;
    }
    if (options.is_checked) {
      all.push_back(mode);
      all.back().name += checked;
      all.back().call = [call = mode.call] {
        const ResultCheckScope scope(ResultCheck::nan);
        call();
      };
    }
  }
  return all;
}

std::optional<Profile> profile_for(const Mode& mode) {
  return mode.name.ends_with(profiled) ? std::optional<Profile>(std::in_place) : std::nullopt;
}

/// What is known of one mode while its row is timed.
struct Timed {
  double first_call_s = 0;
  int64_t inner = 1;
  std::vector<double> samples = {};
};

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

void pin_to_cores(int count) {
  cpu_set_t all, few;
  CPU_ZERO(&few);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  for (std::size_t core = 0, taken = 0;
       core < CPU_SETSIZE && taken < static_cast<std::size_t>(count); ++core) {
    if (!CPU_ISSET(core, &all)) continue;
    CPU_SET(core, &few);
    ++taken;
  }
  sched_setaffinity(0, sizeof few, &few);
}

void Timer::time(const std::string& row, const Work& work, const std::vector<Mode>& given,
                 const std::string& notes) {
  if (!wants(row)) return;
  // A device's time is dear.
  const int repeats = options_.is_quick ? 2 : clock_ != nullptr ? 5 : 7;
  const double sample_s = options_.is_quick ? 0.001 : clock_ != nullptr ? 0.01 : 0.02;
  const Quiet quiet;
  const std::vector<Mode> modes = with_twins(given, options_);
  std::vector<Timed> timed;
  for (const Mode& mode : modes) {
    Timed t{.first_call_s = loop(mode.call, 1)};
    settle(mode, options_.is_quick ? 0 : clock_ != nullptr ? 0.2 : 0.5);
    t.inner = calibrate(mode.call, sample_s);
    timed.push_back(std::move(t));
  }
  for (int sample = 0; sample < repeats; ++sample) {
    for (std::size_t i = 0; i < modes.size(); ++i) {
      const std::optional<Profile> profile = profile_for(modes[i]);
      timed[i].samples.push_back(loop(modes[i].call, timed[i].inner) /
                                 static_cast<double>(timed[i].inner));
    }
  }
  const auto probe = clock_ != nullptr ? std::nullopt : std::optional(probe_copy());
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const auto apart = clock_ != nullptr
                           ? std::optional(clock_->time(modes[i].call, timed[i].inner))
                           : std::nullopt;
    emit({.workload = row,
          .mode = modes[i].name,
          .threads = threads(),
          .median_s = median_of(timed[i].samples),
          .min_s = *std::min_element(timed[i].samples.begin(), timed[i].samples.end()),
          .repeats = repeats,
          .inner = timed[i].inner,
          .first_call_s = timed[i].first_call_s,
          .check = modes[i].check ? std::optional(modes[i].check()) : std::nullopt,
          .bound_s = limits_.bound(work),
          .probe_copy_s = probe,
          .host_s = apart ? std::optional(apart->host_s) : std::nullopt,
          .device_s = apart ? std::optional(apart->device_s) : std::nullopt,
          .notes = notes});
  }
}

std::size_t Timer::sets(double bytes) const {
  constexpr double four_caches = 4 * 50e6;  // of an H100's or H200's
  constexpr double most = 64;
  if (clock_ == nullptr || options_.is_quick || bytes <= 0) return 1;
  return static_cast<std::size_t>(std::clamp(std::ceil(four_caches / bytes), 1.0, most));
}

void Timer::emit(const Row& row) const {
  fmt::print("{}\n", to_json(row).dump());
  std::fflush(stdout);
}

Quiet::Quiet() {
  const char* const path = std::getenv("PEERS_LOCK");
  if (path == nullptr) return;
  file_ = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ >= 0) flock(file_, LOCK_EX);
}

Quiet::~Quiet() {
  if (file_ >= 0) close(file_);
}

}  // namespace nitinol::bench
