// Right before fast, but for contractions: a thread an element, sums in the order of the
// definition.
#include "backends/cuda/text/routine_text.h"

#include "backends/cuda/text/contraction_text.h"
#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/instruction.h"
#include "backends/cuda/text/order_text.h"
#include "backends/cuda/text/permutation_text.h"
#include "backends/cuda/text/scan_text.h"
#include "backends/cuda/text/scatter_text.h"
#include "backends/cuda/text/schedule.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <span>
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
// Takes the last digit of `at` in a system of digits below `size`.
DEVICE Index digit(Index& at, i64 size) {
  const Index whole = (Index)((UnsignedIndex)at / (UnsignedIndex)size), last = at - whole * (Index)size;
  at = whole;
  return last;
}
DEVICE Index offset_of(Index linear, const i64* sizes, const i64* strides, int rank) {
  Index offset = 0;
  ROLLED
  for (int axis = rank - 1; axis > 0; --axis) offset += digit(linear, sizes[axis]) * (Index)strides[axis];
  return rank > 0 ? offset + linear * (Index)strides[0] : 0;
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
struct Place { Index i, j, k, l; };
DEVICE Place place_of(Index at, const i64* n) {
  Place to;
  to.l = digit(at, n[3]);
  to.k = digit(at, n[2]);
  to.j = digit(at, n[1]);
  to.i = at;
  return to;
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
  const Place to = place_of((Index)at, Y);
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
  const Place to = place_of((Index)at, V);
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

class RoutineWriter {
 public:
  explicit RoutineWriter(const LibraryCall& call) : call_(call) {
    const DType dtype = call.operands[0].dtype;
    const std::string word(word_of(compute_type(dtype)));
    made_.text = fmt::format(fmt::runtime(arguments_text), RoutineArguments::most_numbers);
    const bool is_wide = needs_wide_index(call);
    made_.text += fmt::format("typedef {} Index;\ntypedef {} UnsignedIndex;\n",
                              is_wide ? "i64" : "i32", is_wide ? "u64" : "u32");
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
        write_scatter(call_, made_);
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
      case LibraryCall::Kind::permutation:
        write_permutation(call_, made_);
        break;
      case LibraryCall::Kind::window_max:
        write_windows(window_max);
        break;
      case LibraryCall::Kind::window_max_input:
        write_windows(window_max_input);
        break;
      case LibraryCall::Kind::pack:
      case LibraryCall::Kind::packed_matmul:
      case LibraryCall::Kind::pack_filter:
      case LibraryCall::Kind::packed_conv2d:
        throw Error(ErrorKind::unsupported, {.where = std::string(name_of(call_.kind)),
                                             .what = "a GPU has no layout of its own"});
      case LibraryCall::Kind::routine:
      case LibraryCall::Kind::collective:
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

  const LibraryCall& call_;
  RoutineText made_;
};

}  // namespace

void RoutineText::add_step(const std::string& body, int64_t threads, int64_t number) {
  const auto known = std::ranges::find(entries, body);
  steps.push_back({static_cast<int>(known - entries.begin()), threads, number});
  if (known != entries.end()) return;
  text += fmt::format(
      "KERNEL(entry{}, {}) {{\n"
      "  if (a.gate != 0 && *a.gate != 0) return;\n"
      "  const i64 at = (i64)block_index() * {} + (i64)thread_index();\n"
      "  {};\n}}\n",
      entries.size(), block_threads, block_threads, body);
  entries.push_back(body);
}

int put_axes(RoutineText& made, int at, std::span<const int64_t> sizes,
             std::span<const int64_t> first, std::span<const int64_t> second) {
  const auto number = [&](int place) -> int64_t& {
    return made.arguments.numbers[static_cast<std::size_t>(at + place)];
  };
  int rank = 0;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] == 1) continue;
    const bool joins = rank > 0 && number(8 + rank - 1) == first[axis] * sizes[axis] &&
                       number(16 + rank - 1) == second[axis] * sizes[axis];
    if (!joins) number(rank++) = 1;
    number(rank - 1) *= sizes[axis];
    number(8 + rank - 1) = first[axis];
    number(16 + rank - 1) = second[axis];
  }
  return rank;
}

bool needs_wide_index(const LibraryCall& call) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max() / 2;
  return std::ranges::any_of(call.operands, [](const OperandLayout& operand) {
    int64_t extent = 1;
    for (int axis = 0; axis < operand.shape.size(); ++axis)
      extent += (operand.shape[axis] - 1) * std::abs(operand.strides[axis]);
    return std::max(extent, element_count(operand.shape)) > most;
  });
}

RoutineText routine_text(const LibraryCall& call) {
  return RoutineWriter(call).write();
}

}  // namespace nitinol::cuda
