// Values that come to one place are joined in their order: a stable sort by places brings them
// together. Where the last one replaces the others, it is enough to know which that is; and sums of
// integers are the same in any order, so they are added where they belong at once.
#include "backends/cuda/text/scatter_text.h"

#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/radix_text.h"
#include "backends/cuda/text/routine_text.h"
#include "backends/cuda/text/scan_text.h"
#include "backends/cuda/text/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace nitinol::cuda {
namespace {

// Numbers: indices, columns of a row, rows, places; from 6 on the rank of the result, and the axis
// along which each value has an index of its own, or -1; then sizes and strides, of x from 80 on;
// places of the result, and whether it and x lie as linear numbers say. START is what a place has
// before, FROM where that lies, or 0 for zeros.
constexpr std::string_view begin = R"(
DEVICE void begin_place(const Arguments& a, i64 at) {
  if (at < a.n[72]) ((Stored*)OUT)[offset_of((Index)at, a.n + 56, a.n + 64, (int)a.n[6])] = START;
}
// A block of threads has 16 kB, a thread four pieces of 16 bytes.
DEVICE void begin_bytes(u8* to, const u8* from, u64 bytes) {
  if (to == from) return;
  const bool is_aligned = ((u64)to | (u64)from) % 16 == 0;
  UNROLL
  for (u32 j = 0; j < 4; ++j) {
    const u64 at = (u64)block_index() * 16384 + j * 4096 + thread_index() * 16;
    Vector<u32, 4> piece = {{0, 0, 0, 0}};
    if (is_aligned && at + 16 <= bytes) {
      if (from != 0) piece = load_at_once<Vector<u32, 4> >(from + at);
      store_at_once(to + at, piece);
    } else {
      ROLLED
      for (u64 e = at; e < at + 16 && e < bytes; ++e) to[e] = from != 0 ? from[e] : (u8)0;
    }
  }
}
DEVICE void begin_places(const Arguments& a) { begin_bytes((u8*)OUT, (const u8*)FROM, (u64)a.n[72] * sizeof(Stored)); }
// The place of an index; the number of all places if there is none.
DEVICE Bits place_of(const Arguments& a, Index at) {
  const i64 given = ((const i64*)NAMED)[offset_of(at, a.n + 8, a.n + 16, INDEX_RANK)];
  const i64 row = given < 0 ? given + a.n[2] : given;
  if (row < 0 || row >= a.n[2]) {
    if (a.status != 0) report(a.status, 1u);
    return (Bits)a.n[3];
  }
  if (a.n[7] < 0) return (Bits)row;
  Index linear = 0, step = 1;
  ROLLED
  for (int axis = INDEX_RANK - 1; axis >= 0; --axis) {
    const Index here = digit(at, a.n[8 + axis]);
    linear += (axis == a.n[7] ? (Index)row : here) * step;
    step *= (Index)a.n[56 + axis];
  }
  return (Bits)linear;
}
DEVICE Index value_at(const Arguments& a, Index at) { return offset_of(at, a.n + 8, a.n + 24, INDEX_RANK); }
DEVICE Index along_of(const Arguments& a, Index column) { return offset_of(column, a.n + 32, a.n + 40, COLUMN_RANK); }
DEVICE Index result_at(const Arguments& a, Index place, Index column) {
  return a.n[7] >= 0 ? (a.n[73] != 0 ? place : offset_of(place, a.n + 56, a.n + 64, (int)a.n[6]))
                     : place * (Index)a.n[64] + offset_of(column, a.n + 32, a.n + 48, COLUMN_RANK);
}
// Takes the column of element `at` of the values; leaves its index.
DEVICE Index column_of(const Arguments& a, Index& at) { return a.n[1] == 1 ? 0 : digit(at, a.n[1]); }
)";

// What goes with a key is where its values lie. An index of no place has been reported, and is not
// looked at again: what comes of it is of no use to anyone.
constexpr std::string_view sorted = R"(
DEVICE Bits first_key(const Arguments& a, i64 at) {
  const Bits place = place_of(a, (Index)at);
  return place < (Bits)a.n[3] ? place : 0;
}
DEVICE Place first_place(const Arguments& a, i64 at) { return (Place)value_at(a, (Index)at); }
DEVICE Keys given_of(const Arguments& a, i64 line) {
  Keys keys;
  keys.from = 0;
  keys.step = 0;
  return keys;
}
DEVICE i64 result_of(const Arguments& a, i64 line) { return 0; }
DEVICE Bits order_of(const Arguments& a, Bits key) { return key; }
DEVICE void write_sorted(const Arguments& a, i64 result, i64 i, Bits key, Place place) {
  keys_of(a, HALF)[i] = key;
  places_of(a, HALF)[i] = place;
}
)";

