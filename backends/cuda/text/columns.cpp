// Order::sequential: neighbouring threads take neighbouring rows, and go through a block of each,
// one element after another. If rows are long, other threads of the same block of threads go
// through other blocks of them: those of a split row through as many that follow each other, a
// power of two, so that they meet once, at the end; else in turn, and meet in each round.
#include "backends/cuda/text/parts.h"
#include "backends/cuda/text/shapes.h"

namespace nitinol::cuda {
namespace {

/// So many elements of a column are asked for at once, and of a long program so many.
constexpr int unrolled = 16, unrolled_long = 4;
/// From how many instructions on a program is long, and from how many its loop is not unrolled.
constexpr std::size_t long_instructions = 15, most_unrolled = 60;

class ColumnsWriter {
 public:
  explicit ColumnsWriter(Body& body)
      : body_(body), out_(body.out), teams_(teams_of(body.schedule)) {}

  void write() {
    for (std::size_t r = 0; r < body_.kernel.reductions.size(); ++r) write_stack(body_, r);
    if (!body_.schedule.is_split) {
      open(0);
      write_stages(body_, "live && y == 0", "barrier();", "sum{0}",
                   [this](const Stage& stage) { write_elements(stage); });
      return out_.close();
    }
    write_split_entries(
        body_, [this](std::size_t number) { open(number); },
        [this](const Stage& stage) { write_elements(stage); });
  }

 private:
  void open(std::size_t number) {
    open_entry(body_, number);
    if (teams_.threads() > 1) out_.line("SHARED u64 shared[{}];", joined_words * block_threads);
    out_.line("const u32 x = thread_index() % {0}, y = thread_index() / {0};", teams_.columns);
    out_.line("const Index length = a.n{};", body_.last_loop());
    const int64_t block = block_of(body_.kernel) * teams_.threads();
    write_part(body_, fmt::format("(length + {}) / {}", block - 1, block));
    out_.line("const Index own = tile * {} + (Index)x;", teams_.columns);
    out_.line("const bool live = own < a.rows;");
    out_.line("const Index row = live ? own : a.rows - 1;");
    write_row(body_, "row", body_.last_loop());
  }

  void write_elements(const Stage& stage) {
    const std::vector<uint16_t> reductions = reductions_of(stage);
    const int64_t block = block_of(body_.kernel);
    for (const uint16_t r : reductions)
      out_.line("Joined{0} stack{0}[{1}];", r, body_.schedule.levels);
    const bool is_split = body_.schedule.is_split;
    if (is_split) {
      out_.line("const Index size = (Index)a.group_size, blocks = (length + {}) / {};", block - 1,
                block);
      out_.line("const Index own_blocks = begin * {} + (Index)y * size;", teams_.threads());
      out_.open("for (Index round = 0; round < size; ++round)");
      out_.line("const Index place = own_blocks + round;");
      out_.line("const Index first = place < blocks ? place * {} : length;", block);
    } else {
      out_.open("for (Index round = begin; round < end; ++round)");
      out_.line("const Index first = (round * {} + (Index)y) * {};", teams_.threads(), block);
    }
    out_.line("const Index last = least<Index>(first + {}, length);", block);
    for (const uint16_t r : reductions) out_.line("Joined{0} block{0}[1] = {{nothing{0}()}};", r);
    const std::size_t instructions = stage.program.instrs.size();
    out_.line("_Pragma(\"unroll {}\")", instructions < long_instructions ? unrolled
                                        : instructions < most_unrolled   ? unrolled_long
                                                                         : 1);
    out_.open("for (Index e = first; e < last; ++e)");
    for (const uint16_t r : reductions) out_.line("Joined{0}* const sum{0} = block{0};", r);
    write_piece(body_, stage, {.is_whole = true, .condition = "live && "});
    out_.close();
    for (const uint16_t r : reductions) {
      if (!is_split) write_tree(body_, r, fmt::format("block{}[0]", r), teams_);
      out_.line("push{0}(stack{0}, (u32)round, block{0}[0]);", r);
    }
    out_.close();
    for (const uint16_t r : reductions) {
      out_.line("Joined{0} sum{0} = total{0}(stack{0}, {1});", r,
                is_split ? "a.group_size" : "(u32)end");
      if (is_split) write_tree(body_, r, fmt::format("sum{}", r), teams_);
    }
  }

  Body& body_;
  Writer& out_;
  const Teams teams_;
};

}  // namespace

void write_columns(Body& body) {
  ColumnsWriter(body).write();
}

}  // namespace nitinol::cuda
