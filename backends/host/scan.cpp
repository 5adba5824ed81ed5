// Long chains of additions lose digits, and no wide machine runs them: sums are formed in runs
// (reduction_order::scan_run). Within a run they are formed one after another; what comes before a
// run is the running sum of the runs' totals, which is formed in the same way, in runs of runs. So
// an element is the end of a chain of a few additions a level, and levels are few.
//
//   run 2 of x: [a b c ...]    before = scan(totals of runs 0 and 1)[1]
//   out:        [before + a, before + (a + b), before + ((a + b) + c), ...]
//
// Threads share lines. A block of neighbouring ones (lines.h) goes along the axis together.
#include "backends/host/scan.h"

#include "backends/host/elements.h"
#include "backends/host/lines.h"
#include "backends/host/per_isa.h"
#include "backends/host/split.h"
#include "core/join_logarithms.h"
#include "core/joins.h"
#include "core/native.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

namespace nitinol::host {
namespace {

/// a and b as the scan joins them.
template <Combine c, class Value>
inline Value joined(Value a, Value b) {
  if constexpr (c == Combine::add) return native::add(a, b);
  return join<c>(Num<Value>(a), Num<Value>(b)).value;
}

/// The running sums of the totals of runs, for up to `most` lines; level 0 is those of elements.
template <Combine c, class Value, std::size_t most>
class Totals {
 public:
  using Sums = std::array<Value, most>;  ///< per line

  explicit Totals(std::size_t lines) : lines_(lines) {}

  /// The sums up to and with these, the totals of the next run.
  const Sums& add(const Sums& totals) { return add(0, totals); }

 private:
  /// Runs of runs fill a level each: more levels than any axis has.
  static constexpr std::size_t most_levels = 16;
  static_assert(reduction_order::scan_run == 16 && std::numeric_limits<int64_t>::digits <= 4 * 16);

  struct Level {
    Sums run;     ///< of the present run
    Sums before;  ///< of all runs before it
    Sums result;
    int64_t length;  ///< of the present run
  };

  const Sums& add(std::size_t number, const Sums& totals) {
    Level& level = levels_[number];
    if (number == used_) {
      ++used_;
      level.length = 0;
      level.run.fill(neutral_of<c, Value>());
      level.before.fill(neutral_of<c, Value>());
    }
    for (std::size_t i = 0; i < lines_; ++i) {
      level.run[i] = joined<c>(level.run[i], totals[i]);
      level.result[i] = joined<c>(level.before[i], level.run[i]);
    }
    if (++level.length == reduction_order::scan_run) {
      level.before = add(number + 1, level.run);
      level.run.fill(neutral_of<c, Value>());
      level.length = 0;
    }
    return level.result;
  }

