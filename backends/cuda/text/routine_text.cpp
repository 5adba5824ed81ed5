// Right before fast, but for contractions: a thread an element, sums in the order of the
// definition.
#include "backends/cuda/text/routine_text.h"

#include "backends/cuda/text/contraction_text.h"
#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/instruction.h"
#include "backends/cuda/text/order_text.h"
#include "backends/cuda/text/schedule.h"
#include "core/error.h"
#include "core/reduction.h"

#include <fmt/format.h>

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
  i64 n[{}];
}};
)";

constexpr std::string_view helpers = R"(
DEVICE i64 offset_of(i64 linear, const i64* sizes, const i64* strides, int rank) {
  i64 offset = 0;
  for (int axis = rank - 1; axis >= 0; --axis) {
    offset += linear % sizes[axis] * strides[axis];
    linear /= sizes[axis];
  }
  return offset;
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
ENTRY(0)
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
ENTRY(0)
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

// Numbers: lines, their length; strides along the axis; rank of the others, with sizes and strides.
constexpr std::string_view scan = R"(
DEVICE i64 length_at(const Arguments& a, int level) {
  i64 length = a.n[1];
  for (int i = 0; i < level; ++i) length /= 16;
  return length;
}
DEVICE Value* totals_of(const Arguments& a, int level) {
  i64 before = 0;
  for (int i = 1; i < level; ++i) before += a.n[0] * length_at(a, i);
  return (Value*)a.workspace + before;
}
DEVICE Value element_of(const Arguments& a, int level, i64 line, i64 i) {
  return level == 0 ? value_of(((const Stored*)a.p0)[offset_of(line, a.n + 8, a.n + 16, (int)a.n[4]) + i * a.n[2]])
                    : totals_of(a, level)[line * length_at(a, level) + i];
}
// The totals of the runs of the level below.
DEVICE void sum_runs(const Arguments& a, int level, i64 at) {
  const i64 runs = length_at(a, level);
  if (at >= a.n[0] * runs) return;
  const i64 line = at / runs, run = at % runs;
  Value sum = element_of(a, level - 1, line, run * 16);
  for (i64 i = 1; i < 16; ++i) sum = join_of(sum, element_of(a, level - 1, line, run * 16 + i));
  totals_of(a, level)[at] = sum;
}
// A run of a level, after what the level above says of the runs before.
DEVICE void scan_run(const Arguments& a, int level, bool is_top, i64 at) {
  const i64 length = length_at(a, level), runs = (length + 15) / 16;
  if (at >= a.n[0] * runs) return;
  const i64 line = at / runs, run = at % runs;
  const bool is_first = is_top || run == 0;
  const Value before = is_first ? Value(0) : totals_of(a, level + 1)[line * length_at(a, level + 1) + run - 1];
  Value sum = 0;
  for (i64 i = run * 16; i < least<i64>(run * 16 + 16, length); ++i) {
    const Value value = element_of(a, level, line, i);
    sum = i == run * 16 ? value : join_of(sum, value);
    const Value result = is_first ? sum : join_of(before, sum);
    if (level == 0)
      ((Stored*)a.p1)[offset_of(line, a.n + 8, a.n + 24, (int)a.n[4]) + i * a.n[3]] = stored_of(result);
    else
      totals_of(a, level)[line * length + i] = result;
  }
}
)";

// Numbers: indices, columns of a row, rows, keys; ranks of indices, columns and result; whether
// each value has an index of its own; then sizes and strides. A stable radix sort (order_text.h)
// brings together what comes to the same place, in its order. START is what a place has before,
// BEGIN what is joined with the first value by JOIN.
constexpr std::string_view scatter = R"(
ENTRY(0)
  if (at >= a.n[72]) return;
  ((Stored*)OUT)[offset_of(at, a.n + 56, a.n + 64, (int)a.n[6])] = START;
}
ENTRY(1)
  if (at >= a.n[0]) return;
  const int rank = (int)a.n[4];
  const i64 given = ((const i64*)INDICES)[offset_of(at, a.n + 8, a.n + 16, rank)];
  const i64 row = given < 0 ? given + a.n[2] : given;
  const bool is_row = row >= 0 && row < a.n[2];
  if (!is_row && a.status != 0) report(a.status, 1u);
  u64 key = (u64)a.n[3];
  if (is_row) key = (u64)row;
  if (is_row && a.n[7] >= 0) {
    i64 linear = 0, rest = at, step = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      linear += (axis == a.n[7] ? row : rest % a.n[8 + axis]) * step;
      rest /= a.n[8 + axis];
      step *= a.n[56 + axis];
    }
    key = (u64)linear;
  }
  keys_of(a, 0)[at] = key;
  places_of(a, 0)[at] = (u64)at;
}
DEVICE void add_up(const Arguments& a, int half, i64 at) {
  if (at >= a.n[0] * a.n[1]) return;
  const i64 place = at / a.n[1], column = at % a.n[1];
  const u64* const keys = keys_of(a, half);
  const u64 key = keys[place];
  if (key >= (u64)a.n[3] || (place > 0 && keys[place - 1] == key)) return;
  const i64 along = offset_of(column, a.n + 32, a.n + 40, (int)a.n[5]);
  const i64 to = a.n[7] >= 0 ? offset_of((i64)key, a.n + 56, a.n + 64, (int)a.n[6])
                             : (i64)key * a.n[64] + offset_of(column, a.n + 32, a.n + 48, (int)a.n[5]);
  Value all = BEGIN;
  for (i64 i = place; i < a.n[0] && keys[i] == key; ++i) {
    const Value value = value_of(((const Stored*)VALUES)[offset_of((i64)places_of(a, half)[i], a.n + 8, a.n + 24, (int)a.n[4]) + along]);
    all = JOIN;
  }
  ((Stored*)OUT)[to] = stored_of(all);
}
)";

