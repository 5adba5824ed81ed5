// Written as the definitions read, one element at a time, and not for speed: what the routines of
// other devices are compared with. Convolutions alone are the host's own plain loops, which the cpu
// runs only where oneDNN does not.
#include "backends/reference/routines.h"

#include "backends/host/convolve.h"
#include "backends/host/elements.h"
#include "backends/reference/joins.h"
#include "core/bits.h"
#include "core/error.h"
#include "core/math/random.h"
#include "core/native.h"
#include "core/num.h"
#include "core/permutation.h"
#include "core/reduction.h"
#include "dist/collective.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace nitinol::reference {
namespace {

using host::Elements;
using host::stored;
using host::value_of;

/// Calls body(index) for each index of the shape, the last axis fastest.
template <class Body>
void for_each_index(const Shape& shape, const Body& body) {
  if (element_count(shape) == 0) return;
  Dims index = Dims::filled(shape.size(), 0);
  for (;;) {
    body(std::as_const(index));
    int axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

int64_t offset_of(const OperandLayout& operand, const Dims& index) {
  int64_t offset = 0;
  for (int axis = 0; axis < index.size(); ++axis) offset += index[axis] * operand.strides[axis];
  return offset;
}

/// Axes [first, last) of an index.
Dims part_of(const Dims& index, int first, int last) {
  Dims part;
  for (int axis = first; axis < last; ++axis) part.push_back(index[axis]);
  return part;
}

Dims joined(const Dims& a, const Dims& b) {
  Dims both = a;
  for (const int64_t i : b) both.push_back(i);
  return both;
}

/// A call with its memory.
struct Work {
  const LibraryCall& call;
  const Launch& launch;

  [[nodiscard]] const OperandLayout& operand(std::size_t k) const { return call.operands[k]; }
  template <class T>
  [[nodiscard]] T& at(std::size_t k, const Dims& index) const {
    return static_cast<T*>(launch.buffers[k])[offset_of(operand(k), index)];
  }
  /// The row of `rows` that the last operand but the result names at `index`; -1, and the status
  /// says so, if there is none.
  [[nodiscard]] int64_t row(const Dims& index, int64_t rows) const {
    const auto given = at<int64_t>(call.operands.size() - 2, index);
    const int64_t row = given < 0 ? given + rows : given;
    if (row >= 0 && row < rows) return row;
    if (launch.status == nullptr) {
      throw Error(ErrorKind::value,
                  {.where = std::string(name_of(call.kind)), .what = "an index is out of range"});
    }
    launch.status->code = Status::index_out_of_range;
    return -1;
  }
};

/// Sums of the elements of the result, in the compute type; each is rounded once.
template <DType dtype>
class Sums {
 public:
  using Value = typename Elements<dtype>::Value;

  explicit Sums(const Work& work)
      : work_(work),
        out_(work.call.operands.back()),
        strides_(strides_of(out_.shape)),
        sums_(static_cast<std::size_t>(element_count(out_.shape))) {}

  void add(const Dims& index, Value value) {
    Value& sum = sums_[place(index)];
    sum = native::add(sum, value);
  }
  void store() const {
    for_each_index(out_.shape, [&](const Dims& index) {
      work_.template at<typename Elements<dtype>::Stored>(work_.call.operands.size() - 1, index) =
          stored<dtype>(sums_[place(index)]);
    });
  }

 private:
  [[nodiscard]] std::size_t place(const Dims& index) const {
    int64_t at = 0;
    for (int axis = 0; axis < index.size(); ++axis) at += index[axis] * strides_[axis];
    return static_cast<std::size_t>(at);
  }

  const Work& work_;
  const OperandLayout& out_;
  const Strides strides_;
  std::vector<Value> sums_;
};

// ---- matrix products

/// c[..., i, j] = the sum over k of a[..., i, k] * b[..., k, j], in the order of k.
template <DType dtype>
void multiply(const Work& work) {
  using Stored = typename Elements<dtype>::Stored;
  const OperandLayout &a = work.operand(0), &b = work.operand(1);
  const Shape& shape = work.operand(2).shape;
  const int row = shape.size() - 2, column = row + 1;
  for_each_index(shape, [&](const Dims& at) {
    const Dims batch = part_of(at, 0, row);
    const Stored* const x = &work.at<Stored>(0, joined(batch, {at[row], 0}));
    const Stored* const y = &work.at<Stored>(1, joined(batch, {0, at[column]}));
    typename Elements<dtype>::Value sum = 0;
    for (int64_t k = 0; k < a.shape[column]; ++k) {
      sum = native::add(sum, native::mul(value_of<dtype>(x[k * a.strides[column]]),
                                         value_of<dtype>(y[k * b.strides[row]])));
    }
    work.at<Stored>(2, at) = stored<dtype>(sum);
  });
}

// ---- indices

template <class Value>
Value joined_by(Combine combine, Value a, Value b) {
  const Reduction reduction = {.combine = combine, .type = scalar_type_of<Value>};
  return from_bits<Value>(
      reference::joined(reduction, {.bits = to_bits(a)}, {.bits = to_bits(b)}).bits);
}

template <DType dtype>
void scatter_add(const Work& work) {
  using Stored = typename Elements<dtype>::Stored;
  const int depth = work.operand(1).shape.size();
  Sums<dtype> sums(work);
  for_each_index(work.operand(0).shape, [&](const Dims& at) {
    const int64_t row = work.row(part_of(at, 0, depth), work.operand(2).shape[0]);
    if (row < 0) return;
    sums.add(joined({row}, part_of(at, depth, at.size())), value_of<dtype>(work.at<Stored>(0, at)));
  });
  sums.store();
}

template <DType dtype>
void scatter(const Work& work) {
  using Stored = typename Elements<dtype>::Stored;
  const int depth = work.operand(2).shape.size();
  if (work.call.only_checks) {
    for_each_index(work.operand(2).shape, [&](const Dims& at) {
      static_cast<void>(work.row(at, work.operand(3).shape[0]));
    });
    return;
  }
  for_each_index(work.operand(3).shape,
                 [&](const Dims& at) { work.at<Stored>(3, at) = work.at<Stored>(0, at); });
  for_each_index(work.operand(1).shape, [&](const Dims& at) {
    const int64_t row = work.row(part_of(at, 0, depth), work.operand(3).shape[0]);
    if (row < 0) return;
    Stored& out = work.at<Stored>(3, joined({row}, part_of(at, depth, at.size())));
    const Stored value = work.at<Stored>(1, at);
    out = work.call.replaces ? value
                             : stored<dtype>(joined_by(work.call.combine, value_of<dtype>(out),
                                                       value_of<dtype>(value)));
  });
}

template <DType dtype>
void scatter_add_along(const Work& work) {
  using Stored = typename Elements<dtype>::Stored;
  const int axis = work.call.axis;
  Sums<dtype> sums(work);
  for_each_index(work.operand(0).shape, [&](const Dims& at) {
    Dims to = at;
    to[axis] = work.row(at, work.operand(2).shape[axis]);
    if (to[axis] >= 0) sums.add(to, value_of<dtype>(work.at<Stored>(0, at)));
  });
  sums.store();
}

// ---- running sums

template <class Value>
std::vector<Value> scan(Combine combine, const std::vector<Value>& x) {
  constexpr auto run = static_cast<std::size_t>(reduction_order::scan_run);
  std::vector<Value> sums = x, totals;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % run != 0) sums[i] = joined_by(combine, sums[i - 1], x[i]);
    if (i % run == run - 1) totals.push_back(sums[i]);
  }
  if (x.size() <= run) return sums;
  const std::vector<Value> before = scan(combine, totals);
  for (std::size_t i = run; i < x.size(); ++i)
    sums[i] = joined_by(combine, before[i / run - 1], sums[i]);
  return sums;
}

template <DType dtype>
void scan_lines(const Work& work) {
  using Stored = typename Elements<dtype>::Stored;
  const int axis = work.call.axis;
  const Shape& shape = work.operand(0).shape;
  Shape lines = shape;
  lines[axis] = 1;
  for_each_index(lines, [&](const Dims& line) {
    Dims at = line;
    std::vector<typename Elements<dtype>::Value> values;
    for (at[axis] = 0; at[axis] < shape[axis]; ++at[axis])
      values.push_back(value_of<dtype>(work.at<Stored>(0, at)));
    at[axis] = 0;
    for (const auto& sum : scan(work.call.combine, values)) {
      work.at<Stored>(1, at) = stored<dtype>(sum);
      ++at[axis];
    }
  });
}

// ---- order

/// NaN is greater than all numbers.
template <class Value>
bool is_less(Value a, Value b) {
  return b != b ? a == a : a < b;
}

/// Where the elements of a line come from when they are in order.
template <DType dtype>
std::vector<int64_t> order_of(const Work& work, Dims line) {
  using Stored = typename Elements<dtype>::Stored;
  const int axis = work.call.axis;
  std::vector<int64_t> order(static_cast<std::size_t>(work.operand(0).shape[axis]));
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](int64_t i) {
    line[axis] = i;
    return value_of<dtype>(work.at<Stored>(0, line));
  };
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return work.call.is_descending ? is_less(value(b), value(a)) : is_less(value(a), value(b));
  });
  return order;
}

