// Reductions in the canonical order, which no thread count, vector width or device changes.
//
// The reduced dimension is cut into blocks of a fixed length. A stage function accumulates one
// block: into lanes (Order::lanes), which are then folded as a binary tree, or element after
// element for a tile of rows at once (Order::sequential); or lane after lane for such a tile
// (Order::across), whose lanes are folded all rows at once. The results of blocks join pairwise:
// adjacent pairs, level by level, an odd last one carried up. Example: 7 blocks join as
//   ((0 1) (2 3)) ((4 5) 6).
//
// A stack gives that tree without keeping all blocks: each new result joins the top while the top
// stands for as many blocks as it does; at the end the rest joins from the top down. An aligned
// group of 2^g blocks is a subtree, so threads may each compute groups and the groups join in the
// same way. So may a call of a stage: to one that needs nothing of earlier stages, blocks of a long
// row, or of few rows side by side (BlocksAbreast), are rows, and it visits up to 64 of them.
//
// A job is one tile of rows, and passes through all stages. Threads share the jobs; where there are
// few jobs with many blocks, they share the groups of each stage.

#include "backends/host/accumulate.h"
#include "backends/host/block_stack.h"
#include "backends/host/combine.h"
#include "backends/host/loop_nest.h"
#include "backends/host/reduction_tile.h"
#include "backends/host/row_copies.h"
#include "backends/host/scratch.h"
#include "backends/host/split.h"
#include "core/kernel.h"
#include "core/parallel.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

namespace nitinol::host {
namespace {

constexpr int64_t most_groups = 64;

struct StageInfo {
  const Stage* stage;
  const StageCode* code;
  uint16_t* reductions;  ///< that it accumulates
  std::size_t reduction_count;
  bool has_lanes;  ///< Order::across: the order of joining shows
  /// Blocks of a row are to it as rows are: it visits some in a call.
  bool takes_blocks;

  [[nodiscard]] std::span<const uint16_t> accumulated() const {
    return {reductions, reduction_count};
  }
};

/// What is the same for all jobs of a launch.
struct Shared {
  const Kernel& kernel;
  const Launch& launch;
  const Domain& domain;
  bool is_lanes;
  /// Order::across: lanes that each row has, where a stage has reductions whose order shows; else
  /// 0.
  int64_t lanes;
  int64_t block_length;
  int64_t blocks;
  int64_t width;           ///< rows of a full tile
  int64_t blocks_at_once;  ///< at most, for stages that take some
  int64_t slots;           ///< values of a reduction that one call sets, at most
  int64_t tiles;           ///< along the last row loop
  int64_t jobs;
  const int64_t* row_steps;      ///< from row to row of a tile
  const int64_t* reduced_steps;  ///< from element to element of a row
  const int64_t* block_steps;    ///< from block to block of a row
  const int64_t* lane_steps;     ///< from element to element of a lane
  bool has_copies;               ///< operands that are turned, or brought together (RowCopies)
  StageInfo* stages;
  Combiner* combiners;

  [[nodiscard]] BlockStack stack_of(int64_t most_blocks, Scratch& scratch) const {
    return {{combiners, kernel.reductions.size()}, slots, most_blocks, scratch};
  }
};

/// One job: where it is and what its stages have found out so far.
struct Job {
  Pointers pointers;
  int64_t rows;
  const void** results;
  void** row_values;
};

/// Accumulates blocks on one thread.
class Accumulator {
 public:
  [[gnu::always_inline]] Accumulator(const Shared& shared, Scratch& scratch, int64_t blocks)
      : shared_(shared),
        stack_(shared.stack_of(blocks, scratch)),
        values_(scratch.take<void*>(shared.kernel.reductions.size())),
        positions_(scratch.take<int64_t*>(shared.kernel.reductions.size())) {
    if (shared.has_copies) take_copies(scratch);
    if (shared.lanes > 0) take_lanes(scratch);
    if (shared.blocks_at_once > 1 && !shared.is_lanes) [[unlikely]]
      abreast_.emplace(shared.kernel, shared.domain, shared.blocks_at_once, scratch);
  }

