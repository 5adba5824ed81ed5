// The order is that of every scan (reduction_order::scan_run): levels of runs of 16. Level 0 are
// the elements of a line; the level above has the totals of its whole runs, and its running sums
// are what comes before the runs below.
//
// Lines that lie side by side are scanned level by level, a thread a run. What lies along the axis
// is scanned in chunks of three levels, by a block of threads in shared memory; several lines share
// a block if they are short, and the chunks of a long one first tell their totals to the levels
// above.
#include "backends/cuda/text/scan_text.h"

#include "backends/cuda/text/grid.h"
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
// from 8 on; threads of a line in a chunk, chunks of a line, where kept totals begin. Totals lie as
// lines side by side do, from FIRST_LEVEL on.
constexpr std::string_view levels = R"(
DEVICE i64 length_at(const Arguments& a, int level) { return a.n[1] >> (4 * level); }
DEVICE Value* totals_of(const Arguments& a, int level) {
  i64 before = 0;
  for (int i = FIRST_LEVEL; i < level; ++i) before += a.n[0] * length_at(a, i);
  return (Value*)a.workspace + before;
}
DEVICE i64 given_at(const Arguments& a, i64 line) { return offset_of(line, a.n + 8, a.n + 16, (int)a.n[4]); }
DEVICE i64 result_at(const Arguments& a, i64 line) { return offset_of(line, a.n + 8, a.n + 24, (int)a.n[4]); }
// The totals of the runs of the level below.
DEVICE void sum_runs(const Arguments& a, int level, i64 at) {
  if (at >= a.n[0] * length_at(a, level)) return;
  const i64 line = at % a.n[0], first = at / a.n[0] * 16;
  const Value* const below = level == FIRST_LEVEL ? 0 : totals_of(a, level - 1) + line;
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

// Of a whole chunk, kept: what its 256 runs come to, its first 15 groups of 16 runs, and the last
// group. The next chunk begins with what these make of the levels above. Element i of a chunk lies
// at i + i / 16, so that threads that go through runs side by side meet no bank of memory together.
constexpr std::string_view chunks = R"(
DEVICE Value* kept_of(const Arguments& a, i64 line, i64 chunk) { return (Value*)a.workspace + a.n[7] + (line * a.n[6] + chunk) * 3; }
DEVICE void sum_chunk(const Arguments& a, Value* values, Value* runs) {
  const u32 own = thread_index();
  const i64 whole = length_at(a, 3), line = (i64)block_index() / whole, chunk = (i64)block_index() % whole;
  const Stored* const x = (const Stored*)a.p0 + given_at(a, line) + chunk * 4096;
  UNROLL
  for (u32 e = own; e < 4096; e += 256) values[e + e / 16] = value_of(x[e]);
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
  Value* const kept = kept_of(a, line, chunk);
  kept[1] = sum;
  kept[2] = values[15];
  sum = join_of(sum, values[15]);
  kept[0] = sum;
  totals_of(a, 3)[chunk * a.n[0] + line] = sum;
}
DEVICE void scan_chunk(const Arguments& a, Value* values, Value* runs, Value* groups, i64* given, i64* results) {
  const u32 own = thread_index(), threads = (u32)a.n[5], lines = 256 / threads;
  const i64 chunk = (i64)block_index() % a.n[6], first = (i64)block_index() / a.n[6] * lines, begin = chunk * 4096;
  const u32 length = (u32)least<i64>(a.n[1] - begin, threads * 16);
  if (own < lines && first + own < a.n[0]) {
    given[own] = given_at(a, first + own) + begin;
    results[own] = result_at(a, first + own) + begin * a.n[3];
  }
  barrier();
  const u32 there = (u32)least<i64>(a.n[0] - first, lines);
  UNROLL
  for (u32 e = own; e < 4096; e += 256) {
    const u32 line = e / 16 / threads, i = e % (threads * 16);
    values[e + e / 16] = line < there && i < length ? value_of(((const Stored*)a.p0)[given[line] + i]) : Value(0);
  }
  barrier();
  Value sums[16];
  sums[0] = values[own * 17];
  UNROLL
  for (int i = 1; i < 16; ++i) sums[i] = join_of(sums[i - 1], values[own * 17 + i]);
  runs[own] = sums[15];
  barrier();
  const u32 wide = least<u32>(threads, 16), line = own / threads, place = own % threads;
  if (own % wide == 0) {
    Value sum = runs[own];
    for (u32 i = 1; i < wide; ++i) runs[own + i] = sum = join_of(sum, runs[own + i]);
    groups[own / wide] = sum;
  }
  barrier();
  const Value* const kept = chunk == 0 ? 0 : kept_of(a, first, chunk - 1);
  const Value* const above = totals_of(a, 3) + first;
  if (place == 0) {
    Value sum = 0;
    for (u32 i = 0; i < threads / wide; ++i) {
      Value& group = groups[own / wide + i];
      sum = i == 0 ? group : join_of(sum, group);
      group = chunk == 0 ? sum : join_of(above[(chunk - 1) * a.n[0]], sum);
    }
  }
  barrier();
  bool is_first = false;
  Value before = 0;
  if (place > 0) {
    const u32 last = own - 1;
    before = runs[last];
    if ((place - 1) / wide > 0) before = join_of(groups[last / wide - 1], before);
    else if (chunk > 0) before = join_of(chunk > 1 ? join_of(above[(chunk - 2) * a.n[0]], kept[0]) : kept[0], before);
  } else if (chunk > 0) {
    before = join_of(chunk > 1 ? join_of(above[(chunk - 2) * a.n[0]], kept[1]) : kept[1], kept[2]);
  } else {
    is_first = true;
  }
  UNROLL
  for (int i = 0; i < 16; ++i) values[own * 17 + i] = is_first ? sums[i] : join_of(before, sums[i]);
  barrier();
  UNROLL
  for (u32 e = own; e < 4096; e += 256) {
    const u32 to = e / 16 / threads, i = e % (threads * 16);
    if (to < there && i < length) ((Stored*)a.p1)[results[to] + i * a.n[3]] = stored_of(values[e + e / 16]);
  }
}
)";

