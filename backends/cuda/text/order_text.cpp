// What sort() sorts are elements, by unsigned integers that compare as they do.
#include "backends/cuda/text/order_text.h"

#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/radix_text.h"
#include "backends/cuda/text/routine_text.h"
#include "core/error.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace nitinol::cuda {
namespace {

// Numbers: strides of x and out along the axis, rank of the other axes, results of a line; what
// turns the order around; then sizes and strides of those axes.
constexpr std::string_view lines = R"(
DEVICE Keys given_of(const Arguments& a, i64 line) {
  Keys keys;
  keys.from = (const Bits*)a.p0 + offset_of(line, a.n + 8, a.n + 16, (int)a.n[4]);
  keys.step = a.n[2];
  return keys;
}
DEVICE i64 result_of(const Arguments& a, i64 line) { return offset_of(line, a.n + 8, a.n + 24, (int)a.n[4]); }
DEVICE Bits order_of(const Arguments& a, Bits key) { return (Bits)(key_of(key) ^ (Bits)a.n[6]); }
)";
constexpr std::string_view write_elements = R"(
DEVICE void write_sorted(const Arguments& a, i64 result, i64 i, Bits key, Place place) { ((Bits*)a.p1)[result + i * a.n[3]] = key; }
)";
constexpr std::string_view write_places = R"(
DEVICE void write_sorted(const Arguments& a, i64 result, i64 i, Bits key, Place place) {
  if (i < a.n[5]) ((i64*)a.p1)[result + i * a.n[3]] = (i64)place;
}
)";

// Numbers: sorted elements, their stride; whether equal ones count; rank, elements; then sizes and
// strides of x and out.
constexpr std::string_view search = R"(
DEVICE void find_place(const Arguments& a, i64 at) {
  if (at >= a.n[4]) return;
  const Bits wanted = key_of(((const Bits*)a.p1)[offset_of(at, a.n + 8, a.n + 16, (int)a.n[3])]);
  i64 first = 0;
  for (i64 left = a.n[0]; left > 0; left -= left > 1 ? left / 2 : 1) {
    const i64 half = left > 1 ? left / 2 : 1;
    const Bits key = key_of(((const Bits*)a.p0)[(first + half - 1) * a.n[1]]);
    if (a.n[2] != 0 ? key <= wanted : key < wanted) first += half;
  }
  ((i64*)a.p2)[offset_of(at, a.n + 8, a.n + 24, (int)a.n[3])] = first;
}
)";

