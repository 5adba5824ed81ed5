// Rows of a few elements (Order::turned), of which a vector takes many.
//
// A tile of rows passes through all stages. What lies row by row is turned first, so that the
// elements of one index lie together; what is computed like that is turned back in the end.
// Example: layer_norm over the last axis of x[50000, 8] takes x as [8, 256], again and again. Its
// first stage leaves [8, 256] values to be added up: 8 lanes of 256 rows, which join as the lanes
// of one long row do. Those beyond the row's end would be neutral, and change nothing.

#include "backends/host/accumulate.h"
#include "backends/host/combine.h"
#include "backends/host/loop_nest.h"
#include "backends/host/scratch.h"
#include "backends/host/split.h"
#include "backends/host/transpose.h"
#include "core/kernel.h"
#include "core/word.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace nitinol::host {
namespace {

/// Of the rows of a tile in each operand: what a stage reads and writes stays in the first-level
/// cache, and all of it in the second. With fewer rows what a tile takes besides shows: softmax
/// over 16 took 1.31 of its time across with 96, and takes 1.23 with 128.
constexpr int64_t tile_bytes = 8192, fewest_rows = 32, most_rows = 1024;

/// An operand that is turned.
struct Turned {
  std::size_t operand;
  std::size_t size;  ///< of an element
  char* memory;
};

struct Joined {
  Combiner combiner;
  Accumulate accumulate;
  char* values;  ///< lane after lane, each of a tile's rows
  int64_t* positions;
};

class TileRunner {
 public:
  TileRunner(const Kernel& kernel, const StageCode* code, const Launch& launch,
             const Domain& domain, int64_t width)
      : kernel_(kernel),
        code_(code),
        launch_(launch),
        domain_(domain),
        last_loop_(static_cast<std::size_t>(domain.rank - 1)),
        width_(width),
        tiles_((domain.sizes[last_loop_] + width - 1) / width) {
    std::copy_n(domain.steps[last_loop_].begin(), domain.operands, row_steps_.begin());
    std::copy_n(domain.reduced_steps.begin(), domain.operands, reduced_steps_.begin());
    find_turned();
    find_reductions();
    row_values_ = scratch_.take<void*>(kernel.row_values.size());
    for (std::size_t v = 0; v < kernel.row_values.size(); ++v)
      row_values_[v] = scratch_.take<uint64_t>(static_cast<std::size_t>(width));
  }

  void run(int64_t first, int64_t end) {
    for (int64_t tile = first; tile < end; ++tile) {
      find_rows(tile);
      turn_inputs();
      for (std::size_t s = 0; s < kernel_.stages.size(); ++s)
        run_stage(kernel_.stages[s], code_[s]);
      turn_outputs();
    }
  }

 private:
  [[nodiscard]] int64_t length() const { return domain_.reduced_size; }

  void find_turned() {
    turned_ = scratch_.take<Turned>(domain_.operands);
    for (std::size_t k = 0; k < domain_.operands; ++k) {
      const Operand& operand = kernel_.operands[k];
      const std::size_t size = size_of(operand.dtype);
      if (operand.role == Role::scratch && operand.alias >= 0) continue;
      if (!is_turned(operand, static_cast<int64_t>(size), k)) continue;
      const auto points = static_cast<std::size_t>(width_ * length());
      turned_[turned_count_++] = {
          .operand = k, .size = size, .memory = scratch_.take<char>(points * size)};
      row_steps_[k] = static_cast<int64_t>(size);
      reduced_steps_[k] = row_steps_[k] * width_;
    }
    for (std::size_t k = 0; k < domain_.operands; ++k) {
      const Operand& operand = kernel_.operands[k];
      if (operand.role != Role::scratch || operand.alias < 0) continue;
      const auto output = static_cast<std::size_t>(operand.alias);
      row_steps_[k] = row_steps_[output];
      reduced_steps_[k] = reduced_steps_[output];
    }
  }

  [[nodiscard]] bool is_turned(const Operand& operand, int64_t size, std::size_t k) const {
    if (operand.role == Role::scratch) return true;
    const bool is_memory = operand.role == Role::input || operand.role == Role::output;
    return is_memory && operand.inner == StrideClass::one && domain_.reduced_steps[k] != 0 &&
           domain_.steps[last_loop_][k] != size;
  }