template <DType dtype>
void sort(const Work& work) {
  using Stored = typename Elements<dtype>::Stored;
  const int axis = work.call.axis;
  const Shape& shape = work.operand(1).shape;
  Shape lines = shape;
  if (lines[axis] > 0) lines[axis] = 1;
  for_each_index(lines, [&](const Dims& line) {
    const std::vector<int64_t> order = order_of<dtype>(work, line);
    Dims to = line, from = line;
    for (to[axis] = 0; to[axis] < shape[axis]; ++to[axis]) {
      from[axis] = order[static_cast<std::size_t>(to[axis])];
      if (work.call.kind == LibraryCall::Kind::argsort)
        work.at<int64_t>(1, to) = from[axis];
      else
        work.at<Stored>(1, to) = work.at<Stored>(0, from);
    }
  });
}

template <DType dtype>
void search(const Work& work) {
  using Stored = typename Elements<dtype>::Stored;
  for_each_index(work.operand(1).shape, [&](const Dims& at) {
    const auto wanted = value_of<dtype>(work.at<Stored>(1, at));
    const auto is_before = [&](int64_t i) {
      const auto value = value_of<dtype>(work.at<Stored>(0, {i}));
      return work.call.is_right ? !is_less(wanted, value) : is_less(value, wanted);
    };
    int64_t before = 0, left = work.operand(0).shape[0];
    for (; left > 1; left -= left / 2) {
      if (is_before(before + left / 2 - 1)) before += left / 2;
    }
    if (left == 1 && is_before(before)) ++before;
    work.at<int64_t>(2, at) = before;
  });
}