// Numbers: elements of the mask, its stride; rows of the result, elements of one, rank; then sizes
// of the result, strides of x and of it. Item i of a thread is one of 32 neighbours that its warp
// looks at together.
constexpr std::string_view choose = R"(
DEVICE Index item_of(u32 i) {
  return (Index)block_index() * 4096 + (Index)(thread_index() / 32 * 512 + i * 32 + thread_index() % 32);
}
DEVICE u32 chosen_of(const Arguments& a) {
  u32 chosen = 0;
  UNROLL
  for (u32 i = 0; i < 16; ++i)
    if (item_of(i) < (Index)a.n[0] && ((const u8*)MASK)[item_of(i) * (Index)a.n[1]] != 0) chosen |= 1u << i;
  return chosen;
}
DEVICE void count_chosen(const Arguments& a, Place* sums) {
  const Place own = bits_in(chosen_of(a)), before = sum_before(own, sums);
  if (thread_index() == 255) counts_of(a)[block_index()] = before + own;
}
DEVICE void place_chosen(const Arguments& a, Place* sums) {
  const u32 chosen = chosen_of(a), lane = thread_index() % 32;
  u32 in_warp = 0;
  UNROLL
  for (u32 i = 0; i < 16; ++i) in_warp += bits_in(lanes_where((chosen >> i & 1u) != 0));
  Index to = (Index)counts_of(a)[block_index()] + (Index)sum_before(lane == 31 ? in_warp : 0, sums);
  UNROLL
  for (u32 i = 0; i < 16; ++i) {
    const bool is_chosen = (chosen >> i & 1u) != 0;
    const u32 lanes = lanes_where(is_chosen);
    if (is_chosen) write_row(a, to + (Index)bits_in(lanes & ((1u << lane) - 1)), item_of(i));
    to += (Index)bits_in(lanes);
  }
}
)";
// Rows of one element are written at once, others when all their places are known.
constexpr std::string_view compress_elements = R"(
DEVICE void write_row(const Arguments& a, Index to, Index row) {
  if (to < (Index)a.n[2]) ((Bits*)a.p2)[to * (Index)a.n[24]] = ((const Bits*)a.p0)[row * (Index)a.n[16]];
}
DEVICE void write_rest(const Arguments& a, i64 at) {
  if (at < a.n[2] && at >= (i64)totals_of(a)[0]) ((Bits*)a.p2)[at * a.n[24]] = 0;
}
)";
constexpr std::string_view compress_rows = R"(
DEVICE void write_row(const Arguments& a, Index to, Index row) { ((Place*)a.workspace)[to] = (Place)row; }
DEVICE void write_rest(const Arguments& a, i64 at) {
  if (at >= a.n[2] * a.n[3]) return;
  Index to = (Index)at;
  const Index target = offset_of(to, a.n + 8, a.n + 24, (int)a.n[4]);
  const Index from = offset_of(digit(to, a.n[3]), a.n + 9, a.n + 17, (int)a.n[4] - 1);
  Bits value = 0;
  if (to < (i64)totals_of(a)[0]) value = ((const Bits*)a.p0)[(Index)((const Place*)a.workspace)[to] * (Index)a.n[16] + from];
  ((Bits*)a.p2)[target] = value;
}
)";
constexpr std::string_view positions = R"(
DEVICE void write_row(const Arguments& a, Index to, Index row) { if (to < (Index)a.n[2]) ((i64*)a.p1)[to * (Index)a.n[24]] = row; }
DEVICE void write_rest(const Arguments& a, i64 at) {
  if (at < a.n[2] && at >= (i64)totals_of(a)[0]) ((i64*)a.p1)[at * a.n[24]] = -1;
}
)";

class OrderWriter {
 public:
  OrderWriter(const LibraryCall& call, RoutineText& made) : call_(call), made_(made) {}

  void write() {
    switch (call_.kind) {
      case LibraryCall::Kind::sort:
      case LibraryCall::Kind::argsort:
        return write_lines();
      case LibraryCall::Kind::search:
        return write_search();
      default:
        return write_choice();
    }
  }

 private:
  [[nodiscard]] int64_t& n(int at) { return made_.arguments.numbers[static_cast<std::size_t>(at)]; }
  [[nodiscard]] const OperandLayout& x() const { return call_.operands[0]; }
  template <class List>
  void put(int at, const List& list) {
    for (int i = 0; i < list.size(); ++i) n(at + i) = list[i];
  }
  /// -0 has the key of 0, and every NaN the greatest one.
  void write_keys() {
    const auto bytes = size_of(x().dtype);
    const auto bits = [&](uint64_t value) { return fmt::format("(Bits){:#x}ull", value); };
    const std::string top = bits(uint64_t{1} << (8 * bytes - 1));
    made_.text += "DEVICE Bits key_of(Bits bits) {\n";
    if (is_floating(x().dtype)) {
      const uint64_t infinite = x().dtype == f16    ? 0x7c00
                                : x().dtype == bf16 ? 0x7f80
                                : x().dtype == f32  ? 0x7f800000
                                                    : 0x7ff0000000000000;
      made_.text += fmt::format(
          "  const Bits size = (Bits)(bits & (Bits)~{0});\n  if (size > {1}) return "
          "(Bits)~(Bits)0;\n"
          "  if (size == 0) return {0};\n  return size == bits ? (Bits)(bits ^ {0}) : "
          "(Bits)~bits;\n",
          top, bits(infinite));
    } else {
      const bool is_signed = is_signed_integer(compute_type(x().dtype));
      made_.text += fmt::format("  return (Bits)(bits ^ {});\n", is_signed ? top : bits(0));
    }
    made_.text += "}\n";
  }

