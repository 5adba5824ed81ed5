// Reductions of one operand by native loops: sum, product, maximum, all, argmax ...
//
// The element stage accumulates what it loads and the row stage stores the result. Contiguous
// operands of the accumulator's type are read in place; others pass through a block on the stack.
//
// Many short rows, x[100000, 10], would be all overhead one by one. They are turned, some at a
// time, so that vectors run across rows, however they lie; each row still joins by the tree of its
// lanes, of which those beyond its length are neutral and change nothing.

#include "backends/host/accumulate.h"
#include "backends/host/combine.h"
#include "backends/host/convert.h"
#include "backends/host/loop_nest.h"
#include "backends/host/prebuilt_stages.h"
#include "backends/host/split.h"
#include "backends/host/transpose.h"
#include "core/kernel.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace nitinol::host {
namespace {

class PrebuiltReduction final : public Executable {
 public:
  explicit PrebuiltReduction(const Kernel& kernel)
      : kernel_(kernel),
        source_(kernel.stages[0].sources[0].index),
        result_(kernel.stages[1].sinks[0].index),
        reduction_(kernel.stages[0].sinks[0].index),
        dtype_(kernel.operands[source_].dtype),
        size_(static_cast<int64_t>(size_of(dtype_))),
        combiner_(combiner_of(kernel.reductions[reduction_])),
        accumulate_(accumulate_of(kernel.reductions[reduction_], current_isa())),
        lanes_(lanes_of(kernel.reductions[reduction_].type)),
        gather_(gather_of(dtype_)),
        scatter_(scatter_of(kernel.operands[result_].dtype)) {
    const StageFunction elements = kernel.order == Order::lanes
                                       ? call<&PrebuiltReduction::accumulate_lanes>
                                       : call<&PrebuiltReduction::accumulate_rows>;
    codes_ = {StageCode{elements, this}, StageCode{call<&PrebuiltReduction::store>, this}};
  }

  void launch(const Launch& launch) const override {
    const bool may_be_short = kernel_.order == Order::lanes && kernel_.reduced_loops == 1 &&
                              launch.sizes.back() > 0 && launch.sizes.back() <= short_row;
    if (!may_be_short || !run_short_rows(launch)) run_loop_nest(kernel_, codes_.data(), launch);
  }

 private:
  static constexpr int64_t short_row = 32, fewest_rows = 16, most_rows = 1024;
  /// Elements that pass through a block on the stack at a time.
  static constexpr int64_t piece_length = reduction_order::lanes_run;

  /// Some rows turned: values of all rows at one index lie together.
  struct alignas(64) Turned {
    std::array<char, 16384> bytes;
  };
  [[nodiscard]] int64_t value_size() const { return static_cast<int64_t>(combiner_.value_bytes); }
  [[nodiscard]] int64_t rows_at_once(int64_t length) const {
    return std::min(static_cast<int64_t>(sizeof(Turned)) / (length * value_size()), most_rows);
  }

  struct alignas(64) Buffer {
    std::array<char, piece_length * sizeof(uint64_t)> bytes;
  };

  template <void (PrebuiltReduction::*member)(const StageCall&) const>
  static void call(const void* self, const StageCall& call) {
    (static_cast<const PrebuiltReduction*>(self)->*member)(call);
  }

  /// False if these rows are not many.
  [[nodiscard]] bool run_short_rows(const Launch& launch) const {
    Domain domain;
    make_domain(kernel_, launch, domain);
    if (domain.is_empty) return true;
    if (domain.rank == 0) return false;
    const auto last = static_cast<std::size_t>(domain.rank - 1);
    const int64_t rows = domain.sizes[last], length = domain.reduced_size;
    if (rows < fewest_rows) return false;
    const int64_t width = rows_at_once(length);
    const int64_t pieces = (rows + width - 1) / width;
    const int64_t grain = grain_of(kernel_) / (width * length) + 1;
    split(domain.count(0, domain.rank - 1) * pieces, grain, launch.threads,
          [&](int64_t first, int64_t end) {
            Pointers pointers;
            for (int64_t i = first; i < end; ++i) {
              const int64_t row = i % pieces * width;
              const int64_t count = std::min(width, rows - row);
              seek(domain, domain.rank - 1, i / pieces, pointers);
              reduce_turned({.from = pointers[source_] + row * domain.steps[last][source_],
                             .from_step = domain.steps[last][source_],
                             .to = nullptr,
                             .to_step = count * value_size(),
                             .rows = length,
                             .columns = count},
                            domain.reduced_steps[source_],
                            pointers[result_] + row * domain.steps[last][result_],
                            domain.steps[last][result_]);
            }
          });
    return true;
  }

  /// Elements of a row are `step` bytes apart.
  void turn(const TransposedBlock& block, int64_t step) const {
    if (is_direct(dtype_) && step == size_) return transpose(block, combiner_.value_bytes);
    for (int64_t i = 0; i < block.rows; ++i) {
      gather_(block.from + i * step, block.from_step, block.to + i * block.to_step, block.columns);
    }
  }

