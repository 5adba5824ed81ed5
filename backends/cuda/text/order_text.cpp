// A tile of 256 keys is counted and moved by a block of threads, each of which does the digits of
// one value. What sort() sorts are elements as unsigned integers that compare as they do, and after
// those the lines that they are of.
#include "backends/cuda/text/order_text.h"

#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/routine_text.h"
#include "core/error.h"

#include <fmt/format.h>

namespace nitinol::cuda {
namespace {

static_assert(block_threads == 256, "the texts below say so");

constexpr std::string_view radix = R"(
DEVICE u64* keys_of(const Arguments& a, int half) { return (u64*)a.workspace + half * 2 * a.n[0]; }
DEVICE u64* places_of(const Arguments& a, int half) { return keys_of(a, half) + a.n[0]; }
DEVICE u32* counts_of(const Arguments& a) { return (u32*)(keys_of(a, 2)); }
// A block of threads takes as many keys, and each of its threads counts those of one digit.
DEVICE void count_digits(const Arguments& a, int half, int shift, u32* digits) {
  const i64 tiles = (a.n[0] + 255) / 256, tile = (i64)block_index(), own = tile * 256 + (i64)thread_index();
  digits[thread_index()] = own < a.n[0] ? (u32)(keys_of(a, half)[own] >> shift) & 255u : 256u;
  barrier();
  u32 count = 0;
  for (int i = 0; i < 256; ++i) count += digits[i] == thread_index() ? 1u : 0u;
  counts_of(a)[(i64)thread_index() * tiles + tile] = count;
}
// How many come before: one block of threads.
DEVICE void sum_counts(const Arguments& a, u32* sums) {
  const i64 count = (a.n[0] + 255) / 256 * 256, each = count / 256;
  u32* const own = counts_of(a) + (i64)thread_index() * each;
  u32 sum = 0;
  for (i64 i = 0; i < each; ++i) sum += own[i];
  sums[thread_index()] = sum;
  barrier();
  u32 before = 0;
  for (u32 i = 0; i < thread_index(); ++i) before += sums[i];
  for (i64 i = 0; i < each; ++i) {
    const u32 here = own[i];
    own[i] = before;
    before += here;
  }
}
DEVICE void move_keys(const Arguments& a, int half, int shift, u32* digits) {
  const i64 tiles = (a.n[0] + 255) / 256, tile = (i64)block_index(), own = tile * 256 + (i64)thread_index();
  const u64 key = own < a.n[0] ? keys_of(a, half)[own] : 0;
  const u32 digit = own < a.n[0] ? (u32)(key >> shift) & 255u : 256u;
  digits[thread_index()] = digit;
  barrier();
  if (own >= a.n[0]) return;
  u32 rank = 0;
  for (u32 i = 0; i < thread_index(); ++i) rank += digits[i] == digit ? 1u : 0u;
  const i64 to = (i64)counts_of(a)[(i64)digit * tiles + tile] + (i64)rank;
  keys_of(a, 1 - half)[to] = key;
  places_of(a, 1 - half)[to] = places_of(a, half)[own];
}
)";

// Numbers: elements, length of a line, strides along it of x and out, rank of the other axes,
// results of a line; then sizes and strides of those axes.
constexpr std::string_view lines = R"(
DEVICE i64 element_at(const Arguments& a, i64 at) {
  return offset_of(at / a.n[1], a.n + 8, a.n + 16, (int)a.n[4]) + at % a.n[1] * a.n[2];
}
ENTRY(0)
  if (at >= a.n[0]) return;
  keys_of(a, 0)[at] = (u64)(Bits)(key_of(((const Bits*)a.p0)[element_at(a, at)]) ^ (Bits)a.n[6]);
  places_of(a, 0)[at] = (u64)at;
}
DEVICE void name_lines(const Arguments& a, int half, i64 at) {
  if (at < a.n[0]) keys_of(a, half)[at] = places_of(a, half)[at] / (u64)a.n[1];
}
DEVICE i64 result_at(const Arguments& a, i64 at) {
  return offset_of(at / a.n[1], a.n + 8, a.n + 24, (int)a.n[4]) + at % a.n[1] * a.n[3];
}
DEVICE void write_elements(const Arguments& a, int half, i64 at) {
  if (at >= a.n[0]) return;
  const i64 place = (i64)places_of(a, half)[at];
  ((Bits*)a.p1)[result_at(a, at)] = ((const Bits*)a.p0)[element_at(a, place)];
}
DEVICE void write_places(const Arguments& a, int half, i64 at) {
  if (at >= a.n[0] || at % a.n[1] >= a.n[5]) return;
  ((i64*)a.p1)[result_at(a, at)] = (i64)places_of(a, half)[at] % a.n[1];
}
)";

