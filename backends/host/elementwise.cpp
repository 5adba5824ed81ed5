// Walking an elementwise domain: a stage visits the two innermost loops at a time. Where both are
// short, as of x[100000, 3, 3] and its transposed matrices, it visits the innermost one and the
// third, some of it at a time, for each index of the second. Short rows that follow each other in
// memory beside operands that are the same for all of them, as of x[100000, 3] - mean[3], become
// long ones: these operands are written out some times. Operands that lie across the rows, as
// transposed ones, are turned, a block at a time.
//
// Threads share the rows (all loops but the innermost), or, where there are few rows, the innermost
// loop. The order of points does not matter to results, only to caches.

#include "backends/host/loop_nest.h"
#include "backends/host/scratch.h"
#include "backends/host/split.h"
#include "backends/host/transpose.h"
#include "core/kernel.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nitinol::host {
namespace {

/// Points of the two innermost loops that are too few for a call, and of the third in one.
constexpr int64_t few_points = 64, items_at_once = 512;
/// Points of short rows in a call, and those of all that are worth it.
constexpr int64_t points_at_once = 1024, fewest_points = 2048;
/// Cuts of the innermost loop are multiples of it, so that pieces stay aligned.
constexpr int64_t inner_granule = 1024;
/// A block of rows that is turned: of most types a line of the cache of each column.
constexpr int64_t turned_rows = 16, turned_columns = 64;

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

/// Short rows beside operands that repeat.
class RepeatedRows {
 public:
  RepeatedRows(const Kernel& kernel, const Domain& domain) : kernel_(kernel), domain_(domain) {}

  /// Whether that is what they are.
  [[nodiscard]] bool are_there() const {
    if (domain_.rank < 2 || row_length() > few_points || rows() < 2 * few_points ||
        rows() * row_length() < fewest_points)
      return false;
    bool is_any = false;
    for (std::size_t k = 0; k < domain_.operands; ++k) {
      if (is_same_everywhere(k) || follows(k)) continue;
      if (!repeats(k)) return false;
      is_any = true;
    }
    return is_any;
  }

  /// Rows [first, last).
  void run(const StageCode& code, const Launch& launch, int64_t first, int64_t last) const {
    const int64_t at_once = points_at_once / row_length();
    Scratch scratch;
    char** const memory = scratch.take<char*>(domain_.operands);
    char** const written = scratch.take<char*>(domain_.operands);  // what memory has copies of
    for (std::size_t k = 0; k < domain_.operands; ++k) {
      written[k] = nullptr;
      memory[k] = nullptr;
      if (!is_same_everywhere(k) && repeats(k))
        memory[k] = scratch.take<char>(static_cast<std::size_t>(at_once * row_bytes(k)));
    }
    Pointers pointers;
    while (first < last) {
      const int64_t count = std::min({last - first, rows() - first % rows(), at_once});
      seek(domain_, domain_.rank - 1, first, pointers);
      for (std::size_t k = 0; k < domain_.operands; ++k) {
        if (memory[k] == nullptr) continue;
        if (written[k] != pointers[k]) write_out(pointers[k], at_once, row_bytes(k), memory[k]);
        written[k] = std::exchange(pointers[k], memory[k]);
      }
      code.function(code.self,
                    flat_call(pointers.data(), inner().data(), count * row_length(), launch));
      first += count;
    }
  }

 private:
  [[nodiscard]] std::size_t last_loop() const { return static_cast<std::size_t>(domain_.rank - 1); }
  [[nodiscard]] int64_t row_length() const { return domain_.sizes[last_loop()]; }
  [[nodiscard]] int64_t rows() const { return domain_.sizes[last_loop() - 1]; }
  [[nodiscard]] const Steps& inner() const { return domain_.steps[last_loop()]; }
  [[nodiscard]] const Steps& outer() const { return domain_.steps[last_loop() - 1]; }
  [[nodiscard]] int64_t size(std::size_t k) const {
    return static_cast<int64_t>(size_of(kernel_.operands[k].dtype));
  }
  [[nodiscard]] int64_t row_bytes(std::size_t k) const { return row_length() * size(k); }

  [[nodiscard]] bool is_same_everywhere(std::size_t k) const {
    return inner()[k] == 0 && outer()[k] == 0;
  }
  [[nodiscard]] bool follows(std::size_t k) const {
    return kernel_.operands[k].role != Role::position && inner()[k] == size(k) &&
           outer()[k] == row_bytes(k);
  }
  [[nodiscard]] bool repeats(std::size_t k) const {
    return kernel_.operands[k].role == Role::input && inner()[k] == size(k) && outer()[k] == 0 &&
           !looks_up(kernel_.stages[0], k);
  }