  /// Blocks [first, last) of a stage; their joined results are then in results(r).
  [[gnu::always_inline]] void run(const StageInfo& stage, const Job& job, int64_t first,
                                  int64_t last) {
    stack_.clear();
    const int64_t whole = std::min(last, shared_.domain.reduced_size / shared_.block_length);
    for (int64_t block = first; block < last;) {
      const int64_t count = stage.takes_blocks ? blocks_at_once(whole - block) : 1;
      start_rows(stage, job.rows * count);
      if (stage.has_lanes) [[unlikely]]
        visit_lanes(stage, job, block);
      else
        visit(stage, job, block, count);
      if (count > 1) [[unlikely]] {
        const BlockOrder order = shared_.is_lanes ? BlockOrder::counted : BlockOrder::reversed;
        stack_.join_blocks(stage.accumulated(), job.rows, count, order);
      }
      stack_.push(stage.accumulated(), job.rows, count);
      block += count;
    }
    stack_.finish(stage.accumulated(), job.rows);
  }

  [[nodiscard]] BlockStack& stack() { return stack_; }

 private:
  [[gnu::noinline]] void take_copies(Scratch& scratch) {
    const int64_t points =
        std::min(shared_.block_length, shared_.domain.reduced_size) * shared_.width;
    if (shared_.kernel.reduced_loops > 1)
      copies_.emplace(shared_.kernel, shared_.launch, shared_.domain, points, scratch);
    else
      turned_ = take_turned(shared_.kernel, shared_.domain, points, scratch);
  }

  [[gnu::noinline]] void take_lanes(Scratch& scratch) {
    lanes_ = scratch.take<Lanes>(shared_.kernel.reductions.size());
    const auto values = static_cast<std::size_t>(shared_.lanes * shared_.width);
    for (std::size_t r = 0; r < shared_.kernel.reductions.size(); ++r) {
      if (!depends_on_order(shared_.kernel.reductions[r])) continue;
      const std::size_t bytes = values * shared_.combiners[r].value_bytes;
      lanes_[r] = {scratch.take<char>(bytes), scratch.take<char>(bytes),
                   accumulate_of(shared_.kernel.reductions[r], current_isa())};
    }
  }

  /// A power of two, of those that are left: a run of them starts at a multiple of its length.
  [[nodiscard]] int64_t blocks_at_once(int64_t left) const {
    const auto whole = static_cast<uint64_t>(std::max<int64_t>(left, 1));
    return std::min(shared_.blocks_at_once, static_cast<int64_t>(std::bit_floor(whole)));
  }

  [[nodiscard]] int64_t length_of(int64_t block) const {
    return std::min(shared_.block_length,
                    shared_.domain.reduced_size - block * shared_.block_length);
  }

  void start_rows(const StageInfo& stage, int64_t rows) {
    for (std::size_t i = 0; i < stage.reduction_count; ++i) {
      const std::size_t r = stage.reductions[i];
      values_[r] = stack_.values(r);
      positions_[r] = stack_.positions(r);
      // In lanes, every row starts from the neutral element by itself.
      if (!shared_.is_lanes) shared_.combiners[r].fill(values_[r], positions_[r], rows);
    }
  }

  [[gnu::always_inline]] void visit(const StageInfo& stage, const Job& job, int64_t block,
                                    int64_t count) {
    if (count > 1 && !shared_.is_lanes) [[unlikely]]
      return visit_abreast(stage, job, block, count);
    const int64_t* const rows = count > 1 ? shared_.block_steps : shared_.row_steps;
    call(stage, job, block * shared_.block_length,
         {.reduced = shared_.reduced_steps,
          .rows = rows,
          .length = length_of(block),
          .row_count = count > 1 ? count : job.rows});
  }

  [[gnu::noinline]] void visit_abreast(const StageInfo& stage, const Job& job, int64_t block,
                                       int64_t count) {
    const int64_t start = block * shared_.block_length;
    Pointers pointers;
    for (std::size_t k = 0; k < shared_.domain.operands; ++k) {
      pointers[k] = job.pointers[k] + start * shared_.reduced_steps[k];
    }
    TileSteps steps;
    const Piece piece = abreast_->load(*stage.stage, count, pointers, steps);
    call_at(stage, job, start, piece, pointers);
  }

