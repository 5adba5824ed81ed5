// Long chains of additions lose digits, and no wide machine runs them: sums are formed in runs
// (reduction_order::scan_run). Within a run they are formed one after another; what comes before a
// run is the running sum of the runs' totals, which is formed in the same way, in runs of runs. So
// an element is the end of a chain of a few additions a level, and levels are few.
//
//   run 2 of x: [a b c ...]    before = scan(totals of runs 0 and 1)[1]
//   out:        [before + a, before + (a + b), before + ((a + b) + c), ...]
//
// Threads share lines. A block of neighbouring ones (lines.h) goes along the axis together.
#include "backends/host/cumsum.h"

#include "backends/host/elements.h"
#include "backends/host/lines.h"
#include "backends/host/split.h"
#include "backends/host/per_isa.h"
#include "core/native.h"
#include "core/reduction.h"

#include <array>
#include <limits>
#include <type_traits>

namespace nitinol::host {
namespace {

/// Per line of a block.
template <class Value>
using Sums = std::array<Value, Lines::most>;

/// What changes nothing that it is added to: -0 keeps the sign of zeros.
template <class Value>
constexpr Value neutral() {
  return std::is_floating_point_v<Value> ? static_cast<Value>(-0.0) : Value{};
}

/// The running sums of the totals of runs; level 0 is those of elements.
template <class Value>
class Totals {
 public:
  explicit Totals(int64_t lines) : lines_(lines) {}

  /// The sums up to and with these, the totals of the next run.
  const Sums<Value>& add(const Sums<Value>& totals) { return add(0, totals); }

 private:
  /// Runs of runs fill a level each: more levels than any axis has.
  static constexpr int most_levels = 16;
  static_assert(std::numeric_limits<int64_t>::digits / 4 < most_levels &&
                reduction_order::scan_run >= 16);

  struct Level {
    Sums<Value> run;     ///< of the present run
    Sums<Value> before;  ///< of all runs before it
    Sums<Value> result;
    int64_t length;  ///< of the present run
  };

  const Sums<Value>& add(int number, const Sums<Value>& totals) {
    Level& level = levels_[static_cast<std::size_t>(number)];
    if (number == used_) {
      ++used_;
      level.length = 0;
      level.run.fill(neutral<Value>());
      level.before.fill(neutral<Value>());
    }
    for (std::size_t c = 0; c < static_cast<std::size_t>(lines_); ++c) {
      level.run[c] = native::add(level.run[c], totals[c]);
      level.result[c] = native::add(level.before[c], level.run[c]);
    }
    if (++level.length == reduction_order::scan_run) {
      level.before = add(number + 1, level.run);
      level.run.fill(neutral<Value>());
      level.length = 0;
    }
    return level.result;
  }

  const int64_t lines_;
  int used_ = 0;
  std::array<Level, most_levels> levels_;  // as far as they are used
};

/// `is_packed`: lines lie side by side, in vectors.
template <DType dtype, bool is_packed>
inline void add_up(const typename Elements<dtype>::Stored* x,
                   typename Elements<dtype>::Stored* out, const Lines::Block& block,
                   int64_t size) {
  using Value = typename Elements<dtype>::Value;
  const int64_t x_step = is_packed ? 1 : block.walks[0].across;
  const int64_t out_step = is_packed ? 1 : block.walks[1].across;
  Totals<Value> totals(block.lines);
  Sums<Value> run, before;
  before.fill(neutral<Value>());
  for (int64_t first = 0; first < size; first += reduction_order::scan_run) {
    const int64_t last = std::min(first + reduction_order::scan_run, size);
    run.fill(neutral<Value>());
    for (int64_t i = first; i < last; ++i) {
      const auto* const from = x + block.walks[0].at(i, 0);
      auto* const to = out + block.walks[1].at(i, 0);
      for (int64_t c = 0; c < block.lines; ++c) {
        auto& sum = run[static_cast<std::size_t>(c)];
        sum = native::add(sum, value_of<dtype>(from[c * x_step]));
        to[c * out_step] = stored<dtype>(native::add(before[static_cast<std::size_t>(c)], sum));
      }
    }
    if (last < size) before = totals.add(run);
  }
}

template <DType dtype>
struct AddUp {
  using Stored = typename Elements<dtype>::Stored;
  template <class Width>
  void operator()(Width, const Stored* x, Stored* out, const Lines::Block* block,
                  int64_t size) const {
    const bool is_packed = block->walks[0].across == 1 && block->walks[1].across == 1;
    is_packed ? add_up<dtype, true>(x, out, *block, size)
              : add_up<dtype, false>(x, out, *block, size);
  }
};

}  // namespace

void cumsum(const LibraryCall& call, const Launch& launch) {
  const Lines lines(call);
  const OperandLayout& layout = call.operands[0];
  with_number_type(layout.dtype, [&](auto dtype) {
    using Stored = typename Elements<dtype.value>::Stored;
    const auto* const x = static_cast<const Stored*>(launch.buffers[0]);
    auto* const out = static_cast<Stored*>(launch.buffers[1]);
    const auto add = PerIsa<AddUp<dtype.value>, const Stored*, Stored*, const Lines::Block*,
                            int64_t>::at(current_isa());
    split(lines.blocks(), lines.grain(layout), launch.threads, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        const Lines::Block block = lines.block(b);
        add(x, out, &block, layout.shape[call.axis]);
      }
    });
  });
}

}  // namespace nitinol::host
