#include "backends/cuda/text/contraction_text.h"

#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/routine_text.h"
#include "backends/cuda/text/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace nitinol::cuda {
namespace {

// Numbers: rows, columns and depth of the product; groups, of which each is one; parts of a sum,
// the depth of a part; tiles in a column and in a row of the result.
enum Number : int { rows, columns, depth, groups, parts, part_depth, row_tiles, column_tiles };
constexpr int first_own = 8;  ///< numbers of the kind of call begin here

/// Steps along the depth for which tiles are in memory at a time.
constexpr int tile_depth = 16;
/// Elements of a tile of the result: 16 of each thread.
constexpr int tile_elements = 16 * block_threads;
/// So many tiles keep a device busy; sums are cut for more, but not below so much depth.
constexpr int64_t enough_tiles = 256, least_part = 128;

constexpr std::string_view words = R"(
DEVICE float added(float sum, float a, float b) { return fma_of(a, b, sum); }
DEVICE double added(double sum, double a, double b) { return fma_of(a, b, sum); }
template <class T> DEVICE T added(T sum, T a, T b) { return (T)((u64)sum + (u64)a * (u64)b); }
// Where a group begins.
struct Bases { i64 left, right, out; };
)";

// Numbers: strides of a, b and c; rank of the batch, its sizes and the strides of a, b, c.
constexpr std::string_view matmul = R"(
struct Row { Index base; bool is_there; };
typedef Index Column;
DEVICE Bases bases_of(const Arguments& a, Index group) {
  const int rank = (int)a.n[14];
  return {offset_of(group, a.n + 16, a.n + 24, rank), offset_of(group, a.n + 16, a.n + 32, rank),
          offset_of(group, a.n + 16, a.n + 40, rank)};
}
DEVICE Row row_of(const Arguments& a, Index m) { return {m * (Index)a.n[8], m < (Index)a.n[0]}; }
DEVICE Column column_of(const Arguments& a, Index k) { return k * (Index)a.n[9]; }
DEVICE Value left_at(const Arguments&, const Stored* from, Row row, Column column) {
  return row.is_there ? value_of(from[row.base + column]) : Value(0);
}
DEVICE Index depth_of(const Arguments& a, Index k) { return k * (Index)a.n[10]; }
DEVICE Index line_of(const Arguments& a, Index n) { return n * (Index)a.n[11]; }
DEVICE Index place_of(const Arguments& a, Index m, Index n) { return m * (Index)a.n[12] + n * (Index)a.n[13]; }
)";

// Numbers: sizes and strides of x, weight, y; kernel, stride, padding, dilation; channels of a
// group of x and of y; how far apart groups begin in the operands.
constexpr std::string_view images = R"(
DEVICE Bases bases_of(const Arguments& a, Index group) {
  return {group * a.n[42], group * a.n[43], group * a.n[44]};
}
// Pixels of one image are seen by taps of a filter where both together lie inside the other.
struct Pixel { Index base, h, w; bool is_there; };
struct Tap { Index base, h, w; bool is_there; };
DEVICE bool is_inside(Index at, i64 size) { return (UnsignedIndex)at < (UnsignedIndex)size; }
// Taps in the order (p, q, channel).
DEVICE Tap tap_of(const Arguments& a, Index at, i64 channels, i64 stride) {
  const bool is_there = at < (Index)(a.n[32] * a.n[33] * channels);
  const Index channel = digit(at, channels), q = digit(at, a.n[33]);
  return {channel * (Index)stride, at * (Index)a.n[38], q * (Index)a.n[39], is_there};
}
DEVICE Index weight_of(const Arguments& a, Index o, Index c, Index p, Index q) {
  return o * (Index)a.n[20] + c * (Index)a.n[21] + p * (Index)a.n[22] + q * (Index)a.n[23];
}
// An output pixel, as the place in x where its window begins.
DEVICE Pixel window_of(const Arguments& a, Index at) {
  const bool is_there = at < (Index)(a.n[24] * a.n[25] * a.n[26]);
  const Index w = digit(at, a.n[26]), h = digit(at, a.n[25]);
  return {at * (Index)a.n[12], h * (Index)a.n[34] - (Index)a.n[36], w * (Index)a.n[35] - (Index)a.n[37], is_there};
}
DEVICE Value x_at(const Arguments& a, const Stored* x, Pixel pixel, Tap tap) {
  const Index h = pixel.h + tap.h, w = pixel.w + tap.w;
  const bool is_there = pixel.is_there && tap.is_there && is_inside(h, a.n[9]) && is_inside(w, a.n[10]);
  return is_there ? value_of(x[pixel.base + tap.base + h * (Index)a.n[13] + w * (Index)a.n[14]]) : Value(0);
}
// Pixel number `at` of y.
DEVICE Index y_of(const Arguments& a, Index at) {
  const Index w = digit(at, a.n[26]), h = digit(at, a.n[25]);
  return at * (Index)a.n[28] + h * (Index)a.n[29] + w * (Index)a.n[30];
}
)";

