// Right before fast, but for contractions: a thread an element, sums in the order of the
// definition.
#include "backends/cuda/text/routine_text.h"

#include "backends/cuda/text/contraction_text.h"
#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/instruction.h"
#include "backends/cuda/text/order_text.h"
#include "backends/cuda/text/radix_text.h"
#include "backends/cuda/text/scan_text.h"
#include "backends/cuda/text/schedule.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace nitinol::cuda {
namespace {

static_assert(block_threads == 256, "the texts below say so");

constexpr const char* arguments_text = R"(
struct Arguments {{
  const u32* gate;
  u32* status;
  u8* workspace;
  void* p0;
  void* p1;
  void* p2;
  void* p3;
  i64 step;
  i64 n[{}];
}};
)";

constexpr std::string_view helpers = R"(
DEVICE i64 offset_of(i64 linear, const i64* sizes, const i64* strides, int rank) {
  i64 offset = 0;
  for (int axis = rank - 1; axis > 0; --axis) {
    offset += linear % sizes[axis] * strides[axis];
    linear /= sizes[axis];
  }
  return rank > 0 ? offset + linear * strides[0] : 0;
}
DEVICE float sum_of(float a, float b) { return a + b; }
DEVICE double sum_of(double a, double b) { return a + b; }
template <class T> DEVICE T sum_of(T a, T b) { return (T)((u64)a + (u64)b); }
)";

// Numbers: sizes and strides of x, of values and y or y and values; kernel, stride, padding.
constexpr std::string_view windows = R"(
DEVICE i64 place(const i64* n, i64 i, i64 j, i64 k, i64 l) {
  return i * n[4] + j * n[5] + k * n[6] + l * n[7];
}
struct Index { i64 i, j, k, l; };
DEVICE Index index_of(i64 at, const i64* n) {
  Index index;
  index.l = at % n[3]; at /= n[3];
  index.k = at % n[2]; at /= n[2];
  index.j = at % n[1];
  index.i = at / n[1];
  return index;
}
)";

// Of equal elements the first, of NaN the last.
constexpr std::string_view largest = R"(
DEVICE i64 largest_in(const Arguments& a, i64 n, i64 i, i64 j, i64 c) {
  const i64* const X = a.n;
  const i64 top = i * a.n[26] - a.n[28], left = j * a.n[27] - a.n[29];
  i64 found = -1;
  Value most = 0;
  for (i64 h = top < 0 ? 0 : top; h < least<i64>(top + a.n[24], X[1]); ++h) {
    for (i64 w = left < 0 ? 0 : left; w < least<i64>(left + a.n[25], X[2]); ++w) {
      const Value value = value_of(((const Stored*)a.p0)[place(X, n, h, w, c)]);
      if (found >= 0 && !(value > most) && value == value) continue;
      found = h * X[2] + w;
      most = value;
    }
  }
  return found;
}
)";

constexpr std::string_view window_max = R"(
DEVICE void write_window(const Arguments& a, i64 at) {
  const i64* const X = a.n; const i64* const V = a.n + 8; const i64* const Y = a.n + 16;
  if (at >= Y[0] * Y[1] * Y[2] * Y[3]) return;
  const Index to = index_of(at, Y);
  const i64 found = largest_in(a, to.i, to.j, to.k, to.l);
  ((Stored*)a.p2)[place(Y, to.i, to.j, to.k, to.l)] =
      ((const Stored*)a.p1)[place(V, to.i, found / X[2], found % X[2], to.l)];
}
)";

// The windows that see an element, in their order.
constexpr std::string_view window_max_input = R"(
DEVICE i64 first_window(i64 at, i64 kernel, i64 stride) {
  return at < kernel ? 0 : (at - kernel) / stride + 1;
}
DEVICE void write_window(const Arguments& a, i64 at) {
  const i64* const X = a.n; const i64* const Y = a.n + 8; const i64* const V = a.n + 16;
  if (at >= V[0] * V[1] * V[2] * V[3]) return;
  const Index to = index_of(at, V);
  const i64 own = to.j * X[2] + to.k;
  Value sum = 0;
  for (i64 i = first_window(to.j + a.n[28], a.n[24], a.n[26]); i < Y[1] && i * a.n[26] <= to.j + a.n[28]; ++i) {
    for (i64 j = first_window(to.k + a.n[29], a.n[25], a.n[27]); j < Y[2] && j * a.n[27] <= to.k + a.n[29]; ++j) {
      if (largest_in(a, to.i, i, j, to.l) == own)
        sum = sum_of(sum, value_of(((const Stored*)a.p1)[place(Y, to.i, i, j, to.l)]));
    }
  }
  ((Stored*)a.p2)[place(V, to.i, to.j, to.k, to.l)] = stored_of(sum);
}
)";