// Numbers: the logarithm of the columns of a tile; tiles in a row of columns. A block of threads
// has as many sorted values of one tile as it has threads for. The thread of the first value that
// comes to a place goes through the others, four and then 16 at a time: where they lie is known
// before their sum is. Of more than 64 all threads of the block load the next 4,096 elements while
// the first ones add up those before. BEGIN is what is joined with the first value by JOIN.
constexpr std::string_view added = R"(
// The next `count` values of a group, `rows` apart: how many there are.
template <int count> DEVICE u32 load_group(const Bits* keys, const Place* places, const Stored* values, Bits key, Index at, Index end, Index rows, Stored* next) {
  u32 found = 0;
  UNROLL
  for (int j = 0; j < count; ++j) {
    const Index one = at + j * rows, here = least<Index>(one, end - 1), place = (Index)places[here];
    const bool is_here = one < end && keys[here] == key;
    if (is_here) found = (u32)j + 1;
    next[j] = is_here ? values[place] : (Stored)0;
  }
  return found;
}
// Joins the next `count` values of a group with `all`; whether there are so many.
template <int count> DEVICE bool add_next(const Bits* keys, const Place* places, const Stored* values, Bits key, Index at, Index end, Value& all) {
  Stored next[count];
  const u32 found = load_group<count>(keys, places, values, key, at, end, 1, next);
  UNROLL
  for (u32 j = 0; j < count; ++j) {
    if (j >= found) continue;
    const Value value = value_of(next[j]);
    all = JOIN;
  }
  return found == count;
}
DEVICE void add_group(const Arguments& a, Index first, Index column, bool is_column, const Stored* values, Stored* moved, u32* found) {
  const u32 own = thread_index(), shift = (u32)a.n[4], columns = 1u << shift, rows = 256u >> shift;
  const u32 row = own >> shift, across = own & (columns - 1);
  const Bits* const keys = keys_of(a, HALF);
  const Place* const places = places_of(a, HALF);
  const Bits key = keys[first];
  const bool is_adding = own < columns && is_column;
  const Index to = is_column ? result_at(a, (Index)key, column) : 0;
  Value all = is_adding ? BEGIN : Value(0);
  Stored next[16];
  u32 own_found = load_group<16>(keys, places, values, key, first + (Index)row, (Index)a.n[0], (Index)rows, next);
  for (Index at = first;; at += (Index)(16 * rows)) {
    barrier();
    if (own == 0) *found = 0;
    UNROLL
    for (u32 j = 0; j < 16; ++j) moved[(j * rows + row) * columns + across] = next[j];
    barrier();
    if (own_found > 0) raise_to(found, (own_found - 1) * rows + row + 1);
    barrier();
    const u32 count = *found;
    const bool is_last = count < 16 * rows || at + (Index)(16 * rows) >= (Index)a.n[0];
    if (!is_last) own_found = load_group<16>(keys, places, values, key, at + (Index)(16 * rows + row), (Index)a.n[0], (Index)rows, next);
    for (u32 i = 0; is_adding && i < count; i += 16) {
      Stored some[16];
      UNROLL
      for (u32 j = 0; j < 16; ++j) some[j] = moved[(i + j) * columns + across];
      UNROLL
      for (u32 j = 0; j < 16; ++j) {
        if (i + j >= count) continue;
        const Value value = value_of(some[j]);
        all = JOIN;
      }
    }
    if (is_last) break;
  }
  if (is_adding) ((Stored*)OUT)[to] = stored_of(all);
}
DEVICE void add_up(const Arguments& a, Stored* moved, Index* groups, u32* found) {
  const u32 own = thread_index(), shift = (u32)a.n[4], columns = 1u << shift;
  const Index length = (Index)a.n[0];
  Index tile = (Index)block_index();
  const Index column = digit(tile, a.n[5]) * (Index)columns + (Index)(own & (columns - 1));
  const Index first = tile * (Index)(256u >> shift) + (Index)(own >> shift);
  const bool is_column = column < (Index)a.n[1];
  const Bits* const keys = keys_of(a, HALF);
  const Place* const places = places_of(a, HALF);
  const Stored* const values = (const Stored*)VALUES + (is_column ? along_of(a, column) : 0);
  if (own == 0) found[0] = 0;
  barrier();
  Bits key = 0;
  bool is_first = first < length, is_long = false;
  if (is_first) {
    key = keys[first];
    is_first = first == 0 || keys[first - 1] != key;
    is_long = is_first && first + 64 < length && keys[first + 64] == key;
  }
  if (is_long && (own & (columns - 1)) == 0) groups[count_up(found, 255)] = first;
  if (is_first && !is_long && is_column) {
    const Index to = result_at(a, (Index)key, column);
    Value all = BEGIN;
    bool goes_on = add_next<4>(keys, places, values, key, first, length, all);
    for (Index i = first + 4; goes_on; i += 16) goes_on = add_next<16>(keys, places, values, key, i, length, all);
    ((Stored*)OUT)[to] = stored_of(all);
  }
  barrier();
  const u32 count = found[0];
  for (u32 i = 0; i < count; ++i) add_group(a, groups[i], column, is_column, values, moved, found + 1);
}
)";

