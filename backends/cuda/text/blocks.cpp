// Order::lanes, long rows: each warp of a block of threads takes a run of the row, so that a round
// is two blocks of the canonical order. Lanes of a block's four runs join in order, then each
// other; blocks join pairwise.
#include "backends/cuda/text/lanes.h"
#include "backends/cuda/text/parts.h"
#include "backends/cuda/text/shapes.h"

#include <algorithm>

namespace nitinol::cuda {
namespace {

constexpr int warps = block_threads / warp_threads;
constexpr int runs = reduction_order::lanes_block / reduction_order::lanes_run;
constexpr int blocks_in_round = warps / runs;
static_assert(blocks_in_round == 2);

/// What the lanes of all warps come to: `value`, in all threads.
void write_round(Body& body, std::size_t r) {
  Writer& out = body.out;
  const Schedule& schedule = body.schedule;
  const int lanes = lanes_of(body.kernel.reductions[r].type), width = schedule.width;
  const int sums = sums_of(schedule, body.kernel.reductions[r]);
  out.line("Joined{0}* const lanes = (Joined{0}*)shared;", r);
  out.line("Joined{0}* const blocks = (Joined{0}*)shared_blocks;", r);
  out.line("UNROLL");
  out.line(
      "for (int j = 0; j < {}; ++j) lanes[warp * {} + j / {} * {} + lane * {} + j % {}] = "
      "sum{}[j];",
      sums, lanes, width, schedule.threads * width, width, width, r);
  out.line("barrier();");
  out.open("if (warp < {})", blocks_in_round);
  const auto joined_runs = [&](const char* name, int first) {
    out.line("Joined{} {} = lanes[warp * {} + {} + lane];", r, name, runs * lanes, first);
    out.line("UNROLL");
    out.line(
        "for (int run = 1; run < {0}; ++run) {1} = join{2}({1}, lanes[(warp * {0} + run) * {3} + "
        "{4} + lane]);",
        runs, name, r, lanes, first);
  };
  joined_runs("block", 0);
  if (lanes == 2 * warp_threads) {
    joined_runs("upper", warp_threads);
    out.line("block = join{}(block, upper);", r);
  }
  out.line("UNROLL");
  out.line(
      "for (int half = {0}; half > 0; half /= 2) block = join{1}(block, shuffled{1}(block, half));",
      warp_threads / 2, r);
  out.line("if (lane == 0) blocks[warp] = block;");
  out.close();
  out.line("barrier();");
  out.line("const Joined{0} value = join{0}(blocks[0], blocks[1]);", r);
}

class BlocksWriter {
 public:
  explicit BlocksWriter(Body& body) : body_(body), out_(body.out) {}

  void write() {
    for (std::size_t r = 0; r < body_.kernel.reductions.size(); ++r) write_stack(body_, r);
    if (!body_.schedule.is_split) {
      open(0);
      is_kept_ = write_kept(body_);
      is_loaded_.resize(is_kept_.size());
      write_stages(body_, "thread_index() == 0", "barrier();", "sum{0}",
                   [this](const Stage& stage) { write_elements(stage); });
      return out_.close();
    }
    is_kept_.resize(body_.kernel.operands.size());
    is_loaded_ = is_kept_;
    write_split_entries(
        body_, [this](std::size_t number) { open(number); },
        [this](const Stage& stage) { write_elements(stage); });
  }

 private:
  void open(std::size_t number) {
    open_entry(body_, number);
    out_.line("SHARED u64 shared[{}], shared_blocks[{}];", joined_words * warps * full_chunk,
              joined_words * blocks_in_round);
    out_.line("const u32 x = 0, y = thread_index();");
    out_.line("const int lane = (int)(thread_index() % {0}), warp = (int)(thread_index() / {0});",
              warp_threads);
    out_.line("const Index length = a.n{};", body_.last_loop());
    write_part(body_, fmt::format("(length + {}) / {}", round_elements - 1, round_elements));
    out_.line("const Index row = tile;");
    out_.line("const bool live = true;");
    write_row(body_, "row", body_.last_loop());
  }

  /// The rounds of a stage; declares sum<r>, what they come to.
  void write_elements(const Stage& stage) {
    for (const uint16_t r : reductions_of(stage))
      out_.line("Joined{0} stack{0}[{1}], sum{0};", r, body_.schedule.levels);
    out_.open("for (Index round = begin; round < end; ++round)");
    out_.line("const Index first = (round * {} + warp) * {};", warps, reduction_order::lanes_run);
    out_.line("const Index last = least<Index>(first + {}, length);", reduction_order::lanes_run);
    write_run(body_, stage, is_kept_, is_loaded_, "");
    for (const uint16_t r : reductions_of(stage)) {
      out_.open("");
      write_round(body_, r);
      out_.line("push{0}(stack{0}, (u32)(round - begin), value);", r);
      out_.close();
    }
    out_.close();
    for (const uint16_t r : reductions_of(stage))
      out_.line("sum{0} = total{0}(stack{0}, (u32)(end - begin));", r);
  }

  Body& body_;
  Writer& out_;
  std::vector<bool> is_kept_, is_loaded_;
};

}  // namespace

void write_blocks(Body& body) {
  BlocksWriter(body).write();
}

}  // namespace nitinol::cuda
