#include "backends/cuda/text/contraction_text.h"

#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/routine_text.h"
#include "backends/cuda/text/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>

namespace nitinol::cuda {
namespace {

// Numbers: rows, columns and depth of the product; groups, of which each is one; parts of a sum,
// the depth of a part; tiles in a column and in a row of the result.
enum Number : int { rows, columns, depth, groups, parts, part_depth, row_tiles, column_tiles };
constexpr int first_own = 8;      ///< numbers of the kind of call begin here
constexpr int first_digits = 47;  ///< and those of steps along the depth of a convolution

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
typedef Index Depth;
typedef Index Column;
DEVICE Bases bases_of(const Arguments& a, Index group) {
  const int rank = (int)a.n[14];
  return {offset_of(group, a.n + 16, a.n + 24, rank), offset_of(group, a.n + 16, a.n + 32, rank),
          offset_of(group, a.n + 16, a.n + 40, rank)};
}
DEVICE Depth depth_from(const Arguments&, Index k) { return k; }
DEVICE Index index_of(Depth k) { return k; }
DEVICE void step(const Arguments&, Depth& k, int, Index by) { k += by; }
DEVICE Row row_of(const Arguments& a, Index m) { return {m * (Index)a.n[8], m < (Index)a.n[0]}; }
DEVICE Column column_of(const Arguments& a, Depth k) { return k * (Index)a.n[9]; }
DEVICE Value left_at(const Arguments&, const Stored* from, Row row, Column column) {
  return row.is_there ? value_of(from[row.base + column]) : Value(0);
}
DEVICE Index depth_of(const Arguments& a, Depth k) { return k * (Index)a.n[10]; }
DEVICE Index line_of(const Arguments& a, Index n) { return n * (Index)a.n[11]; }
DEVICE Index place_of(const Arguments& a, Index m, Index n) { return m * (Index)a.n[12] + n * (Index)a.n[13]; }
)";

// Numbers: sizes and strides of x, weight, y; kernel, stride, padding, dilation; channels of a
// group of x and of y; how far apart groups begin in the operands; sizes of the depth's two last
// digits; three digits for each way to step.
constexpr std::string_view images = R"(
DEVICE Bases bases_of(const Arguments& a, Index group) {
  return {group * a.n[42], group * a.n[43], group * a.n[44]};
}
// A place along the depth by its digits, which go on without a division.
struct Depth { Index at, high, middle, low; };
DEVICE Depth depth_from(const Arguments& a, Index at) {
  Depth k = {at, at, 0, 0};
  k.low = digit(k.high, a.n[46]);
  k.middle = digit(k.high, a.n[45]);
  return k;
}
DEVICE Index index_of(const Depth& k) { return k.at; }
DEVICE void step(const Arguments& a, Depth& k, int way, Index by) {
  const i64* const digits = a.n + 47 + 3 * way;
  k.at += by;
  k.low += (Index)digits[2];
  const bool is_low = k.low >= (Index)a.n[46];
  k.low -= is_low ? (Index)a.n[46] : 0;
  k.middle += (Index)digits[1] + (is_low ? 1 : 0);
  const bool is_middle = k.middle >= (Index)a.n[45];
  k.middle -= is_middle ? (Index)a.n[45] : 0;
  k.high += (Index)digits[0] + (is_middle ? 1 : 0);
}
// Pixels of one image are seen by taps of a filter where both together lie inside the other: their
// heights and widths are added, and so are their places.
struct alignas(4 * sizeof(Index)) Spot { Index place, h, w; };
DEVICE bool is_inside(Index at, i64 size) { return (UnsignedIndex)at < (UnsignedIndex)size; }
// As a height: inside nothing, whatever is added.
DEVICE Index nowhere() { return -((Index)1 << 8 * sizeof(Index) - 2); }
DEVICE Index weight_of(const Arguments& a, Index o, Index c, Index p, Index q) {
  return o * (Index)a.n[20] + c * (Index)a.n[21] + p * (Index)a.n[22] + q * (Index)a.n[23];
}
DEVICE Spot spot_in_x(const Arguments& a, Index base, Index h, Index w, bool is_there) {
  return {base + h * (Index)a.n[13] + w * (Index)a.n[14], is_there ? h : nowhere(), w};
}
// The tap (p, q) of a channel of x.
DEVICE Spot tap_of(const Arguments& a, Index p, Index q, Index channel, bool is_there) {
  return spot_in_x(a, channel * (Index)a.n[15], p * (Index)a.n[38], q * (Index)a.n[39], is_there);
}
// Where in x the window of a pixel of y begins.
DEVICE Spot window_of(const Arguments& a, Index image, Index h, Index w, bool is_there) {
  return spot_in_x(a, image * (Index)a.n[12], h * (Index)a.n[34] - (Index)a.n[36], w * (Index)a.n[35] - (Index)a.n[37], is_there);
}
DEVICE Value x_at(const Arguments& a, const Stored* x, Spot pixel, Spot tap) {
  const bool is_there = is_inside(pixel.h + tap.h, a.n[9]) && is_inside(pixel.w + tap.w, a.n[10]);
  return is_there ? value_of(x[pixel.place + tap.place]) : Value(0);
}
DEVICE Index y_of(const Arguments& a, Index image, Index h, Index w) {
  return image * (Index)a.n[28] + h * (Index)a.n[29] + w * (Index)a.n[30];
}
)";