  /// Order::across. Lanes start from the neutral element in each run, and join those before.
  void visit_lanes(const StageInfo& stage, const Job& job, int64_t block) {
    const int64_t length = length_of(block), lanes = std::min(shared_.lanes, length);
    for (int64_t run = 0; run < length; run += reduction_order::lanes_run) {
      const int64_t size = std::min(reduction_order::lanes_run, length - run);
      const int64_t used = std::min(lanes, size);
      for_lanes(stage, [&](const Combiner& combiner, const Lanes& of, std::size_t) {
        combiner.fill(run == 0 ? of.all : of.run, nullptr, used * job.rows);
      });
      for (int64_t lane = 0; lane < used; ++lane) {
        for_lanes(stage, [&](const Combiner& combiner, const Lanes& of, std::size_t r) {
          values_[r] = (run == 0 ? of.all : of.run) +
                       lane * job.rows * static_cast<int64_t>(combiner.value_bytes);
        });
        call(stage, job, block * shared_.block_length + run + lane,
             {.reduced = shared_.lane_steps,
              .rows = shared_.row_steps,
              .length = (size - lane + shared_.lanes - 1) / shared_.lanes,
              .row_count = job.rows});
      }
      if (run == 0) continue;
      for_lanes(stage, [&](const Combiner& combiner, const Lanes& of, std::size_t) {
        combiner.join(of.all, nullptr, of.run, nullptr, used * job.rows);
      });
    }
    for_lanes(stage, [&](const Combiner& combiner, const Lanes& of, std::size_t r) {
      fold_lanes_of_rows(of.accumulate, combiner.value_bytes, of.all, lanes, job.rows);
      std::memcpy(stack_.values(r), of.all,
                  static_cast<std::size_t>(job.rows) * combiner.value_bytes);
    });
  }

  /// Of a reduction whose order shows: a value for each row, lane after lane.
  struct Lanes {
    char *all, *run;
    Accumulate accumulate;
  };

  template <class Do>
  void for_lanes(const StageInfo& stage, const Do& act) const {
    for (std::size_t i = 0; i < stage.reduction_count; ++i) {
      const std::size_t r = stage.reductions[i];
      if (depends_on_order(shared_.kernel.reductions[r])) act(shared_.combiners[r], lanes_[r], r);
    }
  }

  /// From element number `start` of the rows on.
  [[gnu::always_inline]] void call(const StageInfo& stage, const Job& job, int64_t start,
                                   const Piece& piece) const {
    Pointers pointers;
    for (std::size_t k = 0; k < shared_.domain.operands; ++k) {
      pointers[k] = job.pointers[k] + start * shared_.reduced_steps[k];
    }
    if (shared_.has_copies) [[unlikely]]
      return call_copied(stage, job, start, piece, pointers);
    call_at(stage, job, start, piece, pointers);
  }

  [[gnu::noinline]] void call_copied(const StageInfo& stage, const Job& job, int64_t start,
                                     const Piece& piece, Pointers& pointers) const {
    TileSteps steps;
    if (!copies_)
      return call_at(stage, job, start,
                     turned(shared_.kernel, shared_.domain, piece, turned_, pointers, steps),
                     pointers);
    const Piece rows = copies_->load(*stage.stage, piece, start, job.pointers, pointers, steps);
    call_at(stage, job, start, rows, pointers);
    copies_->store(*stage.stage, piece, start, job.pointers);
  }

  [[gnu::always_inline]] void call_at(const StageInfo& stage, const Job& job, int64_t start,
                                      const Piece& piece, const Pointers& pointers) const {
    const bool is_lanes = shared_.is_lanes;
    stage.code->function(stage.code->self, {.pointers = pointers.data(),
                                            .outer = is_lanes ? piece.rows : piece.reduced,
                                            .inner = is_lanes ? piece.reduced : piece.rows,
                                            .outer_size = is_lanes ? piece.row_count : piece.length,
                                            .inner_size = is_lanes ? piece.length : piece.row_count,
                                            .scalars = shared_.launch.scalars.data(),
                                            .accumulators = values_,
                                            .accumulator_positions = positions_,
                                            .position = start,
                                            .results = job.results,
                                            .row_values = job.row_values,
                                            .status = shared_.launch.status});
  }