  const std::size_t lines_;
  std::size_t used_ = 0;
  std::array<Level, most_levels> levels_;  // as far as they are used
};

/// Lines together; `is_packed`: they lie side by side, in vectors.
template <Combine join_by, DType dtype, bool is_packed>
inline void add_up_block(const typename Elements<dtype>::Stored* x,
                         typename Elements<dtype>::Stored* out, const Lines::Block& block,
                         int64_t size) {
  using Value = typename Elements<dtype>::Value;
  using Sums = typename Totals<join_by, Value, Lines::most>::Sums;
  const auto lines = static_cast<std::size_t>(block.lines);
  const int64_t x_step = is_packed ? 1 : block.walks[0].across;
  const int64_t out_step = is_packed ? 1 : block.walks[1].across;
  Totals<join_by, Value, Lines::most> totals(lines);
  Sums run, before;
  before.fill(neutral_of<join_by, Value>());
  for (int64_t first = 0; first < size; first += reduction_order::scan_run) {
    const int64_t last = std::min(first + reduction_order::scan_run, size);
    run.fill(neutral_of<join_by, Value>());
    for (int64_t i = first; i < last; ++i) {
      const auto* const from = x + block.walks[0].at(i, 0);
      auto* const to = out + block.walks[1].at(i, 0);
      for (std::size_t c = 0; c < lines; ++c) {
        const auto at = static_cast<int64_t>(c);
        run[c] = joined<join_by>(run[c], value_of<dtype>(from[at * x_step]));
        to[at * out_step] = stored<dtype>(joined<join_by>(before[c], run[c]));
      }
    }
    if (last < size) before = totals.add(run);
  }
}

/// A contiguous line, several runs at a time: each is a chain of joins that wait for each
/// other.
template <Combine c, DType dtype>
inline void add_up_line(const typename Elements<dtype>::Stored* x,
                        typename Elements<dtype>::Stored* out, int64_t size) {
  using Value = typename Elements<dtype>::Value;
  constexpr int64_t run = reduction_order::scan_run;
  constexpr int64_t runs_at_once = 8;
  Totals<c, Value, 1> totals(1);
  Value before = neutral_of<c, Value>();
  std::array<Value, run * runs_at_once> sums;
  const auto at = [](int64_t i) { return static_cast<std::size_t>(i); };
  for (int64_t first = 0; first < size; first += run * runs_at_once) {
    const int64_t length = std::min(run * runs_at_once, size - first);
    const auto* const from = x + first;
    auto* const to = out + first;
    if (length == run * runs_at_once) {
      std::array<Value, runs_at_once> chains;
      chains.fill(neutral_of<c, Value>());
      for (int64_t i = 0; i < run; ++i) {
        for (int64_t r = 0; r < runs_at_once; ++r) {
          chains[at(r)] = joined<c>(chains[at(r)], value_of<dtype>(from[r * run + i]));
          sums[at(r * run + i)] = chains[at(r)];
        }
      }
    } else {
      for (int64_t i = 0; i < length; ++i) {
        const Value value = value_of<dtype>(from[i]);
        sums[at(i)] = i % run == 0 ? value : joined<c>(sums[at(i - 1)], value);
      }
    }
    for (int64_t start = 0; start < length; start += run) {
      const int64_t end = std::min(start + run, length);
      for (int64_t i = start; i < end; ++i) to[i] = stored<dtype>(joined<c>(before, sums[at(i)]));
      if (end == start + run) before = totals.add({sums[at(end - 1)]})[0];
    }
  }
}

/// A contiguous line that is a run, or less.
template <Combine c, DType dtype>
inline void add_up_run(const typename Elements<dtype>::Stored* x,
                       typename Elements<dtype>::Stored* out, int64_t size) {
  using Value = typename Elements<dtype>::Value;
  Value sum = neutral_of<c, Value>();
  for (int64_t i = 0; i < size; ++i) {
    sum = joined<c>(sum, value_of<dtype>(x[i]));
    out[i] = stored<dtype>(sum);
  }
}

/// All lines of a block. `has_vectors`: those side by side are worth code of their own.
template <Combine c, DType dtype, bool has_vectors>
inline void add_up_lines(const typename Elements<dtype>::Stored* x,
                         typename Elements<dtype>::Stored* out, const Lines::Block& block,
                         int64_t size) {
  const Lines::Walk &from = block.walks[0], &to = block.walks[1];
  const bool are_contiguous = from.along == 1 && to.along == 1;
  if (are_contiguous && size <= reduction_order::scan_run) {
    for (int64_t line = 0; line < block.lines; ++line)
      add_up_run<c, dtype>(x + from.at(0, line), out + to.at(0, line), size);
    return;
  }
  const bool is_turned =
      are_contiguous && size < Lines::short_line && block.lines > Lines::most_contiguous;
  if (are_contiguous && !is_turned) {
    for (int64_t line = 0; line < block.lines; ++line)
      add_up_line<c, dtype>(x + from.at(0, line), out + to.at(0, line), size);
    return;
  }
  // So that vectors run across them.
  struct alignas(64) Memory {
    std::array<typename Elements<dtype>::Stored, Lines::most * Lines::short_line> values, sums;
    Memory() {}  // NOLINT: filled below
  } memory;
  if (is_turned) read_side_by_side(x, from, block.lines, size, memory.values.data(), block.lines);
  const Lines::Walk walk = {.start = 0, .along = block.lines, .across = 1};
  const Lines::Block visited =
      is_turned ? Lines::Block{.lines = block.lines, .walks = {walk, walk, walk}} : block;
  const auto* const values = is_turned ? memory.values.data() : x;
  auto* const sums = is_turned ? memory.sums.data() : out;
  if (has_vectors && visited.walks[0].across == 1 && visited.walks[1].across == 1)
    add_up_block<c, dtype, true>(values, sums, visited, size);
  else
    add_up_block<c, dtype, false>(values, sums, visited, size);
  if (is_turned) write_side_by_side(sums, block.lines, block.lines, size, out, to);
}

template <DType dtype>
struct AddUp {
  using Stored = typename Elements<dtype>::Stored;
  template <class Width>
  void operator()(Width, const Stored* x, Stored* out, const Lines::Block* block,
                  int64_t size) const {
    add_up_lines<Combine::add, dtype, true>(x, out, *block, size);
  }
};

/// Where a join is a long formula: lines together, each in its lane of arrays of one length, which
/// compilers make vectors of.
template <Combine c, DType dtype, std::size_t lanes>
inline void join_lines(const typename Elements<dtype>::Stored* x,
                       typename Elements<dtype>::Stored* out, const Lines::Block& block,
                       int64_t size) {
  using Value = typename Elements<dtype>::Value;
  std::array<Value, lanes> values, run, before, sums;
  values.fill(neutral_of<c, Value>());
  Totals<c, Value, lanes> totals(lanes);
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t line = 0; line < block.lines; ++line)
      values[static_cast<std::size_t>(line)] = value_of<dtype>(x[block.walks[0].at(i, line)]);
    const bool is_start = i % reduction_order::scan_run == 0;
    if (is_start && i > 0) before = totals.add(run);
    for (std::size_t k = 0; k < lanes; ++k)
      run[k] = is_start ? values[k] : joined<c>(run[k], values[k]);
    sums = run;
    if (i >= reduction_order::scan_run)
      for (std::size_t k = 0; k < lanes; ++k) sums[k] = joined<c>(before[k], run[k]);
    for (int64_t line = 0; line < block.lines; ++line)
      out[block.walks[1].at(i, line)] = stored<dtype>(sums[static_cast<std::size_t>(line)]);
  }
}