// Numbers: indices, columns of a row, rows, places; ranks of indices, columns and result; whether
// each value has an index of its own; then sizes and strides. A stable sort by places
// (radix_text.h) brings together what comes to the same one, in its order. START is what a place
// has before, BEGIN what is joined with the first value by JOIN.
constexpr std::string_view scatter = R"(
DEVICE void begin_place(const Arguments& a, i64 at) {
  if (at >= a.n[72]) return;
  ((Stored*)OUT)[offset_of(at, a.n + 56, a.n + 64, (int)a.n[6])] = START;
}
struct Line {};
DEVICE Line line_of(const Arguments& a, i64 line) { return Line(); }
DEVICE Bits given_key(const Arguments& a, const Line& line, i64 at) {
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
DEVICE u32 digit_of(const Arguments& a, Bits key, i64 number) { return (u32)(key >> (8 * number)) & 255u; }
DEVICE void write_key(const Arguments& a, const Line& line, i64 i, Bits key) {}
DEVICE void write_place(const Arguments& a, const Line& line, i64 i, Place place) {}
)";

// The thread of the first value that comes to a place goes through the others, several at a time:
// where each lies is known before the sum is.
constexpr std::string_view add_up = R"(
DEVICE void add_up(const Arguments& a, i64 at) {
  if (at >= a.n[0] * a.n[1]) return;
  const i64 first = at / a.n[1], column = at % a.n[1];
  const Bits* const keys = keys_of(a, a.step);
  const Place* const places = places_of(a, a.step);
  const Bits key = keys[first];
  if (key >= (Bits)a.n[3] || (first > 0 && keys[first - 1] == key)) return;
  const i64 along = offset_of(column, a.n + 32, a.n + 40, (int)a.n[5]);
  const i64 to = a.n[7] >= 0 ? offset_of((i64)key, a.n + 56, a.n + 64, (int)a.n[6])
                             : (i64)key * a.n[64] + offset_of(column, a.n + 32, a.n + 48, (int)a.n[5]);
  const Stored* const values = (const Stored*)VALUES + along;
  Value all = BEGIN, value = value_of(values[offset_of((i64)places[first], a.n + 8, a.n + 24, (int)a.n[4])]);
  all = JOIN;
  for (i64 i = first + 1; i < a.n[0] && keys[i] == key; i += 8) {
    Stored next[8];
    u32 is_here = 0;
    UNROLL
    for (int j = 0; j < 8; ++j) {
      const i64 one = least<i64>(i + j, a.n[0] - 1);
      if (i + j < a.n[0] && keys[one] == key) is_here |= 1u << j;
      next[j] = values[offset_of((i64)places[one], a.n + 8, a.n + 24, (int)a.n[4])];
    }
    UNROLL
    for (int j = 0; j < 8; ++j) {
      if ((is_here >> j & 1u) == 0) continue;
      value = value_of(next[j]);
      all = JOIN;
    }
  }
  ((Stored*)OUT)[to] = stored_of(all);
}
)";

class RoutineWriter {
 public:
  explicit RoutineWriter(const LibraryCall& call) : call_(call) {
    const DType dtype = call.operands[0].dtype;
    const std::string word(word_of(compute_type(dtype)));
    made_.text = fmt::format(fmt::runtime(arguments_text), RoutineArguments::most_numbers);
    made_.text += helpers;
    made_.text += fmt::format("typedef {} Stored;\ntypedef {} Value;\n", stored_word(dtype), word);
    made_.text +=
        fmt::format("DEVICE Value value_of(Stored x) {{ return {}; }}\n", decoded(dtype, "x"));
    made_.text += fmt::format("DEVICE Stored stored_of(Value x) {{ return (Stored){}; }}\n",
                              encoded(dtype, "x"));
  }

  RoutineText write() {
    switch (call_.kind) {
      case LibraryCall::Kind::matmul:
      case LibraryCall::Kind::conv2d:
      case LibraryCall::Kind::conv2d_input:
      case LibraryCall::Kind::conv2d_weight:
        write_contraction(call_, made_);
        break;
      case LibraryCall::Kind::scatter_add:
      case LibraryCall::Kind::scatter:
      case LibraryCall::Kind::scatter_add_along:
        write_scatter();
        break;
      case LibraryCall::Kind::scan:
        write_scan(call_, made_);
        break;
      case LibraryCall::Kind::sort:
      case LibraryCall::Kind::argsort:
      case LibraryCall::Kind::search:
      case LibraryCall::Kind::compress:
      case LibraryCall::Kind::positions:
        write_order(call_, made_);
        break;
      case LibraryCall::Kind::window_max:
        write_windows(window_max);
        break;
      case LibraryCall::Kind::window_max_input:
        write_windows(window_max_input);
        break;
      case LibraryCall::Kind::pack:
      case LibraryCall::Kind::packed_matmul:
        throw Error(ErrorKind::unsupported, {.where = std::string(name_of(call_.kind)),
                                             .what = "a GPU has no layout of its own"});
      case LibraryCall::Kind::routine:
        throw Error(ErrorKind::unsupported,
                    {.where = std::string(name_of(call_.kind)),
                     .what = "it works on the host's memory",
                     .expected = "tensors on a device whose memory is the host's",
                     .got = "tensors on a GPU",
                     .fix = "Move them by to() before."});
    }
    return std::move(made_);
  }

