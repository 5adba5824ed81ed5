// The triad of STREAM, a = b + s * c, moves 12 bytes an element; with plain stores the machine in
// fact also reads `a` before it writes it, with non-temporal stores it does not, so that the second
// is the true limit of large arrays. Smaller arrays are limited by the caches that hold them, which
// the triads of fewer elements measure. All loops are built for each instruction set with target
// attributes; the machine's best runs, whatever NITINOL_ISA says.

#include "bench/limits.h"

#include "bench/timer.h"
#include "core/isa.h"
#include "core/multiply_adds.h"
#include "core/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sys/mman.h>

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

namespace nitinol::bench {

namespace {

struct Arrays {
  float* a;
  const float* b;
  const float* c;
};

using Triad = void (*)(Arrays arrays, int64_t begin, int64_t end);

/// The loops of one instruction set.
struct Loops {
  Triad triad, triad_nt;
};

void triad_plain(Arrays v, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) v.a[i] = v.b[i] + 3 * v.c[i];
}

#if defined(__x86_64__)

void triad_nt_sse(Arrays v, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += 4) {
    _mm_stream_ps(v.a + i, _mm_add_ps(_mm_load_ps(v.b + i),
                                      _mm_mul_ps(_mm_set1_ps(3), _mm_load_ps(v.c + i))));
  }
  _mm_sfence();
}

[[gnu::target("avx2,fma")]] void triad_avx2(Arrays v, int64_t begin, int64_t end) {
  const __m256 three = _mm256_set1_ps(3);
  for (int64_t i = begin; i < end; i += 8) {
    _mm256_store_ps(v.a + i,
                    _mm256_fmadd_ps(three, _mm256_load_ps(v.c + i), _mm256_load_ps(v.b + i)));
  }
}

[[gnu::target("avx2,fma")]] void triad_nt_avx2(Arrays v, int64_t begin, int64_t end) {
  const __m256 three = _mm256_set1_ps(3);
  for (int64_t i = begin; i < end; i += 8) {
    _mm256_stream_ps(v.a + i,
                     _mm256_fmadd_ps(three, _mm256_load_ps(v.c + i), _mm256_load_ps(v.b + i)));
  }
  _mm_sfence();
}

[[gnu::target("avx512f")]] void triad_avx512(Arrays v, int64_t begin, int64_t end) {
  const __m512 three = _mm512_set1_ps(3);
  for (int64_t i = begin; i < end; i += 16) {
    _mm512_store_ps(v.a + i,
                    _mm512_fmadd_ps(three, _mm512_load_ps(v.c + i), _mm512_load_ps(v.b + i)));
  }
}

[[gnu::target("avx512f")]] void triad_nt_avx512(Arrays v, int64_t begin, int64_t end) {
  const __m512 three = _mm512_set1_ps(3);
  for (int64_t i = begin; i < end; i += 16) {
    _mm512_stream_ps(v.a + i,
                     _mm512_fmadd_ps(three, _mm512_load_ps(v.c + i), _mm512_load_ps(v.b + i)));
  }
  _mm_sfence();
}

Loops loops_for(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return {triad_plain, triad_nt_sse};
    case Isa::avx2:
      return {triad_avx2, triad_nt_avx2};
    case Isa::avx512:
      return {triad_avx512, triad_nt_avx512};
  }
  return {};
}

#else

Loops loops_for(Isa) {
  return {triad_plain, triad_plain};
}

#endif

/// Page-aligned zeros in huge pages where the system has them, as the library's own buffers are.
class Memory {
 public:
  explicit Memory(std::size_t bytes)
      : bytes_(bytes),
        address_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (address_ == MAP_FAILED) throw std::bad_alloc();
    madvise(address_, bytes, MADV_HUGEPAGE);
  }
  ~Memory() { munmap(address_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] float* floats() const { return static_cast<float*>(address_); }

 private:
  std::size_t bytes_;
  void* address_;
};

/// How to repeat: `rounds` passes in each of `repeats` samples.
struct Repeat {
  int repeats;
  int rounds;
};

Limit measure_triad(std::string name, Triad triad, Arrays arrays, int64_t count, Repeat repeat) {
  constexpr int64_t line = 1024;  // elements; blocks stay aligned
  const auto elements = static_cast<double>(count);
  Limit limit{
      .name = std::move(name), .samples = {}, .amount = 12 * elements, .footprint = 12 * elements};
  const int64_t part = std::max<int64_t>(line, count / num_threads() / line * line);
  for (int sample = -1; sample < repeat.repeats; ++sample) {
    const double start = now();
    parallel_for(0, count, part, [&](int64_t begin, int64_t end) {
      for (int round = 0; round < repeat.rounds; ++round) triad(arrays, begin, end);
    });
    if (sample >= 0) limit.samples.push_back((now() - start) / repeat.rounds);
  }
  return limit;
}