template <DType dtype>
void compress(const Work& work) {
  using Stored = typename Elements<dtype>::Stored;
  const Shape& shape = work.operand(2).shape;
  for_each_index(shape, [&](const Dims& at) { work.at<Stored>(2, at) = Stored{0}; });
  const Shape row = part_of(shape, 1, shape.size());
  int64_t count = 0;
  for (int64_t i = 0; i < work.operand(1).shape[0] && count < shape[0]; ++i) {
    if (work.at<uint8_t>(1, {i}) == 0) continue;
    for_each_index(row, [&](const Dims& at) {
      work.at<Stored>(2, joined({count}, at)) = work.at<Stored>(0, joined({i}, at));
    });
    ++count;
  }
}

void find_positions(const Work& work) {
  const int64_t room = work.operand(1).shape[0];
  int64_t count = 0;
  for (int64_t i = 0; i < work.operand(0).shape[0] && count < room; ++i) {
    if (work.at<uint8_t>(0, {i}) != 0) work.at<int64_t>(1, {count++}) = i;
  }
  for (; count < room; ++count) work.at<int64_t>(1, {count}) = -1;
}

/// A random 32-bit word, and what it says of a chance.
uint32_t drawn(const Work& work, const permutation::Chance& chance) {
  const auto word = [](int64_t bits) { return Num<uint64_t>(static_cast<uint64_t>(bits)); };
  const auto words =
      philox(word(chance.counter), word(work.at<int64_t>(0, {1})), word(work.at<int64_t>(0, {0})));
  return words[static_cast<std::size_t>(chance.word)].value >> chance.shift;
}

void permute(const Work& work) {
  const int64_t n = work.operand(1).shape[0];
  const int bits = permutation::bucket_bits(n);
  std::vector<std::vector<int64_t>> buckets(std::size_t{1} << bits);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t chance = bits == 0 ? 0 : drawn(work, permutation::bucket_chance(i)) & 0xffff;
    buckets[chance >> (16 - bits)].push_back(i);
  }
  int64_t place = 0;
  for (std::vector<int64_t>& bucket : buckets) {
    for (std::size_t i = 0; i < bucket.size(); ++i, ++place) {
      const uint64_t chance = drawn(work, permutation::place_chance(n, place));
      std::swap(bucket[i], bucket[chance * (i + 1) >> 32]);
    }
    for (std::size_t i = 0; i < bucket.size(); ++i)
      work.at<int64_t>(1, {place - std::ssize(bucket) + static_cast<int64_t>(i)}) = bucket[i];
  }
}

// ---- windows