  const Shared& shared_;
  BlockStack stack_;
  void** values_;
  int64_t** positions_;
  Lanes* lanes_ = nullptr;
  char** turned_ = nullptr;  ///< by operand: where it is turned, or null
  std::optional<RowCopies> copies_;
  std::optional<BlocksAbreast> abreast_;
};

/// A scratch operand: in memory of its own, or in an output's.
struct Kept {
  std::size_t operand, output;
  char* memory;
};

/// Runs jobs one after another; its stages may use all threads. What a small reduction needs is
/// inlined down to the call of its stage, the rest is not: a softmax of [8, 10] is 7,000
/// instructions altogether.
class JobRunner {
 public:
  [[gnu::always_inline]] JobRunner(const Shared& shared, bool is_alone)
      : shared_(shared), is_alone_(is_alone), accumulator_(shared, scratch_, shared.blocks) {
    const Kernel& kernel = shared.kernel;
    const auto width = static_cast<std::size_t>(shared.width);
    kept_ = scratch_.take<Kept>(shared.domain.operands);
    for (std::size_t k = 0; k < shared.domain.operands; ++k) {
      const Operand& operand = kernel.operands[k];
      if (operand.role != Role::scratch) continue;
      const auto points = width * static_cast<std::size_t>(shared.domain.reduced_size);
      const bool is_own = operand.alias < 0;
      kept_[kept_count_++] = {
          .operand = k,
          .output = static_cast<std::size_t>(operand.alias),
          .memory = is_own ? scratch_.take<char>(points * size_of(operand.dtype)) : nullptr};
    }
    results_ = scratch_.take<char*>(kernel.reductions.size());
    for (std::size_t r = 0; r < kernel.reductions.size(); ++r) {
      results_[r] = scratch_.take<char>(width * sizeof(uint64_t));
    }
    job_.results = const_cast<const void**>(reinterpret_cast<void**>(results_));
    job_.row_values = scratch_.take<void*>(kernel.row_values.size());
    for (std::size_t v = 0; v < kernel.row_values.size(); ++v) {
      job_.row_values[v] = scratch_.take<char>(width * sizeof(uint64_t));
    }
  }

  void run_all(int64_t first, int64_t end) {
    for (int64_t job = first; job < end; ++job) {
      start(job);
      run_stages();
    }
  }

 private:
  [[gnu::always_inline]] void run_stages() {
    for (std::size_t s = 0; s < shared_.kernel.stages.size(); ++s) {
      const StageInfo& stage = shared_.stages[s];
      if (stage.stage->level == Stage::Level::row)
        run_rows(stage);
      else
        run_elements(stage);
    }
  }

  void start(int64_t number) {
    find_rows(number);
    for (std::size_t i = 0; i < kept_count_; ++i) {
      const Kept& kept = kept_[i];
      job_.pointers[kept.operand] =
          kept.memory != nullptr ? kept.memory : job_.pointers[kept.output];
    }
  }

  void find_rows(int64_t number) {
    const Domain& domain = shared_.domain;
    job_.rows = 1;
    if (domain.rank == 0) return seek(domain, 0, 0, job_.pointers);
    const auto last_loop = static_cast<std::size_t>(domain.rank - 1);
    const int64_t outer = number / shared_.tiles;
    const int64_t first = (number - outer * shared_.tiles) * shared_.width;
    seek(domain, domain.rank - 1, outer, job_.pointers);
    for (std::size_t k = 0; k < domain.operands; ++k) {
      job_.pointers[k] += first * shared_.row_steps[k];
    }
    job_.rows = std::min(shared_.width, domain.sizes[last_loop] - first);
  }

  void run_rows(const StageInfo& stage) {
    const int64_t* const steps = shared_.row_steps;
    stage.code->function(stage.code->self, {.pointers = job_.pointers.data(),
                                            .outer = steps,
                                            .inner = steps,
                                            .outer_size = 1,
                                            .inner_size = job_.rows,
                                            .scalars = shared_.launch.scalars.data(),
                                            .accumulators = nullptr,
                                            .accumulator_positions = nullptr,
                                            .position = 0,
                                            .results = job_.results,
                                            .row_values = job_.row_values,
                                            .status = shared_.launch.status});
  }

  [[gnu::always_inline]] void run_elements(const StageInfo& stage) {
    if (shared_.blocks == 0) return fill_empty(stage);
    if (is_alone_)
      accumulator_.run(stage, job_, 0, shared_.blocks);
    else
      run_groups(stage);
    keep_results(stage);
  }