constexpr std::string_view conv2d = R"(
typedef Pixel Row;
typedef Tap Column;
DEVICE Row row_of(const Arguments& a, Index m) { return window_of(a, m); }
DEVICE Column column_of(const Arguments& a, Index k) { return tap_of(a, k, a.n[40], a.n[15]); }
DEVICE Value left_at(const Arguments& a, const Stored* x, Row row, Column column) { return x_at(a, x, row, column); }
DEVICE Index depth_of(const Arguments& a, Index k) {
  const Index c = digit(k, a.n[40]), q = digit(k, a.n[33]);
  return weight_of(a, 0, c, k, q);
}
DEVICE Index line_of(const Arguments& a, Index n) { return weight_of(a, n, 0, 0, 0); }
DEVICE Index place_of(const Arguments& a, Index m, Index n) { return y_of(a, m) + n * (Index)a.n[31]; }
)";

constexpr std::string_view conv2d_input = R"(
typedef Pixel Row;
typedef Tap Column;
DEVICE Row row_of(const Arguments& a, Index m) {
  const bool is_there = m < (Index)a.n[0];
  const Index w = digit(m, a.n[10]), h = digit(m, a.n[9]);
  return {m * (Index)a.n[28], h + (Index)a.n[36], w + (Index)a.n[37], is_there};
}
DEVICE Column column_of(const Arguments& a, Index k) { return tap_of(a, k, a.n[41], a.n[31]); }
// The pixel of y whose window has x's pixel under this tap, if there is one.
DEVICE Value left_at(const Arguments& a, const Stored* y, Row row, Column column) {
  Index i = row.h - column.h, j = row.w - column.w;
  const bool is_before = i < 0 || j < 0;
  if (is_before) i = j = 0;
  const bool is_between = digit(i, a.n[34]) != 0 || digit(j, a.n[35]) != 0;
  const bool is_there = row.is_there && column.is_there && !is_before && !is_between && is_inside(i, a.n[25]) && is_inside(j, a.n[26]);
  return is_there ? value_of(y[row.base + column.base + i * (Index)a.n[29] + j * (Index)a.n[30]]) : Value(0);
}
DEVICE Index depth_of(const Arguments& a, Index k) {
  const Index o = digit(k, a.n[41]), q = digit(k, a.n[33]);
  return weight_of(a, o, 0, k, q);
}
DEVICE Index line_of(const Arguments& a, Index n) { return weight_of(a, 0, n, 0, 0); }
DEVICE Index place_of(const Arguments& a, Index m, Index n) {
  const Index w = digit(m, a.n[10]), h = digit(m, a.n[9]);
  return m * (Index)a.n[12] + h * (Index)a.n[13] + w * (Index)a.n[14] + n * (Index)a.n[15];
}
)";

constexpr std::string_view conv2d_weight = R"(
typedef Tap Row;
typedef Pixel Column;
DEVICE Row row_of(const Arguments& a, Index m) { return tap_of(a, m, a.n[40], a.n[15]); }
DEVICE Column column_of(const Arguments& a, Index k) { return window_of(a, k); }
DEVICE Value left_at(const Arguments& a, const Stored* x, Row row, Column column) { return x_at(a, x, column, row); }
DEVICE Index depth_of(const Arguments& a, Index k) { return y_of(a, k); }
DEVICE Index line_of(const Arguments& a, Index n) { return n * (Index)a.n[31]; }
DEVICE Index place_of(const Arguments& a, Index m, Index n) {
  const Index c = digit(m, a.n[40]), q = digit(m, a.n[33]);
  return weight_of(a, n, c, m, q);
}
)";

