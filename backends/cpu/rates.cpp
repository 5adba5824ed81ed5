// Copies by memcpy, each thread its own part, at sizes that lie in one cache after another and
// beyond them; and multiply-adds in registers. The best of several counts: a bound is what nothing
// disturbs.
#include "backends/cpu/rates.h"

#include "backends/disk/code_store.h"
#include "core/isa.h"
#include "core/multiply_adds.h"
#include "core/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#  include <cpuid.h>
#endif

namespace nitinol::cpu {
namespace {

/// Bytes read and written.
constexpr std::size_t copied_bytes[] = {
    std::size_t{32} << 10, std::size_t{256} << 10, std::size_t{1} << 20,  std::size_t{2} << 20,
    std::size_t{4} << 20,  std::size_t{8} << 20,   std::size_t{32} << 20, std::size_t{128} << 20};
constexpr int samples = 5;

/// What tells machines apart that may share a folder.
std::string machine() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::string name = host;
#if defined(__x86_64__)
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    unsigned words[4] = {};
    if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]) == 0) break;
    name.append(reinterpret_cast<const char*>(words), sizeof words);
  }
#endif
  return name;
}

/// Seconds that this thread has computed: others that the machine runs besides do not count.
double own_now() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// pass(first, last) on ranges of `threads` parts, one each: how long it takes the slowest of them,
/// at best.
template <class F>
double best_s(int threads, const F& pass) {
  double best = 1e9;
  for (int i = 0; i < samples; ++i) {
    std::atomic<double> slowest = 0;
    parallel_for(0, threads, 1, [&](int64_t first, int64_t last) {
      const double start = own_now();
      pass(first, last);
      const double took = own_now() - start;
      for (double known = slowest; known < took && !slowest.compare_exchange_weak(known, took);) {
      }
    });
    best = std::min(best, slowest.load());
  }
  return best;
}

DeviceRates::Copy measure_copy(std::byte* memory, std::size_t bytes, int threads) {
  const std::size_t part = bytes / 2 / static_cast<std::size_t>(threads) / 64 * 64;
  const int rounds = static_cast<int>(std::max<std::size_t>(1, (std::size_t{16} << 20) / bytes));
  const double took = best_s(threads, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      std::byte* const own = memory + 2 * part * static_cast<std::size_t>(i);
      for (int round = 0; round < rounds; ++round) {
        std::memcpy(own + part, own, part);
        asm volatile("" ::: "memory");  // each round
      }
    }
  });
  const auto moved = static_cast<double>(2 * part) * threads;
  return {moved, moved * rounds / took};
}

double measure_operations(int threads) {
  constexpr int64_t rounds = 200'000;
  const MultiplyAdds loop = multiply_adds(current_isa());
  std::atomic<float> sum = 0;
  const double took = best_s(threads, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) sum = loop.run(rounds);
  });
  return loop.operations * static_cast<double>(rounds) * threads / took;
}

DeviceRates measured(int threads) {
  DeviceRates rates;
  const std::size_t most = copied_bytes[std::size(copied_bytes) - 1];
  const auto memory = std::make_unique<std::byte[]>(most);
  for (const std::size_t bytes : copied_bytes)
    rates.copies.push_back(measure_copy(memory.get(), bytes, threads));
  rates.operations_per_s = measure_operations(threads);
  return rates;
}

/// As it lies on disk: numbers in this machine's order.
std::vector<std::byte> bytes_of(const DeviceRates& rates) {
  std::vector<double> numbers = {rates.operations_per_s};
  for (const DeviceRates::Copy& copy : rates.copies) {
    numbers.push_back(copy.bytes);
    numbers.push_back(copy.bytes_per_s);
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(numbers.data());
  return {bytes, bytes + numbers.size() * sizeof(double)};
}

std::optional<DeviceRates> rates_in(const std::vector<std::byte>& bytes) {
  constexpr std::size_t count = 1 + 2 * std::size(copied_bytes);
  double numbers[count];
  if (bytes.size() != sizeof numbers) return std::nullopt;
  std::memcpy(numbers, bytes.data(), sizeof numbers);
  // A file may hold anything.
  if (!std::ranges::all_of(numbers, [](double number) { return number > 0 && number < 1e18; }))
    return std::nullopt;
  DeviceRates rates = {.copies = {}, .operations_per_s = numbers[0]};
  for (std::size_t i = 1; i < count; i += 2)
    rates.copies.push_back({.bytes = numbers[i], .bytes_per_s = numbers[i + 1]});
  return rates;
}

DeviceRates known_or_measured(int threads) {
  CodeStore* const store = CodeStore::of_user();
  const std::string text =
      fmt::format("rates 2 {} {} {}", machine(), name_of(current_isa()), threads);
  const auto key = std::as_bytes(std::span(text));
  if (store != nullptr) {
    const std::optional<std::vector<std::byte>> kept = store->find(key);
    const std::optional<DeviceRates> rates = kept ? rates_in(*kept) : std::nullopt;
    if (rates) return *rates;
  }
  DeviceRates rates = measured(threads);
  if (store != nullptr) store->keep(key, bytes_of(rates));
  return rates;
}

}  // namespace

DeviceRates rates(int threads) {
  static std::mutex mutex;
  static auto& known = *new std::map<int, DeviceRates>;  // never destroyed
  const std::lock_guard lock(mutex);
  const auto found = known.find(threads);
  if (found != known.end()) return found->second;
  return known[threads] = known_or_measured(threads);
}

}  // namespace nitinol::cpu