  void reduce_turned(TransposedBlock block, int64_t step, char* out, int64_t out_step) const {
    Turned turned;
    block.to = turned.bytes.data();
    turn(block, step);
    const auto at = [&](int64_t index) { return turned.bytes.data() + index * block.to_step; };
    if (combiner_.has_positions) {
      std::array<int64_t, most_rows> best_at;
      Buffer best;
      combiner_.fill(best.bytes.data(), best_at.data(), block.columns);
      accumulate_.rows({at(0), block.to_step, block.rows, block.columns, 0}, best.bytes.data(),
                       best_at.data());
      return scatter_(best_at.data(), out, out_step, block.columns);
    }
    // Lane l joins lane l + half, all of them at once.
    for (int64_t half = lanes_ / 2; half > 0; half /= 2) {
      const int64_t lanes = std::min(half, std::min(block.rows, 2 * half) - half);
      if (lanes > 0) accumulate_.rows({at(half), 0, 1, lanes * block.columns, 0}, at(0), nullptr);
    }
    scatter_(at(0), out, out_step, block.columns);
  }

  [[nodiscard]] int64_t* positions(const StageCall& call) const {
    return combiner_.has_positions ? call.accumulator_positions[reduction_] : nullptr;
  }

  void accumulate_lanes(const StageCall& call) const {
    auto* const results = static_cast<char*>(call.accumulators[reduction_]);
    const int64_t bytes = value_size();
    for (int64_t row = 0; row < call.outer_size; ++row) {
      const char* const from = call.pointers[source_] + row * call.outer[source_];
      int64_t* const at = combiner_.has_positions ? positions(call) + row : nullptr;
      if (is_direct(dtype_) && call.inner[source_] == size_)
        accumulate_.lanes({from, call.inner_size, call.position, true, true}, results + row * bytes,
                          at);
      else
        accumulate_staged(call, from, results + row * bytes, at);
    }
  }

  /// One row, piece by piece through a block on the stack.
  void accumulate_staged(const StageCall& call, const char* from, char* result, int64_t* at) const {
    const int64_t step = call.inner[source_];
    Buffer buffer, lanes;
    for (int64_t i = 0; i < call.inner_size; i += piece_length) {
      const int64_t n = std::min(piece_length, call.inner_size - i);
      gather_(from + i * step, step, buffer.bytes.data(), n);
      accumulate_.lanes(
          {buffer.bytes.data(), n, call.position + i, i == 0, i + n == call.inner_size},
          lanes.bytes.data(), at);
    }
    std::memcpy(result, lanes.bytes.data(), combiner_.value_bytes);
  }

  void accumulate_rows(const StageCall& call) const {
    const char* const from = call.pointers[source_];
    const int64_t step = call.inner[source_], row_step = call.outer[source_];
    auto* const sums = static_cast<char*>(call.accumulators[reduction_]);
    if (is_direct(dtype_) && (step == size_ || call.inner_size == 1)) {
      accumulate_.rows({from, row_step, call.outer_size, call.inner_size, call.position}, sums,
                       positions(call));
      return;
    }
    Buffer buffer;
    const int64_t bytes = value_size();
    for (int64_t j = 0; j < call.inner_size; j += piece_length) {
      const int64_t n = std::min(piece_length, call.inner_size - j);
      int64_t* const at = combiner_.has_positions ? positions(call) + j : nullptr;
      for (int64_t i = 0; i < call.outer_size; ++i) {
        gather_(from + i * row_step + j * step, step, buffer.bytes.data(), n);
        accumulate_.rows({buffer.bytes.data(), 0, 1, n, call.position + i}, sums + j * bytes, at);
      }
    }
  }

  void store(const StageCall& call) const {
    scatter_(call.results[reduction_], call.pointers[result_], call.inner[result_],
             call.inner_size);
  }

  const Kernel kernel_;
  const std::size_t source_, result_, reduction_;
  const DType dtype_;
  const int64_t size_;
  const Combiner combiner_;
  const Accumulate accumulate_;
  const int lanes_;
  const Gather gather_;
  const Scatter scatter_;
  std::array<StageCode, 2> codes_;
};

bool accumulates_its_argument(const Kernel& kernel) {
  const Stage& stage = kernel.stages[0];
  if (stage.level != Stage::Level::element || stage.sources.size() != 1 ||
      stage.sinks.size() != 1 || stage.sources[0].kind != Source::Kind::operand ||
      stage.sinks[0].kind != Sink::Kind::accumulate) {
    return false;
  }
  const Operand& operand = kernel.operands[stage.sources[0].index];
  return operand.role == Role::input && is_identity(stage, operand.dtype) &&
         kernel.reductions[0].type == compute_type(operand.dtype);
}

bool stores_the_result(const Kernel& kernel) {
  const Stage& stage = kernel.stages[1];
  if (stage.level != Stage::Level::row || stage.sources.size() != 1 || stage.sinks.size() != 1 ||
      stage.sources[0].kind != Source::Kind::reduction ||
      stage.sinks[0].kind != Sink::Kind::store) {
    return false;
  }
  const DType dtype = kernel.operands[stage.sinks[0].index].dtype;
  const Combine combine = kernel.reductions[0].combine;
  return compute_type(dtype) == (is_arg(combine) ? ScalarType::i64 : kernel.reductions[0].type) &&
         is_identity(stage, dtype);
}

}  // namespace

std::unique_ptr<Executable> make_prebuilt_reduction(const Kernel& kernel) {
  if (kernel.stages.size() != 2 || kernel.reductions.size() != 1) return nullptr;
  if (!accumulates_its_argument(kernel) || !stores_the_result(kernel)) return nullptr;
  return std::make_unique<PrebuiltReduction>(kernel);
}

}  // namespace nitinol::host