// The threads that load a tile lie along the depth if it is `deep`, else across it: neighbours load
// what lies together in memory. If AHEAD, they ask for the next tiles before they multiply those
// in shared memory. A thread has four neighbouring rows and columns, which it reads at once: 16
// products for two reads. Lines of the tiles have four elements more, so that neither way of
// loading brings all threads of a warp to one bank.
constexpr std::string_view tiles = R"(
DEVICE i64 part_of(const Arguments& a, i64 group, i64 part, i64 row, i64 column) {
  return ((group * a.n[4] + part) * a.n[0] + row) * a.n[1] + column;
}
typedef Vector<Value, 4> Four;
DEVICE int left_deep(int i) { return LEFT_DEEP ? (int)thread_index() % 16 : (int)thread_index() / ROWS + 256 / ROWS * i; }
DEVICE int left_across(int i) { return LEFT_DEEP ? (int)thread_index() / 16 + 16 * i : (int)thread_index() % ROWS; }
DEVICE int right_deep(int i) { return RIGHT_DEEP ? (int)thread_index() % 16 : (int)thread_index() / COLUMNS + 256 / COLUMNS * i; }
DEVICE int right_across(int i) { return RIGHT_DEEP ? (int)thread_index() / 16 + 16 * i : (int)thread_index() % COLUMNS; }
// Elements of the tiles from `at` on that this thread loads.
DEVICE Value of_left(const Arguments& a, const Stored* from, const Row* rows, Index at, Index end, int i) {
  const Index deep = at + left_deep(i);
  return deep < end ? left_at(a, from, rows[LEFT_DEEP ? i : 0], column_of(a, deep)) : Value(0);
}
DEVICE Value of_right(const Arguments& a, const Stored* from, Index first_column, Index at, Index end, int i) {
  const Index deep = at + right_deep(i), column = first_column + right_across(i);
  return deep < end && column < (Index)a.n[1] ? value_of(from[line_of(a, column) + depth_of(a, deep)]) : Value(0);
}
DEVICE void sum_tile(const Arguments& a) {
  SHARED Four left[16][ROWS / 4 + 1];
  SHARED Four right[16][COLUMNS / 4 + 1];
  const int own = (int)thread_index(), own_row = own / (COLUMNS / 4), own_column = own % (COLUMNS / 4);
  Index block = (Index)block_index();
  const Index first_column = digit(block, a.n[7]) * COLUMNS, first_row = digit(block, a.n[6]) * ROWS;
  const Index part = digit(block, a.n[4]), group = block;
  const Index begin = part * (Index)a.n[5], end = least<Index>(begin + (Index)a.n[5], (Index)a.n[2]);
  const Bases bases = bases_of(a, group);
  const Stored* const left_from = (const Stored*)a.p0 + bases.left;
  const Stored* const right_from = (const Stored*)a.p1 + bases.right;
  Stored* const to = (Stored*)a.p2 + bases.out;
  Row rows[LEFT_DEEP ? ROWS / 16 : 1];
  UNROLL
  for (int i = 0; i < (LEFT_DEEP ? ROWS / 16 : 1); ++i) rows[i] = row_of(a, first_row + left_across(i));
  Value sums[4][4];
  UNROLL
  for (int i = 0; i < 4; ++i) {
    UNROLL
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  }
  Value next_left[AHEAD ? ROWS / 16 : 1], next_right[AHEAD ? COLUMNS / 16 : 1];
  for (Index at = begin;; at += 16) {
    if (AHEAD && at < end) {
      UNROLL
      for (int i = 0; i < ROWS / 16; ++i) next_left[AHEAD ? i : 0] = of_left(a, left_from, rows, at, end, i);
      UNROLL
      for (int i = 0; i < COLUMNS / 16; ++i) next_right[AHEAD ? i : 0] = of_right(a, right_from, first_column, at, end, i);
    }
    for (int k = 0; k < 16 && at > begin; ++k) {
      const Four of_rows = left[k][own_row], of_columns = right[k][own_column];
      UNROLL
      for (int i = 0; i < 4; ++i) {
        UNROLL
        for (int j = 0; j < 4; ++j) sums[i][j] = added(sums[i][j], of_rows.v[i], of_columns.v[j]);
      }
    }
    if (at >= end) break;
    barrier();
    UNROLL
    for (int i = 0; i < ROWS / 16; ++i)
      left[left_deep(i)][left_across(i) / 4].v[left_across(i) % 4] = AHEAD ? next_left[AHEAD ? i : 0] : of_left(a, left_from, rows, at, end, i);
    EACH
    for (int i = 0; i < COLUMNS / 16; ++i)
      right[right_deep(i)][right_across(i) / 4].v[right_across(i) % 4] = AHEAD ? next_right[AHEAD ? i : 0] : of_right(a, right_from, first_column, at, end, i);
    barrier();
  }
  UNROLL
  for (int i = 0; i < 4; ++i) {
    const Index row = first_row + own_row * 4 + i;
    UNROLL
    for (int j = 0; j < 4; ++j) {
      const Index column = first_column + own_column * 4 + j;
      if (row >= (Index)a.n[0] || column >= (Index)a.n[1]) continue;
      if (a.n[4] == 1)
        to[place_of(a, row, column)] = stored_of(sums[i][j]);
      else
        ((Value*)a.workspace)[part_of(a, group, part, row, column)] = sums[i][j];
    }
  }
}
DEVICE void sum_parts(const Arguments& a, i64 at) {
  const i64 each = a.n[0] * a.n[1];
  if (at >= each * a.n[3]) return;
  const i64 group = at / each, row = at % each / a.n[1], column = at % a.n[1];
  Value sum = ((const Value*)a.workspace)[part_of(a, group, 0, row, column)];
  for (i64 part = 1; part < a.n[4]; ++part)
    sum = sum_of(sum, ((const Value*)a.workspace)[part_of(a, group, part, row, column)]);
  ((Stored*)a.p2 + bases_of(a, (Index)group).out)[place_of(a, (Index)row, (Index)column)] = stored_of(sum);
}
)";