// Word is an unsigned integer of the size of a value.
constexpr std::string_view added_at_once = R"(
DEVICE void add_value(const Arguments& a, i64 at) {
  if (at >= a.n[0] * a.n[1]) return;
  Index index = (Index)at;
  const Index column = column_of(a, index);
  const Bits place = place_of(a, index);
  if (place >= (Bits)a.n[3]) return;
  const Stored value = ((const Stored*)VALUES)[value_at(a, index) + along_of(a, column)];
  add_to((Word*)OUT + result_at(a, (Index)place, column), (Word)value);
}
)";

// In the workspace: for each place the number, from 1 on, of the last index that names it.
constexpr std::string_view replaced = R"(
DEVICE void forget(const Arguments& a) { begin_bytes(a.workspace, 0, (u64)a.n[3] * sizeof(u32)); }
DEVICE void find_last(const Arguments& a, i64 at) {
  if (at >= a.n[0]) return;
  const Bits place = place_of(a, (Index)at);
  if (place < (Bits)a.n[3]) raise_to((u32*)a.workspace + place, (u32)at + 1);
}
DEVICE void write_last(const Arguments& a, i64 at) {
  if (at >= a.n[0] * a.n[1]) return;
  Index index = (Index)at;
  const Index column = column_of(a, index);
  const Bits place = place_of(a, index);
  if (place >= (Bits)a.n[3] || ((const u32*)a.workspace)[place] != (u32)index + 1) return;
  ((Stored*)OUT)[result_at(a, (Index)place, column)] = ((const Stored*)VALUES)[value_at(a, index) + along_of(a, column)];
}
)";

bool is_dense(const OperandLayout& operand) {
  return operand.strides == strides_of(operand.shape);
}

/// Pieces of a result that a thread clears or copies.
int64_t threads_for_bytes(int64_t bytes) {
  return ceil_div(bytes, 64 * block_threads) * block_threads;
}

class ScatterWriter {
 public:
  ScatterWriter(const LibraryCall& call, RoutineText& made)
      : call_(call), made_(made), has_base_(call.kind == LibraryCall::Kind::scatter) {}

  void write() {
    put_numbers();
    key_bytes_ = n(3) >> 32 == 0 ? 4 : 8;
    const DType dtype = operand(0).dtype;
    const std::size_t bytes = size_of(dtype);
    if (has_base_ && call_.replaces && n(0) < std::numeric_limits<uint32_t>::max())
      write_replaced();
    else if (!has_base_ && !is_floating(dtype) && (bytes == 4 || bytes == 8))
      write_at_once(bytes);
    else
      write_sorted();
  }

 private:
  [[nodiscard]] int64_t& n(int at) const {
    return made_.arguments.numbers[static_cast<std::size_t>(at)];
  }
  template <class List>
  void put(int at, const List& list, int first, int last) {
    for (int i = first; i < last; ++i) n(at + i - first) = list[i];
  }
  [[nodiscard]] const OperandLayout& operand(std::size_t i) const {
    return call_.operands[has_base_ ? i + 1 : i];
  }

  void put_numbers() {
    const bool is_along = call_.kind == LibraryCall::Kind::scatter_add_along;
    const OperandLayout &values = operand(0), &indices = operand(1), &out = operand(2);
    const int depth = indices.shape.size(), rank = values.shape.size();
    n(0) = element_count(indices.shape);
    n(1) = 1;
    for (int axis = depth; axis < rank; ++axis) n(1) *= values.shape[axis];
    n(2) = out.shape[is_along ? call_.axis : 0];
    n(3) = is_along ? element_count(out.shape) : n(2);
    n(6) = out.shape.size();
    n(7) = is_along ? call_.axis : -1;
    const auto from = [](const auto& list, int first) {
      return std::span<const int64_t>(list.begin() + first, list.end());
    };
    index_rank_ = depth;
    if (is_along) {
      put(8, indices.shape, 0, depth);
      put(16, indices.strides, 0, depth);
      put(24, values.strides, 0, depth);
    } else {
      index_rank_ = put_axes(made_, 8, from(indices.shape, 0), from(indices.strides, 0),
                             from(values.strides, 0).first(static_cast<std::size_t>(depth)));
      column_rank_ = put_axes(made_, 32, from(values.shape, depth), from(values.strides, depth),
                              from(out.strides, 1));
    }
    put(56, out.shape, 0, out.shape.size());
    put(64, out.strides, 0, out.shape.size());
    n(72) = element_count(out.shape);
    n(73) = is_dense(out) && (!has_base_ || is_dense(call_.operands[0])) ? 1 : 0;
    if (has_base_) put(80, call_.operands[0].strides, 0, out.shape.size());
  }