/// The same for a contiguous line: a lane for each of several runs.
template <Combine c, DType dtype>
inline void join_line(const typename Elements<dtype>::Stored* x,
                      typename Elements<dtype>::Stored* out, int64_t size) {
  using Value = typename Elements<dtype>::Value;
  constexpr std::size_t run = reduction_order::scan_run, lanes = 8;
  std::array<std::array<Value, lanes>, run> sums;
  Totals<c, Value, 1> totals(1);
  std::array<Value, lanes> before;
  Value last = neutral_of<c, Value>();
  for (int64_t first = 0; first < size; first += run * lanes) {
    const auto length = static_cast<std::size_t>(std::min<int64_t>(run * lanes, size - first));
    for (std::size_t i = 0; i < run * lanes; ++i)
      sums[i % run][i / run] =
          i < length ? value_of<dtype>(x[first + static_cast<int64_t>(i)]) : neutral_of<c, Value>();
    for (std::size_t i = 1; i < run; ++i)
      for (std::size_t k = 0; k < lanes; ++k) sums[i][k] = joined<c>(sums[i - 1][k], sums[i][k]);
    for (std::size_t k = 0; k < lanes; ++k) {
      before[k] = last;
      if (run * (k + 1) <= length) last = totals.add({sums[run - 1][k]})[0];
    }
    for (auto& row : sums)
      for (std::size_t k = 0; k < lanes; ++k) row[k] = joined<c>(before[k], row[k]);
    for (std::size_t i = 0; i < length; ++i)
      out[first + static_cast<int64_t>(i)] = stored<dtype>(sums[i % run][i / run]);
  }
}