  [[gnu::noinline]] void fill_empty(const StageInfo& stage) {
    accumulator_.stack().clear();
    for (std::size_t i = 0; i < stage.reduction_count; ++i) {
      const std::size_t r = stage.reductions[i];
      BlockStack& stack = accumulator_.stack();
      shared_.combiners[r].fill_empty(stack.values(r), stack.positions(r), job_.rows);
    }
    keep_results(stage);
  }

  void keep_results(const StageInfo& stage) {
    const auto rows = static_cast<std::size_t>(job_.rows);
    for (std::size_t i = 0; i < stage.reduction_count; ++i) {
      const std::size_t r = stage.reductions[i];
      const Combiner& combiner = shared_.combiners[r];
      if (combiner.has_positions) {
        std::memcpy(results_[r], accumulator_.stack().positions(r), rows * sizeof(int64_t));
      } else {
        std::memcpy(results_[r], accumulator_.stack().values(r), rows * combiner.value_bytes);
      }
    }
  }

  /// All threads on one stage: each reduces groups of blocks, and the groups join here.
  [[gnu::noinline]] void run_groups(const StageInfo& stage) {
    const int64_t blocks = shared_.blocks;
    const auto group = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>((blocks + most_groups - 1) / most_groups)));
    const int64_t groups = (blocks + group - 1) / group;
    Scratch scratch;
    char** values = scratch.take<char*>(stage.reduction_count);
    int64_t** positions = scratch.take<int64_t*>(stage.reduction_count);
    const auto width = static_cast<std::size_t>(shared_.width);
    for (std::size_t i = 0; i < stage.reduction_count; ++i) {
      const Combiner& combiner = shared_.combiners[stage.reductions[i]];
      const std::size_t count = static_cast<std::size_t>(groups) * width;
      values[i] = scratch.take<char>(count * combiner.value_bytes);
      positions[i] = combiner.has_positions ? scratch.take<int64_t>(count) : nullptr;
    }
    const auto copy = [&](std::size_t i, int64_t number, BlockStack& stack, bool is_in) {
      const std::size_t r = stage.reductions[i];
      const std::size_t bytes = shared_.combiners[r].value_bytes;
      const auto rows = static_cast<std::size_t>(job_.rows);
      char* const kept = values[i] + static_cast<std::size_t>(number) * width * bytes;
      char* const top = stack.values(r);
      std::memcpy(is_in ? kept : top, is_in ? top : kept, rows * bytes);
      if (positions[i] == nullptr) return;
      int64_t* const kept_at = positions[i] + static_cast<std::size_t>(number) * width;
      int64_t* const top_at = stack.positions(r);
      std::memcpy(is_in ? kept_at : top_at, is_in ? top_at : kept_at, rows * sizeof(int64_t));
    };
    split(groups, 1, shared_.launch.threads, [&](int64_t first, int64_t last) {
      Scratch own;
      Accumulator accumulator(shared_, own, group);
      for (int64_t number = first; number < last; ++number) {
        accumulator.run(stage, job_, number * group, std::min((number + 1) * group, blocks));
        for (std::size_t i = 0; i < stage.reduction_count; ++i) {
          copy(i, number, accumulator.stack(), true);
        }
      }
    });
    BlockStack& stack = accumulator_.stack();
    stack.clear();
    for (int64_t number = 0; number < groups; ++number) {
      for (std::size_t i = 0; i < stage.reduction_count; ++i) copy(i, number, stack, false);
      stack.push(stage.accumulated(), job_.rows, 1);
    }
    stack.finish(stage.accumulated(), job_.rows);
  }

  Scratch scratch_;
  const Shared& shared_;
  const bool is_alone_;
  Kept* kept_;
  std::size_t kept_count_ = 0;
  char** results_;
  Accumulator accumulator_;
  Job job_;
};

