// The order is that of every scan (reduction_order::scan_run): levels of runs of 16. Level 0 are
// the elements of a line; the level above has the totals of its whole runs, and its running sums
// are what comes before the runs below.
//
// Blocks of threads scan chunks of several levels at once, a thread a run: of three levels where
// elements lie along the axis, by way of shared memory; of two where lines lie side by side, whose
// neighbours the threads of a warp take. The totals of chunks are lines in their turn. What comes
// before a run each thread adds up itself, from what all runs came to: a thread that did it for
// all of them would keep the others waiting as long.
#include "backends/cuda/text/scan_text.h"

#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/program.h"
#include "backends/cuda/text/routine_text.h"
#include "core/reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

namespace nitinol::cuda {
namespace {

constexpr int64_t run = reduction_order::scan_run, chunk = run * run * run;
static_assert(run == 16 && chunk == 16 * block_threads, "the texts below say so");

// Numbers: lines, their length; strides along the axis; rank of the others, with sizes and strides
// from 8 on; lines in a block of threads that lie side by side; where kept totals begin; the
// logarithm of the threads of a line, or of n[5].
constexpr std::string_view words = R"(
DEVICE Index length_at(const Arguments& a, int level) { return (Index)(a.n[1] >> (4 * level)); }
DEVICE Index given_at(const Arguments& a, Index line) { return offset_of(line, a.n + 8, a.n + 16, (int)a.n[4]); }
DEVICE Index result_at(const Arguments& a, Index line) { return offset_of(line, a.n + 8, a.n + 24, (int)a.n[4]); }
// What a number of values that lie `step` apart come to.
DEVICE Value joined(const Value* values, u32 count, u32 step) {
  Value sum = values[0];
  for (u32 i = 1; i < 16; ++i)
    if (i < count) sum = join_of(sum, values[i * step]);
  return sum;
}
)";

// Depth 0 are the elements, depth d + 1 the totals of the chunks of depth d, which lie as lines
// side by side do; a.step says which depth. Kept are the totals, and apart from them their running
// sums. A block has chunks of 256 of n[5] lines: thread (chunk, run, line) a run.
constexpr std::string_view across = R"(
struct Run { Index line, chunk, first; u32 number, below; bool is_there; };
DEVICE Index size_of(const Arguments& a, i64 depth) { return length_at(a, 2 * (int)depth); }
DEVICE Value* totals_of(const Arguments& a, i64 depth) {
  Index before = 0;
  for (int i = 1; i < depth; ++i) before += (Index)a.n[0] * size_of(a, i);
  return (Value*)a.workspace + before;
}
DEVICE Value* sums_of(const Arguments& a, i64 depth) { return totals_of(a, depth) + a.n[6]; }
// `below`: where in a block's results the first run of this chunk and line is.
DEVICE Run run_of(const Arguments& a, Index chunks) {
  const u32 own = thread_index(), shift = (u32)a.n[7];
  const Index tiles = ((Index)a.n[0] + (Index)a.n[5] - 1) >> shift;
  const Index group = (Index)((UnsignedIndex)block_index() / (UnsignedIndex)tiles), tile = (Index)block_index() - group * tiles;
  Run run;
  run.line = (tile << shift) + (Index)(own & ((1u << shift) - 1));
  run.number = own >> shift & 15;
  run.chunk = (group << (4 - shift)) + (Index)(own >> (4 + shift));
  run.first = run.chunk * 256 + (Index)run.number * 16;
  run.below = own - (run.number << shift);
  run.is_there = run.line < (Index)a.n[0] && run.chunk < chunks;
  return run;
}
template <bool is_given> DEVICE void sum_chunk(const Arguments& a, Value* runs) {
  const i64 depth = is_given ? 0 : a.step;
  const Run run = run_of(a, size_of(a, depth + 1));
  const Index lines = (Index)a.n[0];
  Value sum = 0;
  if (run.is_there) {
    const Stored* const x = (const Stored*)a.p0 + (is_given ? given_at(a, run.line) + run.first * (Index)a.n[2] : 0);
    const Value* const below = totals_of(a, depth) + (run.first * lines + run.line);
    Value values[16];
    UNROLL
    for (int i = 0; i < 16; ++i) values[i] = is_given ? value_of(x[i * (Index)a.n[2]]) : below[i * lines];
    sum = values[0];
    UNROLL
    for (int i = 1; i < 16; ++i) sum = join_of(sum, values[i]);
  }
  runs[thread_index()] = sum;
  barrier();
  if (run.is_there && run.number == 0)
    totals_of(a, depth + 1)[run.chunk * lines + run.line] = joined(runs + run.below, 16, 1u << a.n[7]);
}
// The last chunk may be cut short, and its last run.
template <bool is_given> DEVICE void scan_chunk(const Arguments& a, Value* runs) {
  const i64 depth = is_given ? 0 : a.step;
  const Index size = size_of(a, depth), lines = (Index)a.n[0];
  const Run run = run_of(a, (size + 255) / 256);
  const Index count = run.is_there ? least<Index>(16, size - run.first) : 0;
  const Stored* const x = (const Stored*)a.p0 + (is_given && count > 0 ? given_at(a, run.line) + run.first * (Index)a.n[2] : 0);
  const Index here = run.first * lines + run.line;
  const Value* const below = totals_of(a, depth) + (count > 0 ? here : 0);
  Value sums[16], before = 0, above = 0;
  UNROLL
  for (int i = 0; i < 16; ++i)
    if (i < count) sums[i] = is_given ? value_of(x[i * (Index)a.n[2]]) : below[i * lines];
  // Before the first run of a chunk comes the chunk before, after what comes before that one.
  if (count > 0 && run.chunk > 0) {
    const Index last = (run.chunk - 1) * lines + run.line;
    const bool is_second = run.chunk == 1, is_first_run = run.number == 0;
    before = totals_of(a, depth + 1)[last];
    if (!is_first_run || !is_second) above = sums_of(a, depth + 1)[is_first_run ? last - lines : last];
  }
  UNROLL
  for (int i = 1; i < 16; ++i)
    if (i < count) sums[i] = join_of(sums[i - 1], sums[i]);
  runs[thread_index()] = sums[15];
  barrier();
  if (count <= 0) return;
  if (run.number > 0) before = joined(runs + run.below, run.number, 1u << a.n[7]);
  if (run.chunk > (run.number == 0 ? 1 : 0)) before = join_of(above, before);
  const bool is_first = run.number == 0 && run.chunk == 0;
  Stored* const out = (Stored*)a.p1 + (is_given ? result_at(a, run.line) + run.first * (Index)a.n[3] : 0);
  Value* const results = sums_of(a, depth) + here;
  UNROLL
  for (int i = 0; i < 16; ++i) {
    if (i >= count) continue;
    const Value result = is_first ? sums[i] : join_of(before, sums[i]);
    if (is_given) out[i * (Index)a.n[3]] = stored_of(result);
    else results[i * lines] = result;
  }
}
)";

