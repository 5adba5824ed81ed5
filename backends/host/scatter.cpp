// Rows may be written more than once and in order, so that threads take columns of all rows and not
// rows; of narrow rows one thread does it all.
#include "backends/host/scatter.h"

#include "backends/host/elements.h"
#include "backends/host/rows.h"
#include "backends/host/split.h"
#include "core/copy_bytes.h"
#include "core/joins.h"
#include "core/num.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

namespace nitinol::host {
namespace {

/// Columns that are worth waking a thread for each index.
constexpr int64_t columns_of_thread = 256;

/// Calls f(to, from, n) for pieces of a row that lie together in both, columns [first, last).
template <class F>
void for_each_piece(const Rows& to, int64_t i, const Rows& from, int64_t j, int64_t first,
                    int64_t last, const F& f) {
  if (to.is_together() && from.is_together())
    return f(to.at(i, first), from.at(j, first), last - first);
  for (int64_t c = first; c < last; ++c) f(to.at(i, c), from.at(j, c), int64_t{1});
}

template <DType dtype, Combine combine>
void join_elements(char* to, const char* from, int64_t n) {
  using Stored = typename Elements<dtype>::Stored;
  using Lane = Num<typename Elements<dtype>::Value>;
  auto* const out = reinterpret_cast<Stored*>(to);
  const auto* const values = reinterpret_cast<const Stored*>(from);
  for (int64_t i = 0; i < n; ++i) {
    const Lane a = value_of<dtype>(out[i]), b = value_of<dtype>(values[i]);
    out[i] = stored<dtype>(join<combine>(a, b).value);
  }
}

struct Arrivals {
  Arrivals(const LibraryCall& call, const Launch& launch)
      : x(call.operands[0], launch.buffers[0], 1),
        values(call.operands[1], launch.buffers[1], call.operands[2].shape.size()),
        out(call.operands[3], launch.buffers[3], 1),
        rows(call.operands[3].shape[0]),
        indices(call.operands[2], launch.buffers[2], rows) {}

  /// Columns [first, last) of all rows.
  void copy(int64_t first, int64_t last) const {
    const int64_t bytes = out.bytes();
    for (int64_t i = 0; i < rows; ++i) {
      for_each_piece(out, i, x, i, first, last, [bytes](char* to, const char* from, int64_t n) {
        copy_bytes(to, from, static_cast<std::size_t>(n * bytes));
      });
    }
  }
  void check(WrongIndex& wrong) const {
    for (int64_t j = 0; j < indices.count(); ++j)
      if (indices.row(j) < 0) return wrong.note(indices.given(j));
  }
  template <class JoinRow>
  void run(int64_t first, int64_t last, WrongIndex& wrong, const JoinRow& join_row) const {
    for (int64_t j = 0; j < indices.count(); ++j) {
      const int64_t row = indices.row(j);
      if (row < 0) return wrong.note(indices.given(j));
      for_each_piece(out, row, values, j, first, last, join_row);
    }
  }

  /// Calls put(to, from) for rows of one element, by one axis of indices. Returns false if they are
  /// not that.
  template <class Put>
  bool put_each(WrongIndex& wrong, const Put& put) const {
    if (out.elements() != 1 || !indices.is_line() || !out.step() || !values.step()) return false;
    char* const to = out.row(0);
    const char* const from = values.row(0);
    const IndexLine line = indices.line();
    // By copies: what is put might be one of these, for all that the compiler knows.
    const int64_t count = indices.count(), row_count = rows, step = *out.step(),
                  values_step = *values.step();
    for (int64_t j = 0; j < count; ++j) {
      const int64_t row = row_of(line[j], row_count);
      if (row < 0) {
        wrong.note(line[j]);
        break;
      }
      put(to + row * step, from + j * values_step);
    }
    return true;
  }
  template <int bytes>
  bool put_words(WrongIndex& wrong) const {
    return put_each(wrong, [](char* to, const char* from) { std::memcpy(to, from, bytes); });
  }
  bool put_elements(WrongIndex& wrong) const {
    switch (out.bytes()) {
      case 1:
        return put_words<1>(wrong);
      case 2:
        return put_words<2>(wrong);
      case 4:
        return put_words<4>(wrong);
      default:
        return put_words<8>(wrong);
    }
  }