  /// Adds a text with the names of operands and of how values are joined.
  void add(std::string_view with) {
    std::string text(with);
    const auto name = [&text](std::string_view word, std::string_view by) {
      for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at))
        text.replace(at, word.size(), by);
    };
    name("VALUES", has_base_ ? "a.p1" : "a.p0");
    name("NAMED", has_base_ ? "a.p2" : "a.p1");
    name("START", has_base_ ? "((const Stored*)a.p0)[offset_of((Index)at, a.n + 56, a.n + 80, "
                              "(int)a.n[6])]"
                            : "stored_of(Value(0))");
    name("FROM", has_base_ ? "a.p0" : "0");
    name("BEGIN", has_base_ ? "value_of(((const Stored*)OUT)[to])" : "Value(0)");
    name("OUT", has_base_ ? "a.p3" : "a.p2");
    name("JOIN", !has_base_ ? "sum_of(all, value)"
                 : call_.replaces
                     ? "value"
                     : "value_of(stored_of(join_of(all, value)))");  // 16 bits round each time
    made_.text += text;
  }

  void open(int key_bytes) {
    made_.text += fmt::format("typedef u{} Bits;\n", 8 * key_bytes);
    add_begin_words();
  }
  void add_begin_words() {
    made_.text +=
        fmt::format("#define INDEX_RANK {}\n#define COLUMN_RANK {}\n", index_rank_, column_rank_);
    add(begin);
  }

  /// The step that writes what places have before.
  void add_begin() {
    if (n(73) == 0) return made_.add_step("begin_place(a, at)", n(72));
    made_.add_step("begin_places(a)", threads_for_bytes(bytes_of_result()));
  }
  [[nodiscard]] int64_t bytes_of_result() const {
    return n(72) * static_cast<int64_t>(size_of(operand(0).dtype));
  }

  void write_replaced() {
    open(key_bytes_);
    add(replaced);
    const int64_t last = n(3) * static_cast<int64_t>(sizeof(uint32_t));
    made_.workspace_bytes = static_cast<std::size_t>(last);
    if (n(73) == 0) {
      add_begin();
      made_.add_step("forget(a)", threads_for_bytes(last));
    } else {
      made_.add_step("begin_places(a); forget(a)",
                     threads_for_bytes(std::max(last, bytes_of_result())));
    }
    made_.add_step("find_last(a, at)", n(0));
    made_.add_step("write_last(a, at)", n(0) * n(1));
  }

  void write_at_once(std::size_t bytes) {
    open(key_bytes_);
    made_.text += fmt::format("typedef u{} Word;\n", 8 * bytes);
    add(added_at_once);
    add_begin();
    made_.add_step("add_value(a, at)", n(0) * n(1));
  }

  void write_sorted() {
    RadixSort sort = {.key_bytes = key_bytes_,
                      .place_bytes = needs_wide_index(call_) ? 8 : 4,
                      .length = n(0),
                      .places = RadixSort::Places::computed};
    while (sort.digits < 8 && (n(3) - 1) >> (8 * sort.digits) > 0) ++sort.digits;
    made_.text += fmt::format("#define HALF {}\n", (sort.digits - 1) % 2);
    if (has_base_ && !call_.replaces) made_.text += join_of_values(call_);
    open_radix_sort(sort, made_);
    add_begin_words();
    add(sorted);
    add(added);
    constexpr int64_t most_columns = warp_threads;
    const auto columns = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(n(1), 1, most_columns))));
    n(4) = std::countr_zero(static_cast<uint64_t>(columns));
    n(5) = ceil_div(n(1), columns);
    add_begin();
    add_radix_sort(sort, made_);
    const int64_t rows = n(3) == 0 ? 0 : ceil_div(n(0), block_threads / columns);
    made_.add_step(
        "SHARED Stored moved[4096]; SHARED Index groups[8]; SHARED u32 found[2]; add_up(a, moved, "
        "groups, found)",
        rows * n(5) * block_threads);
  }

  const LibraryCall& call_;
  RoutineText& made_;
  const bool has_base_;
  int key_bytes_ = 8, index_rank_ = 0, column_rank_ = 0;
};

}  // namespace

void write_scatter(const LibraryCall& call, RoutineText& made) {
  ScatterWriter(call, made).write();
}

}  // namespace nitinol::cuda