// Depth: taps in the order (p, q, channel).
constexpr std::string_view conv2d = R"(
typedef Spot Row;
typedef Spot Column;
DEVICE Row row_of(const Arguments& a, Index m) {
  const bool is_there = m < (Index)a.n[0];
  const Index w = digit(m, a.n[26]), h = digit(m, a.n[25]);
  return window_of(a, m, h, w, is_there);
}
DEVICE Column column_of(const Arguments& a, const Depth& k) { return tap_of(a, k.high, k.middle, k.low, true); }
DEVICE Value left_at(const Arguments& a, const Stored* x, Row row, Column column) { return x_at(a, x, row, column); }
DEVICE Index depth_of(const Arguments& a, const Depth& k) { return weight_of(a, 0, k.low, k.high, k.middle); }
DEVICE Index line_of(const Arguments& a, Index n) { return weight_of(a, n, 0, 0, 0); }
DEVICE Index place_of(const Arguments& a, Index m, Index n) {
  const Index w = digit(m, a.n[26]), h = digit(m, a.n[25]);
  return y_of(a, m, h, w) + n * (Index)a.n[31];
}
)";

// Depth: taps in the order (p, q, filter). Numbers: for each of the two strides, of what odd number
// it is the multiple by a power of two: the inverse of the odd number, and the power.
constexpr std::string_view conv2d_input = R"(
typedef Spot Row;
typedef Spot Column;
DEVICE Row row_of(const Arguments& a, Index m) {
  const bool is_there = m < (Index)a.n[0];
  const Index w = digit(m, a.n[10]), h = digit(m, a.n[9]);
  return {m * (Index)a.n[28], is_there ? h + (Index)a.n[36] : nowhere(), w + (Index)a.n[37]};
}
DEVICE Column column_of(const Arguments& a, const Depth& k) {
  return {k.low * (Index)a.n[31], k.high * (Index)a.n[38], k.middle * (Index)a.n[39]};
}
// at / stride, and a number larger than any size if that is not whole or at is below 0: the inverse
// gives what the stride multiplied, modulo a power of two, and bits of a remainder go to the top.
DEVICE UnsignedIndex whole_steps(Index at, const i64* stride) {
  const UnsignedIndex product = (UnsignedIndex)at * (UnsignedIndex)stride[0];
  const int bits = 8 * sizeof(Index), power = (int)stride[1];
  return product >> power | product << (bits - power & bits - 1);
}
// The pixel of y whose window has x's pixel under this tap, if there is one.
DEVICE Value left_at(const Arguments& a, const Stored* y, Row row, Column column) {
  const UnsignedIndex i = whole_steps(row.h - column.h, a.n + 56), j = whole_steps(row.w - column.w, a.n + 58);
  const bool is_there = i < (UnsignedIndex)a.n[25] && j < (UnsignedIndex)a.n[26];
  return is_there ? value_of(y[row.place + column.place + (Index)i * (Index)a.n[29] + (Index)j * (Index)a.n[30]]) : Value(0);
}
DEVICE Index depth_of(const Arguments& a, const Depth& k) { return weight_of(a, k.low, 0, k.high, k.middle); }
DEVICE Index line_of(const Arguments& a, Index n) { return weight_of(a, 0, n, 0, 0); }
DEVICE Index place_of(const Arguments& a, Index m, Index n) {
  const Index w = digit(m, a.n[10]), h = digit(m, a.n[9]);
  return m * (Index)a.n[12] + h * (Index)a.n[13] + w * (Index)a.n[14] + n * (Index)a.n[15];
}
)";