 private:
  [[nodiscard]] int64_t& n(int at) { return made_.arguments.numbers[static_cast<std::size_t>(at)]; }
  template <class List>
  void put(int at, const List& list, int first, int last) {
    for (int i = first; i < last; ++i) n(at + i - first) = list[i];
  }

  /// The last operand is written.
  void write_windows(std::string_view entry) {
    made_.text += windows;
    made_.text += largest;
    made_.text += entry;
    int at = 0;
    for (const OperandLayout& operand : call_.operands) {
      put(at, operand.shape, 0, 4);
      put(at + 4, operand.strides, 0, 4);
      at += 8;
    }
    const Windows& w = call_.windows;
    for (int axis = 0; axis < 2; ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      n(24 + axis) = w.kernel[i];
      n(26 + axis) = w.stride[i];
      n(28 + axis) = w.padding[i];
    }
    made_.add_step("write_window(a, at)", element_count(call_.operands[2].shape));
  }

  /// The text, which names its operands and how it joins.
  void add_scatter_text(std::string_view with, bool has_base) {
    std::string text(with);
    const auto name = [&text](std::string_view word, std::string_view by) {
      for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at))
        text.replace(at, word.size(), by);
    };
    name("VALUES", has_base ? "a.p1" : "a.p0");
    name("INDICES", has_base ? "a.p2" : "a.p1");
    name("START", has_base ? "((const Stored*)a.p0)[offset_of(at, a.n + 56, a.n + 80, (int)a.n[6])]"
                           : "stored_of(Value(0))");
    name("BEGIN", has_base ? "value_of(((const Stored*)OUT)[to])" : "Value(0)");
    name("OUT", has_base ? "a.p3" : "a.p2");
    name("JOIN", !has_base ? "sum_of(all, value)"
                 : call_.replaces
                     ? "value"
                     : "value_of(stored_of(join_of(all, value)))");  // 16 bits round each time
    made_.text += text;
  }

  void write_scatter() {
    const bool is_along = call_.kind == LibraryCall::Kind::scatter_add_along;
    const bool has_base = call_.kind == LibraryCall::Kind::scatter;
    const std::size_t first = has_base ? 1 : 0;
    const OperandLayout &values = call_.operands[first], &indices = call_.operands[first + 1],
                        &out = call_.operands[first + 2];
    if (has_base) put(80, call_.operands[0].strides, 0, out.shape.size());
    const int depth = indices.shape.size(), rank = values.shape.size();
    n(0) = element_count(indices.shape);
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
    n(1) = 1;
    for (int axis = depth; axis < rank; ++axis) n(1) *= values.shape[axis];
    RadixSort sort = {.key_bytes = n(3) >> 32 == 0 ? 4 : 8, .length = n(0), .has_places = true};
    while (sort.digits < 8 && n(3) >> (8 * sort.digits) > 0) ++sort.digits;
    if (has_base && !call_.replaces) {
      made_.text += fmt::format("DEVICE Value join_of(Value a, Value b) {{ return {}; }}\n",
                                join_of_values(call_));
    }
    open_radix_sort(sort, made_);
    add_scatter_text(scatter, has_base);
    made_.add_step("begin_place(a, at)", n(72));
    add_radix_sort(sort, made_);
    add_scatter_text(add_up, has_base);
    made_.add_step("add_up(a, at)", n(0) * n(1), (sort.digits - 1) % 2);
  }

  const LibraryCall& call_;
  RoutineText made_;
};

}  // namespace

void RoutineText::add_step(const std::string& body, int64_t threads, int64_t number) {
  const auto known = std::ranges::find(entries, body);
  steps.push_back({static_cast<int>(known - entries.begin()), threads, number});
  if (known != entries.end()) return;
  text += fmt::format(
      "KERNEL(entry{}) {{\n"
      "  if (a.gate != 0 && fresh(a.gate) != 0) return;\n"
      "  const i64 at = (i64)block_index() * {} + (i64)thread_index();\n"
      "  {};\n}}\n",
      entries.size(), block_threads, body);
  entries.push_back(body);
}

RoutineText routine_text(const LibraryCall& call) {
  return RoutineWriter(call).write();
}

}  // namespace nitinol::cuda