  Rows x, values, out;
  int64_t rows;
  RowIndices indices;
};

/// join<combine>(a, b), for extremes by the one instruction that gives b where that is a NaN: a
/// branch that data in no order decides costs more than all else. It does not tell -0 from +0.
template <Combine combine, class T>
T joined_alone(T a, T b) {
  if constexpr (is_extreme(combine) && std::is_floating_point_v<T>) {
    using Bits = native::Bits<T>;
    constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
    const bool may_be_zeros_apart = (std::bit_cast<Bits>(a) ^ std::bit_cast<Bits>(b)) == sign;
    if (a == a && !may_be_zeros_apart) [[likely]]
      return combine == Combine::maximum ? (a > b ? a : b) : (a < b ? a : b);
  } else if constexpr (is_extreme(combine)) {
    return combine == Combine::maximum ? std::max(a, b) : std::min(a, b);
  }
  return join<combine>(Num<T>(a), Num<T>(b)).value;
}

/// How values join what is there: a piece of a row, or all rows if they are single elements.
struct Join {
  void (*pieces)(char* to, const char* from, int64_t n) = nullptr;
  bool (*elements)(const Arrivals& work, WrongIndex& wrong) = nullptr;
};

template <DType dtype, Combine combine>
constexpr Join join_by = {
    join_elements<dtype, combine>, [](const Arrivals& work, WrongIndex& wrong) {
      using Stored = typename Elements<dtype>::Stored;
      using Value = typename Elements<dtype>::Value;
      return work.put_each(wrong, [](char* to, const char* from) {
        auto& out = *reinterpret_cast<Stored*>(to);
        const Value a = value_of<dtype>(out);
        const Value b = value_of<dtype>(*reinterpret_cast<const Stored*>(from));
        out = stored<dtype>(joined_alone<combine>(a, b));
      });
    }};

Join join_of(DType dtype, Combine combine) {
  Join found;
  with_number_type(dtype, [&](auto type) {
    switch (combine) {
      case Combine::multiply:
        found = join_by<type.value, Combine::multiply>;
        break;
      case Combine::maximum:
        found = join_by<type.value, Combine::maximum>;
        break;
      case Combine::minimum:
        found = join_by<type.value, Combine::minimum>;
        break;
      default:
        found = join_by<type.value, Combine::add>;
    }
  });
  return found;
}

}  // namespace

void scatter(const LibraryCall& call, const Launch& launch) {
  const Arrivals work(call, launch);
  WrongIndex wrong;
  const OperandLayout &x = call.operands[0], &out = call.operands[3];
  if (call.only_checks) {
    work.check(wrong);
    return wrong.report("scatter", work.rows, launch);
  }
  const bool is_in_place = launch.buffers[0] == launch.buffers[3];
  const bool is_one_piece =
      is_contiguous(x.shape, x.strides) && is_contiguous(out.shape, out.strides);
  if (is_one_piece && !is_in_place) {
    const int64_t bytes = element_count(out.shape) * static_cast<int64_t>(size_of(out.dtype));
    split(bytes, 1 << 20, launch.threads, [&](int64_t first, int64_t last) {
      std::memcpy(static_cast<char*>(launch.buffers[3]) + first,
                  static_cast<const char*>(launch.buffers[0]) + first,
                  static_cast<std::size_t>(last - first));
    });
  }
  split(work.out.elements(), columns_of_thread, launch.threads, [&](int64_t first, int64_t last) {
    if (!is_one_piece && !is_in_place) work.copy(first, last);
    if (call.replaces && work.put_elements(wrong)) return;
    if (call.replaces) {
      const int64_t bytes = work.out.bytes();
      work.run(first, last, wrong, [bytes](char* to, const char* from, int64_t n) {
        copy_bytes(to, from, static_cast<std::size_t>(n * bytes));
      });
    } else {
      const Join join = join_of(call.operands[0].dtype, call.combine);
      if (!join.elements(work, wrong)) work.run(first, last, wrong, join.pieces);
    }
  });
  wrong.report("scatter", work.rows, launch);
}

}  // namespace nitinol::host