// Depth: pixels of y.
constexpr std::string_view conv2d_weight = R"(
typedef Spot Row;
typedef Spot Column;
DEVICE Row row_of(const Arguments& a, Index m) {
  const bool is_there = m < (Index)a.n[0];
  const Index c = digit(m, a.n[40]), q = digit(m, a.n[33]);
  return tap_of(a, m, q, c, is_there);
}
DEVICE Column column_of(const Arguments& a, const Depth& k) { return window_of(a, k.high, k.middle, k.low, true); }
DEVICE Value left_at(const Arguments& a, const Stored* x, Row row, Column column) { return x_at(a, x, column, row); }
DEVICE Index depth_of(const Arguments& a, const Depth& k) { return y_of(a, k.high, k.middle, k.low); }
DEVICE Index line_of(const Arguments& a, Index n) { return n * (Index)a.n[31]; }
DEVICE Index place_of(const Arguments& a, Index m, Index n) {
  const Index c = digit(m, a.n[40]), q = digit(m, a.n[33]);
  return weight_of(a, n, c, m, q);
}
)";

// The threads that load a tile lie along the depth if it is `deep`, else across it: neighbours load
// what lies together in memory. They ask for the next tiles before they multiply those in shared
// memory. A thread has four neighbouring rows and columns, which it reads at once: 16 products for
// two reads. Lines of the tiles have four elements more, so that neither way of loading brings all
// threads of a warp to one bank. What takes divisions is found once for each row, and waits in
// shared memory if SHARED_ROWS; places along the depth follow from those before.
constexpr std::string_view tiles = R"(
DEVICE i64 part_of(const Arguments& a, i64 group, i64 part, i64 row, i64 column) {
  return ((group * a.n[4] + part) * a.n[0] + row) * a.n[1] + column;
}
typedef Vector<Value, 4> Four;
DEVICE int left_deep(int i) { return LEFT_DEEP ? (int)thread_index() % 16 : (int)thread_index() / ROWS + 256 / ROWS * i; }
DEVICE int left_across(int i) { return LEFT_DEEP ? (int)thread_index() / 16 + 16 * i : (int)thread_index() % ROWS; }
DEVICE int right_deep(int i) { return RIGHT_DEEP ? (int)thread_index() % 16 : (int)thread_index() / COLUMNS + 256 / COLUMNS * i; }
DEVICE int right_across(int i) { return RIGHT_DEEP ? (int)thread_index() / 16 + 16 * i : (int)thread_index() % COLUMNS; }
// Asks for the elements of the next tiles that this thread puts there.
template <class RowAt> DEVICE void load_left(const Arguments& a, const Stored* from, RowAt row_at, Depth& at, Index end, Value* next) {
  const Row own = row_at(0);
  Column column = column_of(a, at);
  UNROLL
  for (int i = 0; i < ROWS / 16; ++i) {
    next[i] = index_of(at) < end ? left_at(a, from, LEFT_DEEP ? row_at(i) : own, column) : Value(0);
    if (LEFT_DEEP) continue;
    step(a, at, 1, 256 / ROWS);
    column = column_of(a, at);
  }
  if (LEFT_DEEP) step(a, at, 0, 16);
}
DEVICE void load_right(const Arguments& a, const Stored* from, Index first_column, Depth& at, Index end, Value* next) {
  Index deep = depth_of(a, at);
  UNROLL
  for (int i = 0; i < COLUMNS / 16; ++i) {
    const Index column = first_column + right_across(i);
    next[i] = index_of(at) < end && column < (Index)a.n[1] ? value_of(from[line_of(a, column) + deep]) : Value(0);
    if (RIGHT_DEEP) continue;
    step(a, at, 2, 256 / COLUMNS);
    deep = depth_of(a, at);
  }
  if (RIGHT_DEEP) step(a, at, 0, 16);
}
DEVICE void sum_tile(const Arguments& a) {
  SHARED Four left[16][ROWS / 4 + 1];
  SHARED Four right[16][COLUMNS / 4 + 1];
  SHARED Row rows[SHARED_ROWS ? ROWS : 1];
  const int own = (int)thread_index(), own_row = own / (COLUMNS / 4), own_column = own % (COLUMNS / 4);
  Index block = (Index)block_index();
  const Index first_column = digit(block, a.n[7]) * COLUMNS, first_row = digit(block, a.n[6]) * ROWS;
  const Index part = digit(block, a.n[4]), group = block;
  const Index begin = part * (Index)a.n[5], end = least<Index>(begin + (Index)a.n[5], (Index)a.n[2]);
  const Bases bases = bases_of(a, group);
  const Stored* const left_from = (const Stored*)a.p0 + bases.left;
  const Stored* const right_from = (const Stored*)a.p1 + bases.right;
  Stored* const to = (Stored*)a.p2 + bases.out;
  if (SHARED_ROWS) {
    if (own < ROWS) rows[own] = row_of(a, first_row + own);
    barrier();
  }
  const auto row_at = [&](int i) { return SHARED_ROWS ? rows[left_across(i)] : row_of(a, first_row + left_across(i)); };
  Depth left_depth = depth_from(a, begin + left_deep(0)), right_depth = depth_from(a, begin + right_deep(0));
  Value sums[4][4];
  UNROLL
  for (int i = 0; i < 4; ++i) {
    UNROLL
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  }
  Value next_left[ROWS / 16], next_right[COLUMNS / 16];
  for (Index at = begin;; at += 16) {
    if (at < end) {
      load_left(a, left_from, row_at, left_depth, end, next_left);
      load_right(a, right_from, first_column, right_depth, end, next_right);
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
    for (int i = 0; i < ROWS / 16; ++i) left[left_deep(i)][left_across(i) / 4].v[left_across(i) % 4] = next_left[i];
    UNROLL
    for (int i = 0; i < COLUMNS / 16; ++i) right[right_deep(i)][right_across(i) / 4].v[right_across(i) % 4] = next_right[i];
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

/// Of an odd number, modulo 2^64: each round doubles how many of the low bits are right, from 3 on.
uint64_t inverse_of(uint64_t odd) {
  uint64_t inverse = odd;
  for (int round = 0; round < 5; ++round) inverse *= 2 - odd * inverse;
  return inverse;
}

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
    if (!is_matmul) put_steps(height, width);
    made_.text += fmt::format(
        "#define ROWS {}\n#define COLUMNS {}\n#define LEFT_DEEP {:d}\n#define RIGHT_DEEP {:d}\n"
        "#define SHARED_ROWS {:d}\n",
        height, width, is_left_deep_, is_right_deep_, !is_matmul);
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
    n(at++) = is_input ? apart_x : is_weight ? apart_weight : apart_y;
    n(at++) = std::max<int64_t>(1, is_weight ? y.shape[1] : w.kernel[1]);
    n(at) = std::max<int64_t>(1, is_weight ? y.shape[2] : is_input ? filters : channels);
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

  /// How the digits of a place along the depth go on: by a tile, by the threads that load the left
  /// one across it, and the right one.
  void put_steps(int height, int width) {
    const int64_t middle = n(first_digits - 2), low = n(first_digits - 1);
    int at = first_digits;
    for (const int64_t by : {tile_depth, block_threads / height, block_threads / width}) {
      n(at++) = by / low / middle;
      n(at++) = by / low % middle;
      n(at++) = by % low;
    }
    for (const int64_t stride : call_.windows.stride) {
      const int power = std::countr_zero(static_cast<uint64_t>(stride));
      n(at++) = static_cast<int64_t>(inverse_of(static_cast<uint64_t>(stride) >> power));
      n(at++) = power;
    }
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