class ScanWriter {
 public:
  ScanWriter(const LibraryCall& call, RoutineText& made) : call_(call), made_(made) {}

  void write() {
    put_numbers();
    const bool is_along = n(2) == 1;
    const int64_t lines = n(0), whole = n(1) / chunk;
    const int first = is_along ? 3 : 1;
    made_.text += fmt::format(
        "#define FIRST_LEVEL {}\nDEVICE Value join_of(Value a, Value b) {{ return {}; }}\n", first,
        join_of_values(call_));
    made_.text += levels;
    if (is_along) made_.text += chunks;
    const auto length_at = [&](int level) { return n(1) >> (4 * level); };
    int top = first - 1;
    int64_t totals = 0;
    while (is_along && top < 3 ? whole > 0 : length_at(top) > run)
      totals += lines * length_at(++top);
    n(7) = totals;
    if (is_along) {
      made_.add_step("SHARED Value values[4352], runs[256]; sum_chunk(a, values, runs)",
                     lines * whole * block_threads);
      totals += 3 * lines * n(6);
    }
    made_.workspace_bytes = static_cast<std::size_t>(totals) * sizeof(int64_t);
    for (int level = is_along ? 4 : 1; level <= top; ++level)
      made_.add_step("sum_runs(a, (int)a.step, at)", lines * length_at(level), level);
    for (int level = top; level >= (is_along ? 3 : 0); --level) {
      made_.add_step(fmt::format("scan_run(a, (int)a.step, {}, at)", level == top),
                     lines * ceil_div(length_at(level), run), level);
    }
    if (is_along) {
      made_.add_step(
          "SHARED Value values[4352], runs[256], groups[256]; SHARED i64 given[256], results[256]; "
          "scan_chunk(a, values, runs, groups, given, results)",
          ceil_div(lines, block_threads / n(5)) * n(6) * block_threads);
    }
  }

 private:
  [[nodiscard]] int64_t& n(int at) { return made_.arguments.numbers[static_cast<std::size_t>(at)]; }

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
    n(6) = ceil_div(n(1), chunk);
  }

  const LibraryCall& call_;
  RoutineText& made_;
};

}  // namespace

std::string join_of_values(const LibraryCall& call) {
  const Combine combine = call.combine;
  const bool is_float = is_floating(call.operands[0].dtype);
  if (combine == Combine::add) return "sum_of(a, b)";
  if (combine == Combine::multiply) return is_float ? "a * b" : "(Value)((u64)a * (u64)b)";
  const char order = combine == Combine::maximum ? '>' : '<';
  if (!is_float) return fmt::format("a {} b ? a : b", order);
  return fmt::format("a != a ? a : a == b ? {}_of(bits_of(a) {} bits_of(b)) : a {} b ? a : b",
                     call.operands[0].dtype == f64 ? "f64" : "f32",
                     combine == Combine::maximum ? '&' : '|', order);
}

void write_scan(const LibraryCall& call, RoutineText& made) {
  ScanWriter(call, made).write();
}

}  // namespace nitinol::cuda
