// Values that come to one place are joined in their order: a stable sort by places brings them
// together. Where the last one replaces the others, it is enough to know which that is.
#include "backends/cuda/text/scatter_text.h"

#include "backends/cuda/text/radix_text.h"
#include "backends/cuda/text/routine_text.h"
#include "backends/cuda/text/scan_text.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

namespace nitinol::cuda {
namespace {

// Numbers: indices, columns of a row, rows, places; ranks of indices, columns and result; the axis
// along which each value has an index of its own, or -1; then sizes and strides, of x from 80 on;
// places of the result, and whether it and x lie as linear numbers say. START is what a place has
// before.
constexpr std::string_view begin = R"(
DEVICE void begin_place(const Arguments& a, i64 at) {
  if (at >= a.n[72]) return;
  const i64 to = a.n[73] != 0 ? at : offset_of(at, a.n + 56, a.n + 64, (int)a.n[6]);
  ((Stored*)OUT)[to] = START;
}
// The place of an index; the number of all places if there is none.
DEVICE Bits place_of(const Arguments& a, i64 at) {
  const int rank = (int)a.n[4];
  const i64 given = ((const i64*)INDICES)[offset_of(at, a.n + 8, a.n + 16, rank)];
  const i64 row = given < 0 ? given + a.n[2] : given;
  if (row < 0 || row >= a.n[2]) {
    if (a.status != 0) report(a.status, 1u);
    return (Bits)a.n[3];
  }
  if (a.n[7] < 0) return (Bits)row;
  i64 linear = 0, rest = at, step = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    linear += (axis == a.n[7] ? row : rest % a.n[8 + axis]) * step;
    rest /= a.n[8 + axis];
    step *= a.n[56 + axis];
  }
  return (Bits)linear;
}
DEVICE i64 value_at(const Arguments& a, i64 at) { return offset_of(at, a.n + 8, a.n + 24, (int)a.n[4]); }
DEVICE i64 along_of(const Arguments& a, i64 column) { return offset_of(column, a.n + 32, a.n + 40, (int)a.n[5]); }
DEVICE i64 result_at(const Arguments& a, i64 place, i64 column) {
  return a.n[7] >= 0 ? offset_of(place, a.n + 56, a.n + 64, (int)a.n[6])
                     : place * a.n[64] + offset_of(column, a.n + 32, a.n + 48, (int)a.n[5]);
}
)";

// What goes with a key is where its values lie.
constexpr std::string_view sorted = R"(
DEVICE void write_keys(const Arguments& a, i64 at) {
  if (at >= a.n[0]) return;
  keys_of(a, 1)[at] = place_of(a, at);
  places_of(a, 1)[at] = (Place)value_at(a, at);
}
DEVICE Keys given_of(const Arguments& a, i64 line) {
  Keys keys;
  keys.from = keys_of(a, 1);
  keys.step = 1;
  return keys;
}
DEVICE i64 result_of(const Arguments& a, i64 line) { return 0; }
DEVICE u32 digit_of(const Arguments& a, Bits key, i64 number) { return (u32)(key >> (8 * number)) & 255u; }
DEVICE void write_sorted(const Arguments& a, i64 result, i64 i, Bits key, Place place) {
  keys_of(a, HALF)[i] = key;
  places_of(a, HALF)[i] = place;
}
// The thread of the first value that comes to a place goes through the others, several at a time:
// where they lie is known before their sum is. BEGIN is what is joined with the first one by JOIN.
DEVICE void add_up(const Arguments& a, i64 at) {
  if (at >= a.n[0] * a.n[1]) return;
  const i64 first = at / a.n[1], column = at % a.n[1];
  const Bits* const keys = keys_of(a, HALF);
  const Place* const places = places_of(a, HALF);
  const Bits key = keys[first];
  if (key >= (Bits)a.n[3] || (first > 0 && keys[first - 1] == key)) return;
  const i64 to = result_at(a, (i64)key, column);
  const Stored* const values = (const Stored*)VALUES + along_of(a, column);
  Value all = BEGIN, value = value_of(values[(Offset)places[first]]);
  all = JOIN;
  for (i64 i = first + 1; i < a.n[0] && keys[i] == key; i += 16) {
    Stored next[16];
    u32 is_here = 0;
    UNROLL
    for (int j = 0; j < 16; ++j) {
      const i64 one = least<i64>(i + j, a.n[0] - 1);
      if (i + j < a.n[0] && keys[one] == key) is_here |= 1u << j;
      next[j] = values[(Offset)places[one]];
    }
    UNROLL
    for (int j = 0; j < 16; ++j) {
      if ((is_here >> j & 1u) == 0) continue;
      value = value_of(next[j]);
      all = JOIN;
    }
  }
  ((Stored*)OUT)[to] = stored_of(all);
}
)";