// Numbers: sorted elements, their stride; whether equal ones count; rank, elements; then sizes and
// strides of x and out.
constexpr std::string_view search = R"(
ENTRY(0)
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
// of the result, strides of x and of it. What is true comes first.
constexpr std::string_view choose = R"(
ENTRY(0)
  if (at >= a.n[0]) return;
  keys_of(a, 0)[at] = ((const u8*)MASK)[at * a.n[1]] != 0 ? 0 : 1;
  places_of(a, 0)[at] = (u64)at;
}
DEVICE i64 row_at(const Arguments& a, i64 at) {
  return at < a.n[0] && keys_of(a, 1)[at] == 0 ? (i64)places_of(a, 1)[at] : -1;
}
)";
constexpr std::string_view compress = R"(
DEVICE void write_rows(const Arguments& a, i64 at) {
  if (at >= a.n[2] * a.n[3]) return;
  const i64 row = row_at(a, at / a.n[3]);
  const i64 to = offset_of(at, a.n + 8, a.n + 24, (int)a.n[4]);
  const i64 from = offset_of(at % a.n[3], a.n + 9, a.n + 17, (int)a.n[4] - 1);
  ((Bits*)a.p2)[to] = row < 0 ? (Bits)0 : ((const Bits*)a.p0)[row * a.n[16] + from];
}
)";
constexpr std::string_view positions = R"(
DEVICE void write_rows(const Arguments& a, i64 at) {
  if (at < a.n[2]) ((i64*)a.p1)[at * a.n[24]] = row_at(a, at);
}
)";

class OrderWriter {
 public:
  OrderWriter(const LibraryCall& call, RoutineText& made) : call_(call), made_(made) {}

  void write() {
    write_keys();
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
  void add(const std::string& what, int64_t threads) {
    made_.text += fmt::format("ENTRY({})\n  {};\n}}\n", made_.threads.size(), what);
    made_.threads.push_back(threads);
  }

  /// -0 has the key of 0, and every NaN the greatest one.
  void write_keys() {
    const auto bytes = size_of(x().dtype);
    const auto bits = [&](uint64_t value) { return fmt::format("(Bits){:#x}ull", value); };
    const std::string top = bits(uint64_t{1} << (8 * bytes - 1));
    made_.text += fmt::format("typedef u{} Bits;\nDEVICE Bits key_of(Bits bits) {{\n", 8 * bytes);
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
    made_.text += radix;
    made_.text += lines;
    const OperandLayout& out = call_.operands[1];
    const int axis = call_.axis;
    n(0) = element_count(x().shape);
    n(1) = x().shape[axis];
    n(2) = x().strides[axis];
    n(3) = out.strides[axis];
    n(5) = out.shape[axis];
    n(6) = call_.is_descending ? -1 : 0;
    int others = 0;
    for (int i = 0; i < x().shape.size(); ++i) {
      if (i == axis) continue;
      n(8 + others) = x().shape[i];
      n(16 + others) = x().strides[i];
      n(24 + others++) = out.strides[i];
    }
    n(4) = others;
    made_.threads = {n(0)};
    int passes = 0;
    for (std::size_t i = 0; i < size_of(x().dtype); ++i, ++passes)
      add_radix_pass(made_, passes % 2, static_cast<int>(8 * i));
    const int64_t most = n(1) == 0 ? 0 : n(0) / n(1) - 1;  // the number of the last line
    if (most > 0) add(fmt::format("name_lines(a, {}, at)", passes % 2), n(0));
    for (int shift = 0; shift < 64 && most >> shift > 0; shift += 8, ++passes)
      add_radix_pass(made_, passes % 2, shift);
    const bool is_sort = call_.kind == LibraryCall::Kind::sort;
    add(fmt::format("write_{}(a, {}, at)", is_sort ? "elements" : "places", passes % 2), n(0));
    made_.workspace_bytes = radix_bytes(n(0));
  }

  void write_search() {
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
    made_.threads = {n(4)};
  }

  void write_choice() {
    made_.text += radix;
    std::string text(choose);
    const bool is_compress = call_.kind == LibraryCall::Kind::compress;
    text.replace(text.find("MASK"), 4, is_compress ? "a.p1" : "a.p0");
    made_.text += text;
    made_.text += is_compress ? compress : positions;
    const OperandLayout &mask = call_.operands[is_compress ? 1 : 0], &out = call_.operands.back();
    n(0) = mask.shape[0];
    n(1) = mask.strides[0];
    n(2) = out.shape[0];
    n(3) = out.shape[0] == 0 ? 0 : element_count(out.shape) / out.shape[0];
    n(4) = out.shape.size();
    put(8, out.shape);
    put(16, x().strides);
    put(24, out.strides);
    made_.threads = {n(0)};
    add_radix_pass(made_, 0, 0);
    add("write_rows(a, at)", n(2) * n(3));
    made_.workspace_bytes = radix_bytes(n(0));
  }

  const LibraryCall& call_;
  RoutineText& made_;
};

}  // namespace

std::string_view radix_words() {
  return radix;
}

void add_radix_pass(RoutineText& made, int half, int shift) {
  const int64_t count = made.arguments.numbers[0];
  const int64_t all = ceil_div(count, block_threads) * block_threads;
  const auto add = [&](const std::string& what, int64_t threads) {
    made.text +=
        fmt::format("ENTRY({})\n  SHARED u32 words[256];\n  {};\n}}\n", made.threads.size(), what);
    made.threads.push_back(threads);
  };
  add(fmt::format("count_digits(a, {}, {}, words)", half, shift), all);
  add("sum_counts(a, words)", count > 0 ? block_threads : 0);
  add(fmt::format("move_keys(a, {}, {}, words)", half, shift), all);
}

std::size_t radix_bytes(int64_t count) {
  const int64_t all = ceil_div(count, block_threads) * block_threads;
  return static_cast<std::size_t>(4 * count) * sizeof(uint64_t) +
         static_cast<std::size_t>(all) * sizeof(uint32_t);
}

void write_order(const LibraryCall& call, RoutineText& made) {
  OrderWriter(call, made).write();
}

}  // namespace nitinol::cuda