class ContractionWriter {
 public:
  ContractionWriter(const LibraryCall& call, RoutineText& made) : call_(call), made_(made) {}

  void write() {
    const bool is_matmul = call_.kind == LibraryCall::Kind::matmul;
    if (is_matmul)
      plan_matmul();
    else
      plan_convolution();
    const int width = n(columns) > 32 ? 64 : n(columns) > 16 ? 32 : 16;
    const int height = tile_elements / width;
    n(row_tiles) = ceil_div(n(rows), height);
    n(column_tiles) = ceil_div(n(columns), width);
    plan_parts();
    // Places of a convolution take so many registers that it asks for one element after the other.
    made_.text += fmt::format(
        "#define ROWS {}\n#define COLUMNS {}\n#define LEFT_DEEP {:d}\n#define RIGHT_DEEP {:d}\n"
        "#define AHEAD {:d}\n#define EACH {}\n",
        height, width, is_left_deep_, is_right_deep_, is_matmul, is_matmul ? "UNROLL" : "ROLLED");
    made_.text += words;
    made_.text += own_words();
    made_.text += tiles;
    const int64_t elements = n(rows) * n(columns) * n(groups);
    made_.add_step("sum_tile(a)",
                   n(row_tiles) * n(column_tiles) * n(groups) * n(parts) * block_threads);
    made_.add_step("sum_parts(a, at)", n(parts) > 1 ? elements : 0);
  }

 private:
  [[nodiscard]] int64_t& n(int at) { return made_.arguments.numbers[static_cast<std::size_t>(at)]; }
  void put(int at, const OperandLayout& operand, bool is_stride, int first, int last) {
    for (int i = first; i < last; ++i)
      n(at + i - first) = is_stride ? operand.strides[i] : operand.shape[i];
  }

  [[nodiscard]] std::string own_words() const {
    switch (call_.kind) {
      case LibraryCall::Kind::conv2d:
        return fmt::format("{}{}", images, conv2d);
      case LibraryCall::Kind::conv2d_input:
        return fmt::format("{}{}", images, conv2d_input);
      case LibraryCall::Kind::conv2d_weight:
        return fmt::format("{}{}", images, conv2d_weight);
      default:
        return std::string(matmul);
    }
  }