  void find_reductions() {
    const std::size_t count = kernel_.reductions.size();
    const auto values = static_cast<std::size_t>(width_ * length());
    reductions_ = scratch_.take<Joined>(count);
    accumulators_ = scratch_.take<void*>(count);
    results_ = scratch_.take<const void*>(count);
    for (std::size_t r = 0; r < count; ++r) {
      Joined& joined = reductions_[r];
      joined.combiner = combiner_of(kernel_.reductions[r]);
      joined.accumulate = accumulate_of(kernel_.reductions[r], current_isa());
      joined.values = scratch_.take<char>(values * joined.combiner.value_bytes);
      joined.positions = joined.combiner.has_positions ? scratch_.take<int64_t>(values) : nullptr;
      accumulators_[r] = joined.values;
      results_[r] = joined.combiner.has_positions ? static_cast<void*>(joined.positions)
                                                  : static_cast<void*>(joined.values);
    }
  }

  void find_rows(int64_t tile) {
    const int64_t outer = tile / tiles_;
    const int64_t first = (tile - outer * tiles_) * width_;
    seek(domain_, domain_.rank - 1, outer, memory_);
    for (std::size_t k = 0; k < domain_.operands; ++k)
      memory_[k] += first * domain_.steps[last_loop_][k];
    std::copy_n(memory_.begin(), domain_.operands, pointers_.begin());
    for (std::size_t i = 0; i < turned_count_; ++i)
      pointers_[turned_[i].operand] = turned_[i].memory;
    for (std::size_t k = 0; k < domain_.operands; ++k) {
      const Operand& operand = kernel_.operands[k];
      if (operand.role == Role::scratch && operand.alias >= 0)
        pointers_[k] = pointers_[static_cast<std::size_t>(operand.alias)];
    }
    rows_ = std::min(width_, domain_.sizes[last_loop_] - first);
  }

  void turn_inputs() const {
    for (std::size_t i = 0; i < turned_count_; ++i) {
      const Turned& turned = turned_[i];
      if (kernel_.operands[turned.operand].role != Role::input) continue;
      const int64_t step = domain_.reduced_steps[turned.operand];
      const int64_t row_step = domain_.steps[last_loop_][turned.operand];
      const char* const from = memory_[turned.operand];
      if (step == static_cast<int64_t>(turned.size)) {
        transpose({.from = from,
                   .from_step = row_step,
                   .to = turned.memory,
                   .to_step = reduced_steps_[turned.operand],
                   .rows = length(),
                   .columns = rows_},
                  turned.size);
        continue;
      }
      for_each_point(turned, [&](char* here, int64_t row, int64_t index, auto word) {
        std::memcpy(here, from + row * row_step + index * step, sizeof(word));
      });
    }
  }

  void turn_outputs() const {
    for (std::size_t i = 0; i < turned_count_; ++i) {
      const Turned& turned = turned_[i];
      if (kernel_.operands[turned.operand].role != Role::output) continue;
      const int64_t step = domain_.reduced_steps[turned.operand];
      const int64_t row_step = domain_.steps[last_loop_][turned.operand];
      char* const to = memory_[turned.operand];
      if (step == static_cast<int64_t>(turned.size)) {
        transpose({.from = turned.memory,
                   .from_step = reduced_steps_[turned.operand],
                   .to = to,
                   .to_step = row_step,
                   .rows = rows_,
                   .columns = length()},
                  turned.size);
        continue;
      }
      for_each_point(turned, [&](const char* here, int64_t row, int64_t index, auto word) {
        std::memcpy(to + row * row_step + index * step, here, sizeof(word));
      });
    }
  }

  /// Calls visit(its place when turned, row, index, a word of its size) for each element.
  template <class Visit>
  void for_each_point(const Turned& turned, Visit visit) const {
    with_word(turned.size, [&](auto word) {
      for (int64_t index = 0; index < length(); ++index) {
        char* const lane = turned.memory + index * reduced_steps_[turned.operand];
        for (int64_t row = 0; row < rows_; ++row)
          visit(lane + row * static_cast<int64_t>(sizeof(word)), row, index, word);
      }
    });
  }