/// The place of the largest element of x in the window at `at` of the result; of equal ones the
/// first, of NaN the last.
template <DType dtype>
Dims largest_in(const Work& work, const Dims& at) {
  const Windows& windows = work.call.windows;
  const Shape& image = work.operand(0).shape;
  const int64_t top = at[1] * windows.stride[0] - windows.padding[0];
  const int64_t left = at[2] * windows.stride[1] - windows.padding[1];
  Dims largest;
  typename Elements<dtype>::Value most = 0;
  for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + windows.kernel[0], image[1]);
       ++h) {
    for (int64_t w = std::max<int64_t>(left, 0); w < std::min(left + windows.kernel[1], image[2]);
         ++w) {
      const Dims place = {at[0], h, w, at[3]};
      const auto value = value_of<dtype>(work.at<typename Elements<dtype>::Stored>(0, place));
      if (!largest.empty() && !(value > most) && value == value) continue;
      largest = place;
      most = value;
    }
  }
  return largest;
}

template <DType dtype>
void window_max(const Work& work) {
  using Stored = typename Elements<dtype>::Stored;
  for_each_index(work.operand(2).shape, [&](const Dims& at) {
    work.at<Stored>(2, at) = work.at<Stored>(1, largest_in<dtype>(work, at));
  });
}

template <DType dtype>
void window_max_input(const Work& work) {
  using Stored = typename Elements<dtype>::Stored;
  Sums<dtype> sums(work);
  for_each_index(work.operand(1).shape, [&](const Dims& at) {
    sums.add(largest_in<dtype>(work, at), value_of<dtype>(work.at<Stored>(1, at)));
  });
  sums.store();
}

class Interpreted final : public Executable {
 public:
  explicit Interpreted(LibraryCall call) : call_(std::move(call)) {}
  void launch(const Launch& launch) const override {
    const Work work = {call_, launch};
    const auto with_type = [&](const auto& routine) {
      const DType dtype = call_.operands[0].dtype;
      host::with_number_type(dtype == boolean ? u8 : dtype, [&](auto type) { routine(type); });
    };
    switch (call_.kind) {
      case LibraryCall::Kind::matmul:
        return with_type([&](auto dtype) { multiply<dtype.value>(work); });
      case LibraryCall::Kind::pack:
      case LibraryCall::Kind::packed_matmul:
      case LibraryCall::Kind::pack_filter:
      case LibraryCall::Kind::packed_conv2d:
        break;  // not prepared
      case LibraryCall::Kind::scatter_add:
        return with_type([&](auto dtype) { scatter_add<dtype.value>(work); });
      case LibraryCall::Kind::scatter:
        return with_type([&](auto dtype) { scatter<dtype.value>(work); });
      case LibraryCall::Kind::scatter_add_along:
        return with_type([&](auto dtype) { scatter_add_along<dtype.value>(work); });
      case LibraryCall::Kind::scan:
        return with_type([&](auto dtype) { scan_lines<dtype.value>(work); });
      case LibraryCall::Kind::sort:
      case LibraryCall::Kind::argsort:
        return with_type([&](auto dtype) { sort<dtype.value>(work); });
      case LibraryCall::Kind::search:
        return with_type([&](auto dtype) { search<dtype.value>(work); });
      case LibraryCall::Kind::compress:
        return with_type([&](auto dtype) { compress<dtype.value>(work); });
      case LibraryCall::Kind::positions:
        return find_positions(work);
      case LibraryCall::Kind::permutation:
        return permute(work);
      case LibraryCall::Kind::conv2d:
      case LibraryCall::Kind::conv2d_input:
      case LibraryCall::Kind::conv2d_weight:
        return host::convolve(call_, launch);
      case LibraryCall::Kind::window_max:
        return with_type([&](auto dtype) { window_max<dtype.value>(work); });
      case LibraryCall::Kind::window_max_input:
        return with_type([&](auto dtype) { window_max_input<dtype.value>(work); });
      case LibraryCall::Kind::collective:
        return dist::run_collective(call_, launch);
      case LibraryCall::Kind::routine:
        return call_.routine(call_, launch);
    }
  }

 private:
  const LibraryCall call_;
};

}  // namespace

std::unique_ptr<Executable> make_routine(const LibraryCall& call) {
  using Kind = LibraryCall::Kind;
  if (call.kind == Kind::pack || call.kind == Kind::packed_matmul ||
      call.kind == Kind::pack_filter || call.kind == Kind::packed_conv2d) {
    throw Error(ErrorKind::unsupported, {.where = std::string(name_of(call.kind)),
                                         .what = "the reference device has no layout of its own"});
  }
  return std::make_unique<Interpreted>(call);
}

}  // namespace nitinol::reference