template <Combine c, DType dtype>
struct JoinUp {
  using Stored = typename Elements<dtype>::Stored;
  template <class Width>
  void operator()(Width, const Stored* x, Stored* out, const Lines::Block* block,
                  int64_t size) const {
    constexpr int64_t long_line = 8 * reduction_order::scan_run;
    const Lines::Walk& from = block->walks[0];
    const Lines::Walk& to = block->walks[1];
    if (from.along == 1 && to.along == 1 && size >= long_line) {
      for (int64_t line = 0; line < block->lines; ++line)
        join_line<c, dtype>(x + from.at(0, line), out + to.at(0, line), size);
    } else if (block->lines <= Lines::most_contiguous) {
      join_lines<c, dtype, Lines::most_contiguous>(x, out, *block, size);
    } else {
      join_lines<c, dtype, Lines::most>(x, out, *block, size);
    }
  }
};

/// Products and extremes, which are rare: one loop for all instruction sets.
template <Combine c, DType dtype>
struct JoinUpOne {
  using Stored = typename Elements<dtype>::Stored;
  void operator()(const Stored* x, Stored* out, const Lines::Block* block, int64_t size) const {
    add_up_lines<c, dtype, false>(x, out, *block, size);
  }
};

using Loop = void (*)(const void* x, void* out, const Lines::Block*, int64_t size);

/// F of a block of elements of `dtype`, whatever the width of vectors.
template <class F, DType dtype>
struct OfMemory {
  using Stored = typename Elements<dtype>::Stored;
  template <class Width>
  void operator()(Width width, const void* x, void* out, const Lines::Block* block,
                  int64_t size) const {
    F{}(width, static_cast<const Stored*>(x), static_cast<Stored*>(out), block, size);
  }
  static void run(const void* x, void* out, const Lines::Block* block, int64_t size) {
    F{}(static_cast<const Stored*>(x), static_cast<Stored*>(out), block, size);
  }
};

template <class F, DType dtype>
Loop loop_of_isa() {
  return PerIsa<OfMemory<F, dtype>, const void*, void*, const Lines::Block*, int64_t>::at(
      current_isa());
}

/// Sums and products of integers have the same bits with and without a sign.
constexpr DType unsigned_of(DType dtype) {
  switch (dtype) {
    case i8:
      return u8;
    case i16:
      return u16;
    case i32:
      return u32;
    case i64:
      return u64;
    default:
      return dtype;
  }
}

/// The loop for a block of lines.
template <DType dtype>
Loop loop_for(Combine combine) {
  if constexpr (floating.contains(dtype)) {
    if (combine == Combine::log_add_exp)
      return loop_of_isa<JoinUp<Combine::log_add_exp, dtype>, dtype>();
  }
  switch (combine) {
    case Combine::multiply:
      return OfMemory<JoinUpOne<Combine::multiply, unsigned_of(dtype)>, unsigned_of(dtype)>::run;
    case Combine::maximum:
      return OfMemory<JoinUpOne<Combine::maximum, dtype>, dtype>::run;
    case Combine::minimum:
      return OfMemory<JoinUpOne<Combine::minimum, dtype>, dtype>::run;
    default:
      return loop_of_isa<AddUp<unsigned_of(dtype)>, unsigned_of(dtype)>();
  }
}

}  // namespace

void scan(const LibraryCall& call, const Launch& launch) {
  const Lines lines(call);
  const OperandLayout& layout = call.operands[0];
  Loop loop = nullptr;
  with_number_type(layout.dtype, [&](auto dtype) { loop = loop_for<dtype.value>(call.combine); });
  split(lines.blocks(), lines.grain(layout), launch.threads, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const Lines::Block block = lines.block(b);
      loop(launch.buffers[0], launch.buffers[1], &block, layout.shape[call.axis]);
    }
  });
}

}  // namespace nitinol::host
