// The order is that of every scan (reduction_order::scan_run): levels of runs of 16. Level 0 are
// the elements of a line; the level above has the totals of its whole runs, and its running sums
// are what comes before the runs below.
//
// Lines that lie side by side are scanned level by level, a thread a run. What lies along the axis
// is scanned in chunks of three levels, by a block of threads in shared memory; several lines share
// a block if they are short. The totals of chunks are a line in their turn.
#include "backends/cuda/text/scan_text.h"

#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/program.h"
#include "backends/cuda/text/routine_text.h"
#include "core/reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>

namespace nitinol::cuda {
namespace {

constexpr int64_t run = reduction_order::scan_run, chunk = run * run * run;
static_assert(run == 16 && chunk == 16 * block_threads, "the texts below say so");

// Numbers: lines, their length; strides along the axis; rank of the others, with sizes and strides
// from 8 on; threads of a line in a chunk of elements; where kept totals begin.
constexpr std::string_view words = R"(
DEVICE i64 length_at(const Arguments& a, int level) { return a.n[1] >> (4 * level); }
DEVICE i64 given_at(const Arguments& a, i64 line) { return offset_of(line, a.n + 8, a.n + 16, (int)a.n[4]); }
DEVICE i64 result_at(const Arguments& a, i64 line) { return offset_of(line, a.n + 8, a.n + 24, (int)a.n[4]); }
)";

// Totals of a level lie as lines side by side do.
constexpr std::string_view across = R"(
DEVICE Value* totals_of(const Arguments& a, int level) {
  i64 before = 0;
  for (int i = 1; i < level; ++i) before += a.n[0] * length_at(a, i);
  return (Value*)a.workspace + before;
}
// The totals of the runs of the level below.
DEVICE void sum_runs(const Arguments& a, int level, i64 at) {
  if (at >= a.n[0] * length_at(a, level)) return;
  const i64 line = at % a.n[0], first = at / a.n[0] * 16;
  const Value* const below = level == 1 ? 0 : totals_of(a, level - 1) + line;
  const Stored* const x = (const Stored*)a.p0 + (below == 0 ? given_at(a, line) : 0);
  Value values[16];
  UNROLL
  for (i64 i = 0; i < 16; ++i) values[i] = below == 0 ? value_of(x[(first + i) * a.n[2]]) : below[(first + i) * a.n[0]];
  Value sum = values[0];
  UNROLL
  for (int i = 1; i < 16; ++i) sum = join_of(sum, values[i]);
  totals_of(a, level)[at] = sum;
}
// A run of a level, after what the level above says of the runs before.
DEVICE void scan_run(const Arguments& a, int level, bool is_top, i64 at) {
  const i64 length = length_at(a, level);
  if (at >= a.n[0] * ((length + 15) / 16)) return;
  const i64 line = at % a.n[0], run = at / a.n[0], first = run * 16, count = least<i64>(16, length - first);
  const bool is_first = is_top || run == 0;
  const Value before = is_first ? Value(0) : totals_of(a, level + 1)[(run - 1) * a.n[0] + line];
  Value* const here = level == 0 ? 0 : totals_of(a, level) + line;
  const Stored* const x = (const Stored*)a.p0 + (level == 0 ? given_at(a, line) : 0);
  Stored* const out = (Stored*)a.p1 + (level == 0 ? result_at(a, line) : 0);
  Value values[16];
  UNROLL
  for (i64 i = 0; i < 16; ++i)
    if (i < count) values[i] = level == 0 ? value_of(x[(first + i) * a.n[2]]) : here[(first + i) * a.n[0]];
  Value sum = values[0];
  UNROLL
  for (i64 i = 0; i < 16; ++i) {
    if (i >= count) continue;
    if (i > 0) sum = join_of(sum, values[i]);
    const Value result = is_first ? sum : join_of(before, sum);
    if (level == 0) out[(first + i) * a.n[3]] = stored_of(result);
    else here[(first + i) * a.n[0]] = result;
  }
}
)";