  static void write_out(const char* row, int64_t times, int64_t bytes, char* to) {
    for (int64_t i = 0; i < times; ++i, to += bytes)
      std::memcpy(to, row, static_cast<std::size_t>(bytes));
  }

  const Kernel& kernel_;
  const Domain& domain_;
};

/// Rows of which some operands lie across.
class TurnedRows {
 public:
  TurnedRows(const Kernel& kernel, const Domain& domain) : kernel_(kernel), domain_(domain) {}

  [[nodiscard]] bool are_there() const {
    for (std::size_t k = 0; domain_.rank > 1 && k < domain_.operands; ++k) {
      if (lies_across(kernel_, domain_, k)) return true;
    }
    return false;
  }

  /// Of up to turned_rows rows each.
  [[nodiscard]] int64_t blocks() const {
    return domain_.count(0, domain_.rank - 2) * blocks_of_plane();
  }
  [[nodiscard]] int64_t row_length() const { return domain_.sizes[last_loop()]; }

  /// Blocks [first, last).
  void run(const StageCode& code, const Launch& launch, int64_t first, int64_t last) const {
    Scratch scratch;
    char** const memory = scratch.take<char*>(domain_.operands);
    Steps outer = domain_.steps[last_loop() - 1], inner = domain_.steps[last_loop()];
    for (std::size_t k = 0; k < domain_.operands; ++k) {
      memory[k] = nullptr;
      if (!lies_across(kernel_, domain_, k)) continue;
      const std::size_t size = size_of(kernel_.operands[k].dtype);
      memory[k] = scratch.take<char>(turned_rows * turned_columns * size);
      inner[k] = static_cast<int64_t>(size);
      outer[k] = turned_columns * inner[k];
    }
    for (; first < last; ++first) {
      const int64_t row = first % blocks_of_plane() * turned_rows;
      const int64_t rows = std::min(turned_rows, domain_.sizes[last_loop() - 1] - row);
      Pointers start;
      seek(domain_, domain_.rank - 2, first / blocks_of_plane(), start);
      for (int64_t point = 0; point < row_length(); point += turned_columns) {
        const int64_t points = std::min(turned_columns, row_length() - point);
        Pointers pointers;
        for (std::size_t k = 0; k < domain_.operands; ++k) {
          const int64_t step = domain_.steps[last_loop()][k];
          pointers[k] = start[k] + row * domain_.steps[last_loop() - 1][k] + point * step;
          if (memory[k] == nullptr) continue;
          transpose({.from = std::exchange(pointers[k], memory[k]),
                     .from_step = step,
                     .to = memory[k],
                     .to_step = outer[k],
                     .rows = rows,
                     .columns = points},
                    static_cast<std::size_t>(inner[k]));
        }
        code.function(code.self, {.pointers = pointers.data(),
                                  .outer = outer.data(),
                                  .inner = inner.data(),
                                  .outer_size = rows,
                                  .inner_size = points,
                                  .scalars = launch.scalars.data(),
                                  .status = launch.status});
      }
    }
  }

 private:
  [[nodiscard]] std::size_t last_loop() const { return static_cast<std::size_t>(domain_.rank - 1); }
  [[nodiscard]] int64_t blocks_of_plane() const {
    return (domain_.sizes[last_loop() - 1] + turned_rows - 1) / turned_rows;
  }

  const Kernel& kernel_;
  const Domain& domain_;
};

}  // namespace

void run_elementwise(const Kernel& kernel, const StageCode& code, const Launch& launch,
                     const Domain& domain) {
  const Walk walk(code, launch, domain);
  const int64_t rows = domain.count(0, domain.rank - 1);
  const int64_t points = domain.sizes[static_cast<std::size_t>(domain.rank - 1)];
  const int64_t grain = grain_of(kernel);
  if (const TurnedRows turned(kernel, domain); turned.are_there()) {
    split(turned.blocks(), std::max<int64_t>(grain / (turned_rows * turned.row_length()), 1),
          launch.threads,
          [&](int64_t first, int64_t last) { turned.run(code, launch, first, last); });
    return;
  }
  const RepeatedRows repeated(kernel, domain);
  if (repeated.are_there()) {
    split(rows, std::max<int64_t>(grain / points, 1), launch.threads,
          [&](int64_t first, int64_t last) { repeated.run(code, launch, first, last); });
    return;
  }
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