  void write_lines() {
    const OperandLayout& out = call_.operands[1];
    const int axis = call_.axis;
    n(2) = x().strides[axis];
    n(3) = out.strides[axis];
    n(5) = out.shape[axis];
    n(6) = call_.is_descending ? -1 : 0;
    int others = 0;
    int64_t count = 1;
    for (int i = 0; i < x().shape.size(); ++i) {
      if (i == axis) continue;
      count *= x().shape[i];
      n(8 + others) = x().shape[i];
      n(16 + others) = x().strides[i];
      n(24 + others++) = out.strides[i];
    }
    n(4) = others;
    const bool is_sort = call_.kind == LibraryCall::Kind::sort;
    const int bytes = static_cast<int>(size_of(x().dtype));
    const RadixSort sort = {
        .key_bytes = bytes,
        .place_bytes = x().shape[axis] >> 32 == 0 ? 4 : 8,
        .lines = count,
        .length = x().shape[axis],
        .digits = bytes,
        .wanted = is_sort ? 0 : out.shape[axis],
        .places = is_sort ? RadixSort::Places::none : RadixSort::Places::positions};
    open_radix_sort(sort, made_);
    write_keys();
    made_.text += lines;
    made_.text += is_sort ? write_elements : write_places;
    add_radix_sort(sort, made_);
  }

  void write_search() {
    made_.text += fmt::format("typedef u{} Bits;\n", 8 * size_of(x().dtype));
    write_keys();
    made_.text += search;
    const OperandLayout &wanted = call_.operands[1], &out = call_.operands[2];
    n(0) = x().shape[0];
    n(1) = x().strides[0];
    n(2) = call_.is_right ? 1 : 0;
    n(3) = wanted.shape.size();
    n(4) = element_count(wanted.shape);
    put(8, wanted.shape);
    put(16, wanted.strides);
    put(24, out.strides);
    made_.add_step("find_place(a, at)", n(4));
  }

  void write_choice() {
    const bool is_compress = call_.kind == LibraryCall::Kind::compress;
    const OperandLayout &mask = call_.operands[is_compress ? 1 : 0], &out = call_.operands.back();
    n(0) = mask.shape[0];
    n(1) = mask.strides[0];
    n(2) = out.shape[0];
    n(3) = out.shape[0] == 0 ? 0 : element_count(out.shape) / out.shape[0];
    n(4) = out.shape.size();
    put(8, out.shape);
    put(16, x().strides);
    put(24, out.strides);
    constexpr int64_t tile = 16 * block_threads;
    const Counts counts = {
        .lines = 1, .tiles = ceil_div(n(0), tile), .digits = 1, .bytes = n(0) >> 32 == 0 ? 4 : 8};
    const bool has_rows = is_compress && out.shape.size() > 1;
    if (has_rows) made_.workspace_bytes = static_cast<std::size_t>(n(0) * counts.bytes);
    made_.text += fmt::format("typedef u{} Place;\ntypedef u{} Bits;\n#define MASK a.p{:d}\n",
                              8 * counts.bytes, 8 * size_of(x().dtype), is_compress);
    open_counts(counts, made_);
    made_.text += has_rows ? compress_rows : is_compress ? compress_elements : positions;
    made_.text += choose;
    const int64_t threads = counts.tiles * block_threads;
    made_.add_step("SHARED Place sums[256]; count_chosen(a, sums)", threads);
    add_sum_of_counts(counts, made_);
    made_.add_step("SHARED Place sums[256]; place_chosen(a, sums)", threads);
    made_.add_step("write_rest(a, at)", n(2) * n(3));
  }

  const LibraryCall& call_;
  RoutineText& made_;
};

}  // namespace

void write_order(const LibraryCall& call, RoutineText& made) {
  OrderWriter(call, made).write();
}

}  // namespace nitinol::cuda