// Depth 0 are the elements, depth d + 1 the totals of the chunks of depth d, a line after another;
// a.step says which depth. Of a whole chunk, kept: what its 256 runs come to, its first 15 groups
// of 16 runs, and the last group. The next chunk begins with what these make of the depth above.
// Element i of a chunk lies at i + i / 16, so that threads that go through runs side by side meet
// no bank of memory together.
constexpr std::string_view along = R"(
DEVICE i64 size_of(const Arguments& a, i64 depth) { return length_at(a, 3 * (int)depth); }
DEVICE Value* totals_of(const Arguments& a, i64 depth, i64 line) {
  i64 before = 0;
  for (i64 i = 1; i < depth; ++i) before += a.n[0] * size_of(a, i);
  return (Value*)a.workspace + before + line * size_of(a, depth);
}
DEVICE Value* kept_of(const Arguments& a, i64 depth, i64 line, i64 chunk) {
  i64 before = 0;
  for (i64 i = 1; i <= depth; ++i) before += a.n[0] * size_of(a, i);
  return (Value*)a.workspace + a.n[6] + 3 * (before + line * size_of(a, depth + 1) + chunk);
}
template <bool is_given> DEVICE void sum_chunk(const Arguments& a, Value* values, Value* runs) {
  const u32 own = thread_index();
  const i64 depth = is_given ? 0 : a.step, whole = size_of(a, depth + 1);
  const i64 line = (i64)block_index() / whole, chunk = (i64)block_index() % whole;
  const Stored* const x = (const Stored*)a.p0 + (is_given ? given_at(a, line) : 0) + chunk * 4096;
  const Value* const below = totals_of(a, depth, line) + chunk * 4096;
  UNROLL
  for (u32 e = own; e < 4096; e += 256) values[e + e / 16] = is_given ? value_of(x[e]) : below[e];
  barrier();
  Value sum = values[own * 17];
  UNROLL
  for (int i = 1; i < 16; ++i) sum = join_of(sum, values[own * 17 + i]);
  runs[own] = sum;
  barrier();
  if (own < 16) {
    sum = runs[own * 16];
    for (u32 i = 1; i < 16; ++i) sum = join_of(sum, runs[own * 16 + i]);
    values[own] = sum;
  }
  barrier();
  if (own != 0) return;
  sum = values[0];
  for (int i = 1; i < 15; ++i) sum = join_of(sum, values[i]);
  Value* const kept = kept_of(a, depth, line, chunk);
  kept[1] = sum;
  kept[2] = values[15];
  sum = join_of(sum, values[15]);
  kept[0] = sum;
  totals_of(a, depth + 1, line)[chunk] = sum;
}
template <bool is_given> DEVICE void scan_chunk(const Arguments& a, Value* values, Value* runs, Value* groups, i64* given, i64* results) {
  const i64 depth = is_given ? 0 : a.step, size = size_of(a, depth), whole = (size + 4095) / 4096;
  const u32 own = thread_index(), threads = is_given ? (u32)a.n[5] : 256, lines = 256 / threads;
  const i64 chunk = (i64)block_index() % whole, first = (i64)block_index() / whole * lines, begin = chunk * 4096;
  const u32 length = (u32)least<i64>(size - begin, threads * 16), there = (u32)least<i64>(a.n[0] - first, lines);
  Value* const totals = totals_of(a, depth, first) + begin;
  if (is_given && own < there) {
    given[own] = given_at(a, first + own) + begin;
    results[own] = result_at(a, first + own) + begin * a.n[3];
  }
  barrier();
  UNROLL
  for (u32 e = own; e < 4096; e += 256) {
    const u32 line = e / 16 / threads, i = e % (threads * 16);
    Value value = 0;
    if (line < there && i < length) value = is_given ? value_of(((const Stored*)a.p0)[given[line] + i]) : totals[i];
    values[e + e / 16] = value;
  }
  barrier();
  Value sums[16];
  sums[0] = values[own * 17];
  UNROLL
  for (int i = 1; i < 16; ++i) sums[i] = join_of(sums[i - 1], values[own * 17 + i]);
  runs[own] = sums[15];
  barrier();
  const u32 wide = least<u32>(threads, 16), place = own % threads;
  if (own % wide == 0) {
    Value sum = runs[own];
    for (u32 i = 1; i < wide; ++i) runs[own + i] = sum = join_of(sum, runs[own + i]);
    groups[own / wide] = sum;
  }
  barrier();
  const Value* const kept = chunk == 0 ? 0 : kept_of(a, depth, first, chunk - 1);
  const Value* const above = totals_of(a, depth + 1, first);
  if (place == 0) {
    Value sum = 0;
    for (u32 i = 0; i < threads / wide; ++i) {
      Value& group = groups[own / wide + i];
      sum = i == 0 ? group : join_of(sum, group);
      group = chunk == 0 ? sum : join_of(above[chunk - 1], sum);
    }
  }
  barrier();
  bool is_first = false;
  Value before = 0;
  if (place > 0) {
    const u32 last = own - 1;
    before = runs[last];
    if ((place - 1) / wide > 0) before = join_of(groups[last / wide - 1], before);
    else if (chunk > 0) before = join_of(chunk > 1 ? join_of(above[chunk - 2], kept[0]) : kept[0], before);
  } else if (chunk > 0) {
    before = join_of(chunk > 1 ? join_of(above[chunk - 2], kept[1]) : kept[1], kept[2]);
  } else {
    is_first = true;
  }
  UNROLL
  for (int i = 0; i < 16; ++i) values[own * 17 + i] = is_first ? sums[i] : join_of(before, sums[i]);
  barrier();
  UNROLL
  for (u32 e = own; e < 4096; e += 256) {
    const u32 line = e / 16 / threads, i = e % (threads * 16);
    if (line >= there || i >= length) continue;
    if (is_given) ((Stored*)a.p1)[results[line] + i * a.n[3]] = stored_of(values[e + e / 16]);
    else totals[i] = values[e + e / 16];
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
    int top = 0;
    while (length_at(top) > run) ++top;
    for (int level = 1; level <= top; ++level) {
      made_.add_step("sum_runs(a, (int)a.step, at)", n(0) * length_at(level), level);
      made_.workspace_bytes += static_cast<std::size_t>(n(0) * length_at(level)) * sizeof(int64_t);
    }
    for (int level = top; level >= 0; --level) {
      made_.add_step(fmt::format("scan_run(a, (int)a.step, {}, at)", level == top),
                     n(0) * ceil_div(length_at(level), run), level);
    }
  }

  void write_along() {
    made_.text += along;
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
      const int64_t lines = depth == 0 ? ceil_div(n(0), block_threads / n(5)) : n(0);
      made_.add_step(
          fmt::format("SHARED Value values[4352], runs[256], groups[256]; SHARED i64 given[256], "
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
    int others = 0;
    for (int i = 0; i < x.shape.size(); ++i) {
      if (i == axis) continue;
      n(8 + others) = x.shape[i];
      n(16 + others) = x.strides[i];
      n(24 + others++) = out.strides[i];
      n(0) *= x.shape[i];
    }
    n(4) = others;
    const int64_t runs = std::clamp<int64_t>(ceil_div(n(1), run), 1, block_threads);
    n(5) = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(runs)));
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