/// Writes ENTRY(i) out: function number i begins, which knows its thread by `at`.
void open_entries(std::string& text) {
  constexpr std::string_view mark = "ENTRY(";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    const std::size_t end = text.find(')', at);
    const std::string number = text.substr(at + mark.size(), end - at - mark.size());
    text.replace(at, end + 1 - at,
                 fmt::format("KERNEL(entry{}) {{\n"
                             "  if (a.gate != 0 && fresh(a.gate) != 0) return;\n"
                             "  const i64 at = (i64)block_index() * {} + (i64)thread_index();",
                             number, block_threads));
  }
}

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
        write_scan();
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
    open_entries(made_.text);
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
    made_.threads = {element_count(call_.operands[2].shape)};
  }

  /// What a scan makes of a and b (core/joins.h).
  [[nodiscard]] std::string join_of_values() const {
    const Combine combine = call_.combine;
    const bool is_float = is_floating(call_.operands[0].dtype);
    if (combine == Combine::add) return "sum_of(a, b)";
    if (combine == Combine::multiply) return is_float ? "a * b" : "(Value)((u64)a * (u64)b)";
    const char order = combine == Combine::maximum ? '>' : '<';
    if (!is_float) return fmt::format("a {} b ? a : b", order);
    return fmt::format("a != a ? a : a == b ? {}_of(bits_of(a) {} bits_of(b)) : a {} b ? a : b",
                       call_.operands[0].dtype == f64 ? "f64" : "f32",
                       combine == Combine::maximum ? '&' : '|', order);
  }

  void write_scan() {
    made_.text +=
        fmt::format("DEVICE Value join_of(Value a, Value b) {{ return {}; }}\n", join_of_values());
    made_.text += scan;
    const OperandLayout &x = call_.operands[0], &out = call_.operands[1];
    const int axis = call_.axis, rank = x.shape.size();
    n(1) = x.shape[axis];
    n(2) = x.strides[axis];
    n(3) = out.strides[axis];
    int64_t lines = 1;
    int others = 0;
    for (int i = 0; i < rank; ++i) {
      if (i == axis) continue;
      n(8 + others) = x.shape[i];
      n(16 + others) = x.strides[i];
      n(24 + others++) = out.strides[i];
      lines *= x.shape[i];
    }
    n(0) = lines;
    n(4) = others;
    constexpr int64_t run = reduction_order::scan_run;
    static_assert(run == 16);
    std::vector<int64_t> lengths = {n(1)};
    while (lengths.back() > run) lengths.push_back(lengths.back() / run);
    const int levels = static_cast<int>(lengths.size());
    int entry = 0;
    const auto add = [&](const std::string& what, int64_t threads) {
      made_.text += fmt::format("ENTRY({})\n  {};\n}}\n", entry++, what);
      made_.threads.push_back(threads);
    };
    for (int level = 1; level < levels; ++level) {
      const int64_t length = lengths[static_cast<std::size_t>(level)];
      add(fmt::format("sum_runs(a, {}, at)", level), lines * length);
      made_.workspace_bytes += static_cast<std::size_t>(lines * length) * sizeof(int64_t);
    }
    for (int level = levels - 1; level >= 0; --level) {
      add(fmt::format("scan_run(a, {}, {}, at)", level, level == levels - 1),
          lines * ceil_div(lengths[static_cast<std::size_t>(level)], run));
    }
  }

  /// The text, which names its operands and how it joins.
  void add_scatter_text(bool has_base) {
    std::string text(scatter);
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
    if (has_base && !call_.replaces) {
      made_.text += fmt::format("DEVICE Value join_of(Value a, Value b) {{ return {}; }}\n",
                                join_of_values());
    }
    made_.text += text;
  }

  void write_scatter() {
    made_.text += radix_words();
    const bool is_along = call_.kind == LibraryCall::Kind::scatter_add_along;
    const bool has_base = call_.kind == LibraryCall::Kind::scatter;
    add_scatter_text(has_base);
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
    int passes = 1;
    while (passes < 8 && n(3) >> (8 * passes) > 0) ++passes;
    made_.threads = {n(72), n(0)};
    for (int pass = 0; pass < passes; ++pass) add_radix_pass(made_, pass % 2, 8 * pass);
    made_.text +=
        fmt::format("ENTRY({})\n  add_up(a, {}, at);\n}}\n", made_.threads.size(), passes % 2);
    made_.threads.push_back(n(0) * n(1));
    made_.workspace_bytes = radix_bytes(n(0));
  }

  const LibraryCall& call_;
  RoutineText made_;
};

}  // namespace

RoutineText routine_text(const LibraryCall& call) {
  return RoutineWriter(call).write();
}

}  // namespace nitinol::cuda