// Depth 0 are the elements, depth d + 1 the totals of the chunks of depth d, a line after another;
// a.step says which depth. Of a whole chunk, kept: what its 256 runs come to, its first 15 groups
// of 16 runs, and the last group. The next chunk begins with what these make of the depth above.
// Element i of a chunk lies at i + i / 16, so that threads that go through runs side by side meet
// no bank of memory together. Lines of up to 16 runs have no groups.
constexpr std::string_view along = R"(
DEVICE Index size_of(const Arguments& a, i64 depth) { return length_at(a, 3 * (int)depth); }
DEVICE Value* totals_of(const Arguments& a, i64 depth, Index line) {
  Index before = 0;
  for (int i = 1; i < depth; ++i) before += (Index)a.n[0] * size_of(a, i);
  return (Value*)a.workspace + (before + line * size_of(a, depth));
}
DEVICE Value* kept_of(const Arguments& a, i64 depth, Index line, Index chunk) {
  Index before = 0;
  for (int i = 1; i <= depth; ++i) before += (Index)a.n[0] * size_of(a, i);
  return (Value*)a.workspace + (Index)a.n[6] + 3 * (before + line * size_of(a, depth + 1) + chunk);
}
template <bool is_given> DEVICE void sum_chunk(const Arguments& a, Value* values, Value* runs) {
  const u32 own = thread_index();
  const i64 depth = is_given ? 0 : a.step;
  const Index whole = size_of(a, depth + 1);
  Index chunk = (Index)block_index();
  const Index place = digit(chunk, whole), line = chunk;
  const Stored* const x = (const Stored*)a.p0 + (is_given ? given_at(a, line) + place * 4096 : 0) + own;
  const Value* const below = totals_of(a, depth, line) + place * 4096 + own;
  UNROLL
  for (u32 j = 0; j < 16; ++j) values[own + own / 16 + 272 * j] = is_given ? value_of(x[256 * j]) : below[256 * j];
  barrier();
  Value sum = values[own * 17];
  UNROLL
  for (int i = 1; i < 16; ++i) sum = join_of(sum, values[own * 17 + i]);
  runs[own] = sum;
  barrier();
  if (own < 16) values[own] = joined(runs + own * 16, 16, 1);
  barrier();
  if (own != 0) return;
  sum = joined(values, 15, 1);
  Value* const kept = kept_of(a, depth, line, place);
  kept[1] = sum;
  kept[2] = values[15];
  sum = join_of(sum, values[15]);
  kept[0] = sum;
  totals_of(a, depth + 1, line)[place] = sum;
}
template <bool is_given> DEVICE void scan_chunk(const Arguments& a, Value* values, Value* runs, Value* groups, Index* given, Index* results) {
  const i64 depth = is_given ? 0 : a.step;
  const Index size = size_of(a, depth), whole = (size + 4095) / 4096;
  const u32 own = thread_index(), shift = is_given ? (u32)a.n[7] : 8, threads = 1u << shift, lines = 256u >> shift;
  Index first = (Index)block_index();
  const Index chunk = digit(first, whole), begin = chunk * 4096;
  first *= (Index)lines;
  const u32 length = (u32)least<Index>(size - begin, (Index)threads * 16), there = (u32)least<Index>((Index)a.n[0] - first, (Index)lines);
  Value* const totals = totals_of(a, depth, first) + begin;
  // What comes before the chunk is asked for long before it is needed.
  Value last[3] = {0, 0, 0}, above[2] = {0, 0};
  if (chunk > 0) {
    const Value* const kept = kept_of(a, depth, first, chunk - 1);
    const Value* const sums = totals_of(a, depth + 1, first) + (chunk - 1);
    last[0] = kept[0];
    last[1] = kept[1];
    last[2] = kept[2];
    above[0] = sums[0];
    if (chunk > 1) above[1] = sums[-1];
  }
  if (is_given && own < there) {
    given[own] = given_at(a, first + (Index)own) + begin;
    results[own] = result_at(a, first + (Index)own) + begin * (Index)a.n[3];
  }
  barrier();
  Value loaded[16];
  UNROLL
  for (u32 j = 0; j < 16; ++j) {
    const u32 e = own + 256 * j, line = e >> (4 + shift), i = e & (threads * 16 - 1);
    loaded[j] = 0;
    if (line < there && i < length) loaded[j] = is_given ? value_of(((const Stored*)a.p0)[given[line] + (Index)i]) : totals[i];
  }
  UNROLL
  for (u32 j = 0; j < 16; ++j) values[own + own / 16 + 272 * j] = loaded[j];
  barrier();
  Value sums[16];
  sums[0] = values[own * 17];
  UNROLL
  for (int i = 1; i < 16; ++i) sums[i] = join_of(sums[i - 1], values[own * 17 + i]);
  runs[own] = sums[15];
  barrier();
  const u32 place = own & (threads - 1), group = own / 16, lane = least<u32>(place, own % 16);
  const bool has_groups = threads > 16;
  Value before = 0;
  if (lane > 0) before = joined(runs + (own - lane), lane, 1);
  if (has_groups) {
    if (lane == 15) groups[group] = join_of(before, sums[15]);
    barrier();
    // After all groups up to this one of the line, and the chunks before.
    if (own < 16) {
      const u32 number = own & (threads / 16 - 1);
      const Value sum = joined(groups + (own - number), number + 1, 1);
      groups[16 + own] = chunk == 0 ? sum : join_of(above[0], sum);
    }
    barrier();
  }
  if (place == 0) {
    if (chunk > 0) before = join_of(chunk > 1 ? join_of(above[1], last[1]) : last[1], last[2]);
  } else {
    if (lane == 0) before = groups[group - 1];
    const u32 end = (place - 1) / 16;  // groups of the line before that of the run before
    if (has_groups && end > 0) before = join_of(groups[16 + (own - 1) / 16 - 1], before);
    else if (chunk > 0) before = join_of(chunk > 1 ? join_of(above[1], last[0]) : last[0], before);
  }
  const bool is_first = place == 0 && chunk == 0;
  UNROLL
  for (int i = 0; i < 16; ++i) values[own * 17 + i] = is_first ? sums[i] : join_of(before, sums[i]);
  barrier();
  UNROLL
  for (u32 j = 0; j < 16; ++j) {
    const u32 e = own + 256 * j, line = e >> (4 + shift), i = e & (threads * 16 - 1);
    if (line >= there || i >= length) continue;
    const Value value = values[own + own / 16 + 272 * j];
    if (is_given) ((Stored*)a.p1)[results[line] + (Index)i * (Index)a.n[3]] = stored_of(value);
    else totals[i] = value;
  }
}
)";

