// The pool is that of libgomp, because oneDNN uses it too: two pools fight for the CPUs, which
// costs more than a serial loop. Two things need care. A process that forks after its pool exists
// would wait forever in the child, so children compute alone. And libgomp looks like a race to the
// thread sanitizer, so under it (NITINOL_STD_THREADS) threads are started for each call instead.

#include "core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#  include <immintrin.h>
#endif

#include "core/environment.h"
#include "core/error.h"

namespace nitinol {

namespace {

constinit thread_local bool is_inside = false;
std::atomic<bool> is_child{false};

constexpr int most_threads = 4096;

// OMP_NUM_THREADS may be a list, one number for each level of nesting: the first counts. What else
// it says is OpenMP's to judge.
int openmp_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  int count = 0;
  std::from_chars(text, text + std::strlen(text), count);
  return std::clamp(count, 0, most_threads);
}

int chosen_threads() {
  if (const auto count = environment_count("NITINOL_NUM_THREADS", most_threads)) return *count;
  return openmp_threads();
}

std::atomic<bool> is_chosen{false};

int initial_threads() {
  pthread_atfork(nullptr, nullptr, [] { is_child = true; });
  if (const int count = chosen_threads(); count > 0) {
    is_chosen = true;
    return count;
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

[[gnu::always_inline]] inline std::atomic<int>& threads_setting() {  // each call asks for it
  static std::atomic<int> count{initial_threads()};
  return count;
}

bool is_alone() {
  return is_inside || is_child.load(std::memory_order_relaxed) || omp_in_parallel() != 0;
}

// Keeps what the body threw on the thread with the lowest range.
class FirstError {
 public:
  void keep_current(int64_t range) {
    const std::scoped_lock lock(mutex_);
    if (range >= range_) return;
    range_ = range;
    error_ = std::current_exception();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  int64_t range_ = std::numeric_limits<int64_t>::max();
  std::exception_ptr error_;
};

// Calls worker(index, count) on `count` threads; OpenMP may give fewer.
void run_on_threads(int count, FunctionRef<void(int64_t index, int64_t count)> worker) {
#ifdef NITINOL_STD_THREADS
  std::vector<std::thread> others;
  for (int index = 1; index < count; ++index) {
    others.emplace_back([&worker, index, count] { worker(index, count); });
  }
  worker(0, count);
  for (std::thread& other : others) other.join();
#else
#  pragma omp parallel num_threads(count)
  worker(omp_get_thread_num(), omp_get_num_threads());
#endif
}

}  // namespace

void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  FunctionRef<void(int64_t first, int64_t last)> body) {
  NITINOL_ASSERT(grain >= 1, "a block must have a size");
  if (begin >= end) return;
  const int64_t blocks = (end - begin - 1) / grain + 1;
  const int64_t wanted = blocks == 1 || is_alone() ? 1 : std::min<int64_t>(num_threads(), blocks);
  if (wanted == 1) {
    const DefaultFloatMode mode;
    body(begin, end);
    return;
  }

  FirstError error;
  run_on_threads(static_cast<int>(wanted), [&](int64_t index, int64_t count) {
    const int64_t first = begin + blocks * index / count * grain;
    const int64_t last = index + 1 == count ? end : begin + blocks * (index + 1) / count * grain;
    if (first >= last) return;
    is_inside = true;
    try {
      const DefaultFloatMode mode;
      body(first, last);
    } catch (...) {
      error.keep_current(first);
    }
    is_inside = false;
  });
  error.rethrow();
}

int num_threads() {
  return threads_setting().load(std::memory_order_relaxed);
}

void set_num_threads(int count) {
  if (count < 1) {
    throw Error(ErrorKind::value, {.where = "set_num_threads",
                                   .what = "not a number of threads",
                                   .expected = "at least 1",
                                   .got = std::to_string(count)});
  }
  threads_setting() = count;
  is_chosen = true;
}

bool has_chosen_threads() {
  threads_setting();  // what the environment says
  return is_chosen;
}

int available_threads() {
  const int count = num_threads();  // first: it also registers the fork handler
  return is_alone() ? 1 : count;
}

LibraryThreads::LibraryThreads(int count) : saved_(omp_get_max_threads()) {
#ifdef NITINOL_STD_THREADS
  count = 1;  // libgomp's threads are what the sanitizer must not see
#endif
  omp_set_num_threads(is_alone() ? 1 : count);
}

LibraryThreads::~LibraryThreads() {
  omp_set_num_threads(saved_);
}

#if defined(__x86_64__)

// MXCSR: all exceptions masked, round to nearest, no flush-to-zero, no denormals-are-zero. The low
// six bits only report, and stay as they are.
DefaultFloatMode::DefaultFloatMode() : saved_(_mm_getcsr()), used_((saved_ & 0x3F) | 0x1F80) {
  if (used_ != saved_) _mm_setcsr(static_cast<uint32_t>(used_));
}

DefaultFloatMode::~DefaultFloatMode() {
  if (used_ != saved_) _mm_setcsr(static_cast<uint32_t>(saved_));
}

#elif defined(__aarch64__)

// FPCR: zero is round to nearest, no flush-to-zero, no traps.
DefaultFloatMode::DefaultFloatMode() : saved_(__builtin_aarch64_get_fpcr64()), used_(0) {
  if (used_ != saved_) __builtin_aarch64_set_fpcr64(used_);
}

DefaultFloatMode::~DefaultFloatMode() {
  if (used_ != saved_) __builtin_aarch64_set_fpcr64(saved_);
}

#else
#  error "DefaultFloatMode is not written for this processor"
#endif

}  // namespace nitinol