Limit measure_fma(int threads, int repeats) {
  constexpr int64_t count = 5'000'000;
  const MultiplyAdds loop = multiply_adds(host_isa());
  Limit limit{.name = "fma-f32",
              .samples = {},
              .amount = loop.operations * count * threads,
              .footprint = 0};
  std::vector<float> sums(static_cast<std::size_t>(threads) * 16);
  for (int sample = -1; sample < repeats; ++sample) {
    const double start = now();
    parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sums[static_cast<std::size_t>(i) * 16] = loop.run(count);
    });
    if (sample >= 0) limit.samples.push_back(now() - start);
  }
  // Used, so that the loop is not removed.
  if (sums[0] < 0) limit.samples.clear();
  return limit;
}

}  // namespace

double Limit::rate() const {
  return amount / median_of(samples);
}

Limits::Limits(int threads, bool is_quick) {
  constexpr int64_t most = int64_t{16} << 20;
  const Quiet quiet;
  const Loops loops = loops_for(host_isa());
  const int repeats = is_quick ? 2 : 9;
  const Memory memory(3 * most * sizeof(float));
  const Arrays arrays{memory.floats(), memory.floats() + most, memory.floats() + 2 * most};
  parallel_for(0, 3 * most, most, [&](int64_t begin, int64_t end) {
    std::fill(memory.floats() + begin, memory.floats() + end, 1.0F);
  });
  limits_.push_back(measure_triad("triad", loops.triad, arrays, most, {repeats, 4}));
  limits_.push_back(measure_triad("triad-nt", loops.triad_nt, arrays, most, {repeats, 4}));
  limits_.push_back(measure_fma(threads, repeats));
  const struct {
    const char* name;
    int64_t count;
  } sizes[] = {{"triad.n1e3", 1024},
               {"triad.n1e5", int64_t{100} * 1024},
               {"triad.n1e6", 1 << 20},
               {"triad.n2e6", int64_t{2} << 20}};
  for (const auto& [name, count] : sizes) {
    const Arrays close{arrays.a, arrays.a + count, arrays.a + 2 * count};
    const int rounds = static_cast<int>(std::max<int64_t>(4, most / count / 4));
    limits_.push_back(measure_triad(name, loops.triad, close, count, {repeats, rounds}));
  }
}

Limits::Limits(double copy_rate)
    : limits_{{.name = "copy", .samples = {1}, .amount = copy_rate, .footprint = 1e12}} {}

std::optional<double> Limits::bound(const Work& work) const {
  if (limits_.empty() || (work.bytes == 0 && work.flops == 0)) return std::nullopt;
  double bandwidth = 0, largest = 0, nearest = 1e30, fma = 0;
  for (const Limit& limit : limits_) {
    const double rate = limit.rate();
    if (limit.footprint == 0) {
      fma = rate;
      continue;
    }
    if (limit.footprint >= 12.0 * (16 << 20)) largest = std::max(largest, rate);
    if (limit.footprint < work.bytes || limit.footprint > nearest) continue;
    bandwidth = limit.footprint == nearest ? std::max(bandwidth, rate) : rate;
    nearest = limit.footprint;
  }
  if (work.flops > 0) return fma > 0 ? std::optional(work.flops / fma) : std::nullopt;
  return work.bytes / (bandwidth > 0 ? bandwidth : largest);
}

std::vector<Row> Limits::rows(int threads) const {
  std::vector<Row> rows;
  rows.reserve(limits_.size());
  for (const Limit& limit : limits_) {
    rows.push_back({.workload = "limit." + limit.name,
                    .mode = "native",
                    .threads = threads,
                    .median_s = median_of(limit.samples),
                    .min_s = *std::min_element(limit.samples.begin(), limit.samples.end()),
                    .repeats = static_cast<int>(limit.samples.size()),
                    .rate = limit.rate() / 1e9,
                    .notes = limit.name == "copy" ? "rate is 1e9 bytes/s, read and written"
                             : limit.footprint > 0
                                 ? "rate is 1e9 bytes/s counting 12 bytes an element"
                                 : "rate is GFLOP/s"});
  }
  return rows;
}

}  // namespace nitinol::bench