class ScanWriter {
 public:
  ScanWriter(const LibraryCall& call, RoutineText& made) : call_(call), made_(made) {}

  void write() {
    put_numbers();
    made_.text += join_of_values(call_);
    made_.text += words;
    if (n(2) == 1)
      write_along();
    else
      write_across();
  }

 private:
  [[nodiscard]] int64_t& n(int at) { return made_.arguments.numbers[static_cast<std::size_t>(at)]; }

  [[nodiscard]] int64_t length_at(int level) { return n(1) >> (4 * level); }

  void write_across() {
    made_.text += across;
    n(5) = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(n(0), 1, run))));
    n(7) = std::countr_zero(static_cast<uint64_t>(n(5)));
    const auto threads = [&](int64_t chunks) {
      return ceil_div(chunks, run / n(5)) * ceil_div(n(0), n(5)) * block_threads;
    };
    constexpr int64_t most = run * run;
    int deepest = 0;
    for (; length_at(2 * deepest) > most; ++deepest) {
      const int64_t chunks = length_at(2 * deepest + 2);
      n(6) += n(0) * chunks;
      made_.add_step(fmt::format("SHARED Value runs[256]; sum_chunk<{}>(a, runs)", deepest == 0),
                     threads(chunks), deepest);
    }
    made_.workspace_bytes = 2 * static_cast<std::size_t>(n(6)) * sizeof(int64_t);
    for (int depth = deepest; depth >= 0; --depth) {
      made_.add_step(fmt::format("SHARED Value runs[256]; scan_chunk<{}>(a, runs)", depth == 0),
                     threads(ceil_div(length_at(2 * depth), most)), depth);
    }
  }

  void write_along() {
    made_.text += along;
    const int64_t runs = std::clamp<int64_t>(ceil_div(n(1), run), 1, block_threads);
    const auto threads = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(runs)));
    n(7) = std::countr_zero(static_cast<uint64_t>(threads));
    int deepest = 0;
    for (; length_at(3 * deepest) > chunk; ++deepest) {
      const int64_t totals = n(0) * length_at(3 * deepest + 3);
      n(6) += totals;
      made_.workspace_bytes += 4 * static_cast<std::size_t>(totals) * sizeof(int64_t);
      made_.add_step(
          fmt::format("SHARED Value values[4352], runs[256]; sum_chunk<{}>(a, values, runs)",
                      deepest == 0),
          totals * block_threads, deepest);
    }
    for (int depth = deepest; depth >= 0; --depth) {
      const int64_t lines = depth == 0 ? ceil_div(n(0), block_threads / threads) : n(0);
      made_.add_step(
          fmt::format("SHARED Value values[4352], runs[256], groups[32]; SHARED Index given[256], "
                      "results[256]; scan_chunk<{}>(a, values, runs, groups, given, results)",
                      depth == 0),
          lines * ceil_div(length_at(3 * depth), chunk) * block_threads, depth);
    }
  }

  void put_numbers() {
    const OperandLayout &x = call_.operands[0], &out = call_.operands[1];
    const int axis = call_.axis;
    n(0) = 1;
    n(1) = x.shape[axis];
    n(2) = x.strides[axis];
    n(3) = out.strides[axis];
    std::vector<int64_t> sizes, given, results;  // of the other axes
    for (int i = 0; i < x.shape.size(); ++i) {
      if (i == axis) continue;
      sizes.push_back(x.shape[i]);
      given.push_back(x.strides[i]);
      results.push_back(out.strides[i]);
      n(0) *= x.shape[i];
    }
    n(4) = put_axes(made_, 8, sizes, given, results);
  }

  const LibraryCall& call_;
  RoutineText& made_;
};

}  // namespace

std::string join_of_values(const LibraryCall& call) {
  Writer out;
  const Reduction reduction = {call.combine, compute_type(call.operands[0].dtype)};
  write_join_of_values(out, reduction, "join_of");
  return out.take();
}

void write_scan(const LibraryCall& call, RoutineText& made) {
  ScanWriter(call, made).write();
}

}  // namespace nitinol::cuda