  void plan_matmul() {
    const OperandLayout &x = call_.operands[0], &y = call_.operands[1], &out = call_.operands[2];
    const int batch = out.shape.size() - 2;
    n(rows) = out.shape[batch];
    n(columns) = out.shape[batch + 1];
    n(depth) = x.shape[batch + 1];
    n(groups) = 1;
    for (int axis = 0; axis < batch; ++axis) n(groups) *= out.shape[axis];
    put(first_own, x, true, batch, batch + 2);
    put(first_own + 2, y, true, batch, batch + 2);
    put(first_own + 4, out, true, batch, batch + 2);
    n(first_own + 6) = batch;
    put(16, out, false, 0, batch);
    put(24, x, true, 0, batch);
    put(32, y, true, 0, batch);
    put(40, out, true, 0, batch);
    is_left_deep_ = x.strides[batch + 1] == 1;
    is_right_deep_ = y.strides[batch] == 1 && y.strides[batch + 1] != 1;
  }

  void plan_convolution() {
    using Kind = LibraryCall::Kind;
    const bool is_input = call_.kind == Kind::conv2d_input;
    const bool is_weight = call_.kind == Kind::conv2d_weight;
    const OperandLayout& x = call_.operands[is_input ? 2 : 0];
    const OperandLayout& weight = call_.operands[is_weight ? 2 : 1];
    const OperandLayout& y = call_.operands[is_input ? 0 : is_weight ? 1 : 2];
    int at = first_own;
    for (const OperandLayout* const operand : {&x, &weight, &y}) {
      put(at, *operand, false, 0, 4);
      put(at + 4, *operand, true, 0, 4);
      at += 8;
    }
    const Windows& w = call_.windows;
    for (const auto& pair : {w.kernel, w.stride, w.padding, w.dilation}) {
      n(at++) = pair[0];
      n(at++) = pair[1];
    }
    const int64_t channels = weight.shape[1], filters = weight.shape[0] / w.groups;
    n(at++) = channels;
    n(at++) = filters;
    const int64_t apart_x = channels * x.strides[3], apart_y = filters * y.strides[3],
                  apart_weight = filters * weight.strides[0];
    n(at++) = is_input ? apart_y : apart_x;
    n(at++) = is_weight ? apart_y : apart_weight;
    n(at) = is_input ? apart_x : is_weight ? apart_weight : apart_y;
    const int64_t taps = w.kernel[0] * w.kernel[1];
    const int64_t pixels = y.shape[0] * y.shape[1] * y.shape[2];
    n(groups) = w.groups;
    n(rows) = is_input    ? x.shape[0] * x.shape[1] * x.shape[2]
              : is_weight ? taps * channels
                          : pixels;
    n(columns) = is_input ? channels : filters;
    n(depth) = is_input ? taps * filters : is_weight ? pixels : taps * channels;
    const bool has_last_channels = (is_input ? y : x).strides[3] == 1;
    is_left_deep_ = has_last_channels != is_weight;
    is_right_deep_ = call_.kind == Kind::conv2d || (is_weight && y.strides[3] != 1);
  }

  /// Cuts sums that few blocks of threads would go through alone.
  void plan_parts() {
    const int64_t count = n(row_tiles) * n(column_tiles) * n(groups);
    const int64_t wanted = count == 0 ? 1 : enough_tiles / count;
    const int64_t most = std::max<int64_t>(1, n(depth) / least_part);
    const int64_t each = ceil_div(n(depth), std::clamp<int64_t>(wanted, 1, most));
    n(part_depth) = std::max<int64_t>(1, ceil_div(each, tile_depth)) * tile_depth;
    n(parts) = std::max<int64_t>(1, ceil_div(n(depth), n(part_depth)));
    if (n(parts) > 1) {
      made_.workspace_bytes =
          static_cast<std::size_t>(n(rows) * n(columns) * n(groups) * n(parts)) * sizeof(int64_t);
    }
  }

  const LibraryCall& call_;
  RoutineText& made_;
  bool is_left_deep_ = false, is_right_deep_ = false;
};

}  // namespace

void write_contraction(const LibraryCall& call, RoutineText& made) {
  ContractionWriter(call, made).write();
}

}  // namespace nitinol::cuda