  void run_stage(const Stage& stage, const StageCode& code) {
    const bool is_row = stage.level == Stage::Level::row;
    for (const Sink& sink : stage.sinks) {
      if (sink.kind == Sink::Kind::accumulate && !keeps_lanes(kernel_.reductions[sink.index]))
        reductions_[sink.index].combiner.fill(reductions_[sink.index].values, nullptr, rows_);
    }
    code.function(code.self, {.pointers = pointers_.data(),
                              .outer = reduced_steps_.data(),
                              .inner = row_steps_.data(),
                              .outer_size = is_row ? 1 : length(),
                              .inner_size = rows_,
                              .scalars = launch_.scalars.data(),
                              .accumulators = accumulators_,
                              .accumulator_positions = nullptr,
                              .position = 0,
                              .results = results_,
                              .row_values = row_values_,
                              .status = launch_.status});
    for (const Sink& sink : stage.sinks) {
      if (sink.kind == Sink::Kind::accumulate && keeps_lanes(kernel_.reductions[sink.index]))
        join_lanes(reductions_[sink.index]);
    }
  }

  /// Lane l joins lane l + half, all rows at once.
  void join_lanes(const Joined& joined) const {
    if (joined.positions != nullptr) return join_places(joined);
    fold_lanes_of_rows(joined.accumulate, joined.combiner.value_bytes, joined.values, length(),
                       rows_);
  }

  /// The same for arg_*.
  void join_places(const Joined& joined) const {
    for (int64_t l = 0; l < length(); ++l) std::fill_n(joined.positions + l * rows_, rows_, l);
    const auto bytes = static_cast<int64_t>(joined.combiner.value_bytes);
    auto half = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length())) / 2);
    for (int64_t left = length(); half > 0; left = half, half /= 2) {
      const int64_t offset = half * rows_;
      joined.combiner.join(joined.values, joined.positions, joined.values + offset * bytes,
                           joined.positions + offset, std::min(half, left - half) * rows_);
    }
  }

  Scratch scratch_;
  const Kernel& kernel_;
  const StageCode* const code_;
  const Launch& launch_;
  const Domain& domain_;
  const std::size_t last_loop_;
  const int64_t width_;              ///< rows of a full tile
  const int64_t tiles_;              ///< along the last row loop
  Steps row_steps_, reduced_steps_;  ///< of operands as stages see them
  Turned* turned_;
  std::size_t turned_count_ = 0;
  Joined* reductions_;
  void** accumulators_;
  const void** results_;
  void** row_values_;
  // Of the present tile.
  Pointers memory_, pointers_;  ///< where operands lie, and where stages find them
  int64_t rows_ = 0;
};

int64_t tile_width(const Kernel& kernel, const Domain& domain) {
  int64_t size = 1;  // of the widest element
  for (std::size_t k = 0; k < domain.operands; ++k) {
    if (domain.reduced_steps[k] != 0 && kernel.operands[k].role != Role::position)
      size = std::max(size, static_cast<int64_t>(size_of(kernel.operands[k].dtype)));
  }
  for (const Reduction& reduction : kernel.reductions)
    size = std::max(size, static_cast<int64_t>(size_of(reduction.type)));
  const int64_t rows = domain.sizes[static_cast<std::size_t>(domain.rank - 1)];
  const int64_t fitting =
      std::clamp(tile_bytes / (size * domain.reduced_size), fewest_rows, most_rows);
  const int64_t all = (rows + fewest_rows - 1) / fewest_rows * fewest_rows;
  return std::min(fitting / fewest_rows * fewest_rows, all);
}

}  // namespace

void run_turned(const Kernel& kernel, const StageCode* code, const Launch& launch,
                const Domain& domain) {
  const int64_t rows = domain.sizes[static_cast<std::size_t>(domain.rank - 1)];
  const int64_t width = tile_width(kernel, domain);
  const int64_t tiles = domain.count(0, domain.rank - 1) * ((rows + width - 1) / width);
  const int64_t grain = std::max<int64_t>(grain_of(kernel) / (width * domain.reduced_size), 1);
  split(tiles, grain, launch.threads, [&](int64_t first, int64_t end) {
    TileRunner(kernel, code, launch, domain, width).run(first, end);
  });
}

}  // namespace nitinol::host