void find_reductions(const Kernel& kernel, const StageCode* code, Scratch& scratch,
                     Shared& shared) {
  shared.combiners = scratch.take<Combiner>(kernel.reductions.size());
  for (std::size_t r = 0; r < kernel.reductions.size(); ++r) {
    shared.combiners[r] = combiner_of(kernel.reductions[r]);
  }
  shared.stages = scratch.take<StageInfo>(kernel.stages.size());
  for (std::size_t s = 0; s < kernel.stages.size(); ++s) {
    const Stage& stage = kernel.stages[s];
    StageInfo& info = shared.stages[s];
    info = {.stage = &stage,
            .code = &code[s],
            .reductions = scratch.take<uint16_t>(stage.sinks.size()),
            .reduction_count = 0,
            .has_lanes = false,
            .takes_blocks = shared.blocks_at_once > 1 &&
                            (shared.is_lanes ? kernel.reduced_loops == 1
                                             : takes_blocks_abreast(kernel, shared.domain, stage))};
    for (const Sink& sink : stage.sinks) {
      if (sink.kind != Sink::Kind::accumulate) continue;
      info.reductions[info.reduction_count++] = sink.index;
      info.has_lanes |= shared.lanes > 0 && depends_on_order(kernel.reductions[sink.index]);
      if (shared.combiners[sink.index].has_positions) info.takes_blocks = false;
    }
    for (const Source& source : stage.sources) {
      if (source.kind != Source::Kind::operand) info.takes_blocks = false;
    }
  }
}

}  // namespace

void run_reduction(const Kernel& kernel, const StageCode* code, const Launch& launch,
                   const Domain& domain) {
  const bool is_lanes = kernel.order == Order::lanes;
  const int64_t block = block_of(kernel);
  const auto last_loop = static_cast<std::size_t>(std::max(domain.rank - 1, 0));
  const int64_t last = domain.rank == 0 ? 1 : domain.sizes[last_loop];
  const int64_t width = rows_of_tile(kernel, launch, domain);
  const int64_t tiles = (last + width - 1) / width;
  const int64_t blocks = (domain.reduced_size + block - 1) / block;
  const bool has_blocks = is_lanes && blocks > 1;
  Steps block_steps;
  for (std::size_t k = 0; has_blocks && k < domain.operands; ++k) {
    block_steps[k] = domain.reduced_steps[k] * block;
  }
  const int64_t at_once = is_lanes ? std::clamp<int64_t>(blocks, 1, most_blocks_at_once)
                                   : blocks_abreast(kernel, domain);
  const bool is_across = kernel.order == Order::across;
  const int lanes = is_across ? lanes_in_common(kernel.reductions).value_or(0) : 0;
  TileSteps steps;
  if (is_across) find_steps(kernel, domain, width, lanes, steps);
  Scratch scratch;
  Shared shared = {.kernel = kernel,
                   .launch = launch,
                   .domain = domain,
                   .is_lanes = is_lanes,
                   .lanes = lanes,
                   .block_length = block,
                   .blocks = blocks,
                   .width = width,
                   .blocks_at_once = at_once,
                   .slots = width * at_once,
                   .tiles = tiles,
                   .jobs = domain.count(0, std::max(domain.rank - 1, 0)) * tiles,
                   .row_steps = is_across          ? steps.rows.data()
                                : domain.rank == 0 ? domain.reduced_steps.data()
                                                   : domain.steps[last_loop].data(),
                   .reduced_steps = is_across ? steps.reduced.data() : domain.reduced_steps.data(),
                   .block_steps = block_steps.data(),
                   .lane_steps = steps.lanes.data(),
                   .has_copies = kernel.reduced_loops > 1 ||
                                 (kernel.order == Order::sequential && has_turned(kernel, domain)),
                   .stages = nullptr,
                   .combiners = nullptr};
  find_reductions(kernel, code, scratch, shared);

  const int64_t points = std::max<int64_t>(domain.reduced_size * width, 1);
  const int64_t grain = grain_of(kernel);
  const bool shares_blocks = launch.threads > 1 && shared.jobs < 4 * int64_t{launch.threads} &&
                             shared.blocks > 1 && points >= 2 * grain;
  if (shares_blocks) {
    const DefaultFloatMode mode;
    JobRunner runner(shared, false);
    return runner.run_all(0, shared.jobs);
  }
  split(shared.jobs, std::max<int64_t>(grain / points, 1), launch.threads,
        [&](int64_t first, int64_t end) {
          JobRunner runner(shared, true);
          runner.run_all(first, end);
        });
}

}  // namespace nitinol::host
