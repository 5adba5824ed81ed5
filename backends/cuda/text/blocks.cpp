// Order::lanes, long rows: each warp of a block of threads takes a run of the row, so that a round
// is a few blocks of the canonical order. Lanes of a block's four runs join in order, then each
// other; blocks join pairwise.
#include "backends/cuda/text/lanes.h"
#include "backends/cuda/text/parts.h"
#include "backends/cuda/text/shapes.h"

#include <bit>
#include <string>

namespace nitinol::cuda {
namespace {

constexpr int runs = reduction_order::lanes_block / reduction_order::lanes_run;

/// Blocks of the canonical order in a round, the last of which may be cut.
int blocks_of(const Schedule& schedule) {
  return (schedule.warps + runs - 1) / runs;
}

/// blocks[first] to blocks[first + count - 1], joined pairwise, adjacent ones first.
std::string joined_blocks(std::size_t r, int first, int count) {
  if (count == 1) return fmt::format("blocks[{}]", first);
  const int left = static_cast<int>(std::bit_ceil(static_cast<unsigned>(count))) / 2;
  return fmt::format("join{}({}, {})", r, joined_blocks(r, first, left),
                     joined_blocks(r, first + left, count - left));
}

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
  out.open("if (warp < {})", blocks_of(schedule));
  const std::string is_there =
      schedule.warps % runs == 0 ? ""
                                 : fmt::format("if (warp * {} + run < {}) ", runs, schedule.warps);
  const auto joined_runs = [&](const char* name, int first) {
    out.line("Joined{} {} = lanes[warp * {} + {} + lane];", r, name, runs * lanes, first);
    out.line("UNROLL");
    out.line(
        "for (int run = 1; run < {0}; ++run) {5}{1} = join{2}({1}, lanes[(warp * {0} + run) * {3} "
        "+ "
        "{4} + lane]);",
        runs, name, r, lanes, first, is_there);
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
  out.line("const Joined{} value = {};", r, joined_blocks(r, 0, blocks_of(schedule)));
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
    out_.line("SHARED u64 shared[{}], shared_blocks[{}];",
              joined_words * body_.schedule.warps * full_chunk,
              joined_words * blocks_of(body_.schedule));
    out_.line("const u32 x = 0, y = thread_index();");
    out_.line("const int lane = (int)(thread_index() % {0}), warp = (int)(thread_index() / {0});",
              warp_threads);
    out_.line("const Index length = a.n{};", body_.last_loop());
    const int64_t elements = body_.schedule.round_elements();
    write_part(body_, fmt::format("(length + {}) / {}", elements - 1, elements));
    out_.line("const Index row = tile;");
    out_.line("const bool live = true;");
    write_row(body_, "row", body_.last_loop());
  }

  /// The rounds of a stage; declares sum<r>, what they come to.
  void write_elements(const Stage& stage) {
    for (const uint16_t r : reductions_of(stage))
      out_.line("Joined{0} stack{0}[{1}], sum{0};", r, body_.schedule.levels);
    const bool is_one_round = body_.schedule.chunks > 0;  // said by no loop, so that less is live
    if (is_one_round) {
      out_.open("");
      out_.line("const Index round = 0;");
    } else {
      out_.open("for (Index round = begin; round < end; ++round)");
    }
    out_.line("const Index first = (round * {} + warp) * {};", body_.schedule.warps,
              reduction_order::lanes_run);
    out_.line("const Index last = least<Index>(first + {}, length);", reduction_order::lanes_run);
    write_run(body_, stage, is_kept_, is_loaded_, "");
    for (const uint16_t r : reductions_of(stage)) {
      out_.open("");
      write_round(body_, r);
      out_.line("push{0}(stack{0}, {1}, value);", r, is_one_round ? "0" : "(u32)(round - begin)");
      out_.close();
    }
    out_.close();
    for (const uint16_t r : reductions_of(stage))
      out_.line("sum{0} = total{0}(stack{0}, {1});", r, is_one_round ? "1" : "(u32)(end - begin)");
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
