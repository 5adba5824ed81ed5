// Walking an elementwise domain: a stage visits the two innermost loops at a time. Where both are
// short, as of x[100000, 3, 3] and its transposed matrices, it visits the innermost one and the
// third, some of it at a time, for each index of the second.
//
// Threads share the rows (all loops but the innermost), or, where there are few rows, the innermost
// loop. The order of points does not matter to results, only to caches.

#include "backends/host/loop_nest.h"
#include "backends/host/split.h"
#include "core/kernel.h"

#include <algorithm>

namespace nitinol::host {
namespace {

/// Points of the two innermost loops that are too few for a call, and of the third in one.
constexpr int64_t few_points = 64, items_at_once = 512;
/// Cuts of the innermost loop are multiples of it, so that pieces stay aligned.
constexpr int64_t inner_granule = 1024;

class Walk {
 public:
  Walk(const StageCode& code, const Launch& launch, const Domain& domain)
      : code_(code),
        scalars_(launch.scalars.data()),
        status_(launch.status),
        domain_(domain),
        inner_(domain.rank - 1) {}

  /// Points [begin, end) of the innermost loop in rows [first, last).
  void run(int64_t first, int64_t last, int64_t begin, int64_t end) const {
    const int64_t in_plane = inner_ > 0 ? size_of(inner_ - 1) : 1;
    Pointers pointers;
    while (first < last) {
      const int64_t rows = std::min(last - first, in_plane - first % in_plane);
      seek(domain_, inner_, first, pointers);
      for (std::size_t k = 0; k < domain_.operands; ++k) pointers[k] += begin * steps(inner_)[k];
      call(pointers, inner_ - 1, rows, end - begin);
      first += rows;
    }
  }

  /// Whether the two innermost loops are short beside the third.
  [[nodiscard]] bool has_items() const {
    if (inner_ < 2) return false;
    const int64_t rows = size_of(inner_ - 1);
    return rows * size_of(inner_) <= few_points && size_of(inner_ - 2) >= 4 * rows;
  }

  /// Items [first, last): indices of all loops but the two innermost.
  void run_items(int64_t first, int64_t last) const {
    const int64_t in_plane = size_of(inner_ - 2);
    Pointers pointers;
    while (first < last) {
      const int64_t items = std::min({last - first, in_plane - first % in_plane, items_at_once});
      seek(domain_, inner_ - 1, first, pointers);
      for (int64_t row = 0; row < size_of(inner_ - 1); ++row) {
        call(pointers, inner_ - 2, items, size_of(inner_));
        for (std::size_t k = 0; k < domain_.operands; ++k) pointers[k] += steps(inner_ - 1)[k];
      }
      first += items;
    }
  }

 private:
  [[nodiscard]] int64_t size_of(int loop) const {
    return domain_.sizes[static_cast<std::size_t>(loop)];
  }
  [[nodiscard]] const Steps& steps(int loop) const {
    return domain_.steps[static_cast<std::size_t>(loop)];
  }

  void call(const Pointers& pointers, int outer, int64_t rows, int64_t points) const {
    code_.function(code_.self, {.pointers = pointers.data(),
                                .outer = steps(std::max(outer, 0)).data(),
                                .inner = steps(inner_).data(),
                                .outer_size = rows,
                                .inner_size = points,
                                .scalars = scalars_,
                                .status = status_});
  }

  const StageCode& code_;
  const uint64_t* scalars_;
  Status* status_;
  const Domain& domain_;
  int inner_;
};

}  // namespace

void run_elementwise(const Kernel& kernel, const StageCode& code, const Launch& launch,
                     const Domain& domain) {
  const Walk walk(code, launch, domain);
  const int64_t rows = domain.count(0, domain.rank - 1);
  const int64_t points = domain.sizes[static_cast<std::size_t>(domain.rank - 1)];
  const int64_t grain = grain_of(kernel);
  if (walk.has_items()) {
    const int64_t items = domain.count(0, domain.rank - 2);
    split(items, std::max<int64_t>(grain * items / (rows * points), 1), launch.threads,
          [&](int64_t first, int64_t last) { walk.run_items(first, last); });
    return;
  }
  if (rows >= 4 * int64_t{launch.threads} || points < 2 * inner_granule) {
    const int64_t rows_at_once = std::max<int64_t>(grain / points, 1);
    split(rows, rows_at_once, launch.threads,
          [&](int64_t first, int64_t last) { walk.run(first, last, 0, points); });
    return;
  }
  // In granules, because a cut must be a multiple of one.
  const int64_t granules = (points + inner_granule - 1) / inner_granule;
  const int64_t granules_at_once = std::max<int64_t>(grain / rows / inner_granule, 1);
  split(granules, granules_at_once, launch.threads, [&](int64_t first, int64_t last) {
    walk.run(0, rows, first * inner_granule, std::min(last * inner_granule, points));
  });
}

void run_elementwise_all(const Kernel& kernel, const StageCode& code,
                         std::span<const Launch> launches) {
  const auto granules_of = [](const Launch& launch) {
    return (launch.sizes[0] + inner_granule - 1) / inner_granule;
  };
  int64_t granules = 0;
  int64_t points = 0;
  for (const Launch& launch : launches) {
    granules += granules_of(launch);
    points += launch.sizes[0];
  }
  if (points == 0) return;
  // Small launches are granules that are not full.
  const int64_t grain = std::max<int64_t>(grain_of(kernel) * granules / points, 1);
  split(granules, grain, launches[0].threads, [&](int64_t first, int64_t last) {
    int64_t before = 0;
    for (const Launch& launch : launches) {
      const int64_t begin = std::max(first - before, int64_t{0}) * inner_granule;
      const int64_t end = std::min((last - before) * inner_granule, launch.sizes[0]);
      before += granules_of(launch);
      if (begin >= end) continue;
      Domain domain;
      make_domain(kernel, launch, domain);
      Walk(code, launch, domain).run(0, 1, begin, end);
    }
  });
}

}  // namespace nitinol::host