// In the workspace: for each place the number, from 1 on, of the last index that names it; then the
// places of indices.
constexpr std::string_view replaced = R"(
DEVICE Bits* places_of(const Arguments& a) { return (Bits*)(a.workspace + a.n[74]); }
DEVICE void forget(const Arguments& a, i64 at) {
  if (at < a.n[3]) ((u32*)a.workspace)[at] = 0;
}
DEVICE void find_last(const Arguments& a, i64 at) {
  if (at >= a.n[0]) return;
  const Bits place = place_of(a, at);
  places_of(a)[at] = place;
  if (place < (Bits)a.n[3]) raise_to((u32*)a.workspace + place, (u32)at + 1);
}
DEVICE void write_last(const Arguments& a, i64 at) {
  if (at >= a.n[0] * a.n[1]) return;
  const i64 index = at / a.n[1], column = at % a.n[1];
  const Bits place = places_of(a)[index];
  if (place >= (Bits)a.n[3] || ((const u32*)a.workspace)[place] != (u32)index + 1) return;
  ((Stored*)OUT)[result_at(a, (i64)place, column)] = ((const Stored*)VALUES)[value_at(a, index) + along_of(a, column)];
}
)";

bool is_dense(const OperandLayout& operand) {
  return operand.strides == strides_of(operand.shape);
}

/// Elements from the first to the last, by memory.
int64_t extent_of(const OperandLayout& operand) {
  int64_t extent = 1;
  for (int axis = 0; axis < operand.shape.size(); ++axis)
    extent += (operand.shape[axis] - 1) * std::abs(operand.strides[axis]);
  return extent;
}

class ScatterWriter {
 public:
  ScatterWriter(const LibraryCall& call, RoutineText& made)
      : call_(call), made_(made), has_base_(call.kind == LibraryCall::Kind::scatter) {}

  void write() {
    put_numbers();
    key_bytes_ = n(3) >> 32 == 0 ? 4 : 8;
    if (has_base_ && call_.replaces && n(0) < std::numeric_limits<uint32_t>::max())
      write_replaced();
    else
      write_sorted();
  }

 private:
  [[nodiscard]] int64_t& n(int at) { return made_.arguments.numbers[static_cast<std::size_t>(at)]; }
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
    n(4) = depth;
    n(5) = rank - depth;
    n(6) = out.shape.size();
    n(7) = is_along ? call_.axis : -1;
    put(8, indices.shape, 0, depth);
    put(16, indices.strides, 0, depth);
    put(24, values.strides, 0, depth);
    put(32, values.shape, depth, rank);
    put(40, values.strides, depth, rank);
    if (!is_along) put(48, out.strides, 1, out.shape.size());
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
    name("INDICES", has_base_ ? "a.p2" : "a.p1");
    name("START", has_base_ ? "((const Stored*)a.p0)[a.n[73] != 0 ? at : offset_of(at, a.n + 56, "
                              "a.n + 80, (int)a.n[6])]"
                            : "stored_of(Value(0))");
    name("BEGIN", has_base_ ? "value_of(((const Stored*)OUT)[to])" : "Value(0)");
    name("OUT", has_base_ ? "a.p3" : "a.p2");
    name("JOIN", !has_base_ ? "sum_of(all, value)"
                 : call_.replaces
                     ? "value"
                     : "value_of(stored_of(join_of(all, value)))");  // 16 bits round each time
    made_.text += text;
  }

  void write_replaced() {
    made_.text += fmt::format("typedef u{} Bits;\n", 8 * key_bytes_);
    add(begin);
    add(replaced);
    const auto last = static_cast<std::size_t>(n(3)) * sizeof(uint32_t);
    n(74) = static_cast<int64_t>((last + 7) / 8 * 8);
    made_.workspace_bytes = static_cast<std::size_t>(n(74) + n(0) * key_bytes_);
    made_.add_step("begin_place(a, at)", n(72));
    made_.add_step("forget(a, at)", n(3));
    made_.add_step("find_last(a, at)", n(0));
    made_.add_step("write_last(a, at)", n(0) * n(1));
  }

  void write_sorted() {
    const bool is_wide = extent_of(operand(0)) > std::numeric_limits<int32_t>::max() ||
                         n(0) > std::numeric_limits<int32_t>::max();
    RadixSort sort = {.key_bytes = key_bytes_,
                      .place_bytes = is_wide ? 8 : 4,
                      .length = n(0),
                      .places = RadixSort::Places::given};
    while (sort.digits < 8 && n(3) >> (8 * sort.digits) > 0) ++sort.digits;
    made_.text += fmt::format("typedef {} Offset;\n#define HALF {}\n", is_wide ? "i64" : "i32",
                              (sort.digits - 1) % 2);
    if (has_base_ && !call_.replaces) made_.text += join_of_values(call_);
    open_radix_sort(sort, made_);
    add(begin);
    add(sorted);
    made_.add_step("begin_place(a, at)", n(72));
    made_.add_step("write_keys(a, at)", n(0));
    add_radix_sort(sort, made_);
    made_.add_step("add_up(a, at)", n(0) * n(1));
  }

  const LibraryCall& call_;
  RoutineText& made_;
  const bool has_base_;
  int key_bytes_ = 8;
};

}  // namespace

void write_scatter(const LibraryCall& call, RoutineText& made) {
  ScatterWriter(call, made).write();
}

}  // namespace nitinol::cuda
