// The indices are sorted by row first (a counting sort, so that equal ones keep their order); then
// each row is summed on its own, so any thread may take any rows.
//
// Sorting takes longer than adding up rows of a few elements, as those of a histogram. One thread
// adds them to their sums in the order in which they come, which is the same.

#include "backends/host/scatter_add.h"

#include "backends/host/convert.h"
#include "backends/host/elements.h"
#include "backends/host/indices.h"
#include "backends/host/split.h"
#include "core/native.h"
#include "core/parallel.h"
#include "core/scalar.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace nitinol::host {
namespace {

/// Elements of the widest narrow row.
constexpr int64_t narrow_row = 16;

using Add = void (*)(void* total, const void* values, int64_t n);

template <class T>
void add_elements(void* total, const void* values, int64_t n) {
  auto* const to = static_cast<T*>(total);
  const auto* const from = static_cast<const T*>(values);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(to[i] + from[i]);
}

/// Integers wrap; signed ones are added as unsigned ones, which gives the same bits.
Add add_of(DType dtype) {
  return with_type(compute_type(dtype), []<class T>(T) -> Add {
    if constexpr (std::is_floating_point_v<T>)
      return add_elements<T>;
    else
      return add_elements<native::Bits<T>>;
  });
}

/// Adds `n` values, `step` bytes from one to the next, to the sums that `indices` name. Returns how
/// many it has added: fewer than n where an index is out of range. By itself, so that all of it is
/// in registers.
template <DType dtype>
[[gnu::noinline]] int64_t add_values(IndexLine indices, int64_t n, const char* values, int64_t step,
                                     int64_t rows, typename Elements<dtype>::Value* sums) {
  for (int64_t i = 0; i < n; ++i, values += step) {
    const int64_t row = row_of(indices[i], rows);
    if (row < 0) return i;
    typename Elements<dtype>::Stored value;
    std::memcpy(&value, values, sizeof value);
    sums[row] = native::add(sums[row], value_of<dtype>(value));
  }
  return n;
}

class ScatterAdd {
 public:
  ScatterAdd(const LibraryCall& call, const Launch& launch)
      : values_(call.operands[0]),
        index_shape_(call.operands[1].shape),
        out_(call.operands[2]),
        indices_(call.operands[1], launch.buffers[1], out_.shape[0]),
        element_(static_cast<int64_t>(size_of(values_.dtype))),
        from_(static_cast<const char*>(launch.buffers[0])),
        to_(static_cast<char*>(launch.buffers[2])) {
    if (out_.shape.size() > 1) {
      line_ = out_.shape.back();
      from_step_ = values_.strides.back() * element_;
      to_step_ = out_.strides.back() * element_;
    }
  }

  [[nodiscard]] int64_t rows() const { return out_.shape[0]; }
  [[nodiscard]] int64_t row_elements() const { return product(out_.shape, 1, out_.shape.size()); }
  [[nodiscard]] int64_t count() const { return indices_.count(); }

  [[nodiscard]] bool is_narrow() const {
    return row_elements() <= narrow_row && values_.dtype != boolean;
  }

  /// One value for each index of one axis. Returns false at the first that is out of range.
  template <DType dtype>
  [[nodiscard]] bool add_line(typename Elements<dtype>::Value* sums, int64_t& wrong) const {
    const int64_t done = add_values<dtype>(indices_.line(), count(), from_,
                                           values_.strides[0] * element_, rows(), sums);
    if (done < count()) wrong = indices_.given(done);
    return done == count();
  }

  /// Rows of elements that lie at `offsets` from a row's first.
  template <DType dtype>
  [[nodiscard]] bool add_rows(const std::vector<int64_t>& offsets,
                              typename Elements<dtype>::Value* sums, int64_t& wrong) const {
    using Stored = typename Elements<dtype>::Stored;
    const int64_t n = count();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = indices_.row(i);
      if (row < 0) {
        wrong = indices_.given(i);
        return false;
      }
      const char* const from = from_ + byte_offset(i, index_shape_, values_);
      auto* const to = sums + row * static_cast<int64_t>(offsets.size());
      for (std::size_t j = 0; j < offsets.size(); ++j) {
        Stored value;
        std::memcpy(&value, from + offsets[j], sizeof value);
        to[j] = native::add(to[j], value_of<dtype>(value));
      }
    }
    return true;
  }

  /// Sums narrow rows. Returns false at the first index that is out of range.
  template <DType dtype>
  [[nodiscard]] bool add_up(int64_t& wrong) const {
    using Stored = typename Elements<dtype>::Stored;
    const DefaultFloatMode mode;
    const int64_t width = row_elements(), lines = line_ == 0 ? 0 : width / line_;
    std::vector<int64_t> from_offsets, to_offsets;
    for (int64_t l = 0; l < lines; ++l) {
      const auto [from, to] = line_offsets(l);
      for (int64_t j = 0; j < line_; ++j) {
        from_offsets.push_back(from + j * from_step_);
        to_offsets.push_back(to + j * to_step_);
      }
    }
    std::vector<typename Elements<dtype>::Value> sums(static_cast<std::size_t>(rows() * width));
    if (width == 1 && index_shape_.size() == 1) {
      if (!add_line<dtype>(sums.data(), wrong)) return false;
    } else if (!add_rows<dtype>(from_offsets, sums.data(), wrong)) {
      return false;
    }
    for (int64_t row = 0; row < rows(); ++row) {
      char* const to = to_ + row * out_.strides[0] * element_;
      for (std::size_t j = 0; j < to_offsets.size(); ++j) {
        const Stored sum = stored<dtype>(sums[static_cast<std::size_t>(row * width) + j]);
        std::memcpy(to + to_offsets[j], &sum, sizeof sum);
      }
    }
    return true;
  }

  /// Sorts the indices by row. Returns false at the first that is out of range.
  [[nodiscard]] bool sort(int64_t& wrong) {
    std::vector<int64_t> row_of(static_cast<std::size_t>(count()));
    first_.assign(static_cast<std::size_t>(rows()) + 1, 0);
    for (std::size_t i = 0; i < row_of.size(); ++i) {
      const int64_t row = indices_.row(static_cast<int64_t>(i));
      if (row < 0) {
        wrong = indices_.given(static_cast<int64_t>(i));
        return false;
      }
      row_of[i] = row;
      ++first_[static_cast<std::size_t>(row) + 1];
    }
    for (std::size_t r = 1; r < first_.size(); ++r) first_[r] += first_[r - 1];
    std::vector<int64_t> next(first_.begin(), first_.end() - 1);
    sorted_.resize(row_of.size());
    for (std::size_t i = 0; i < row_of.size(); ++i) {
      const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(row_of[i])]++);
      sorted_[place] = byte_offset(static_cast<int64_t>(i), index_shape_, values_);
    }
    return true;
  }

  /// Sums rows [first, last), line by line of their innermost axis.
  void run(int64_t first, int64_t last) const {
    const Gather gather = gather_of(values_.dtype);
    const Scatter scatter = scatter_of(values_.dtype);
    const Add add = add_of(values_.dtype);
    const auto size = static_cast<std::size_t>(line_) * sizeof(double);
    std::vector<std::byte> total(size);
    std::vector<std::byte> values(size);
    const int64_t lines = line_ == 0 ? 0 : row_elements() / line_;
    for (int64_t row = first; row < last; ++row) {
      for (int64_t l = 0; l < lines; ++l) {
        const auto [from, to] = line_offsets(l);
        std::ranges::fill(total, std::byte{0});
        for (int64_t i = first_[static_cast<std::size_t>(row)];
             i < first_[static_cast<std::size_t>(row) + 1]; ++i) {
          gather(from_ + sorted_[static_cast<std::size_t>(i)] + from, from_step_, values.data(),
                 line_);
          add(total.data(), values.data(), line_);
        }
        scatter(total.data(), to_ + row * out_.strides[0] * element_ + to, to_step_, line_);
      }
    }
  }

 private:
  struct LineOffsets {
    int64_t from, to;
  };
  /// Of line l within a row, in bytes.
  [[nodiscard]] LineOffsets line_offsets(int64_t l) const {
    LineOffsets offsets = {0, 0};
    // Axis a of the output is axis a + shift of the values.
    const int shift = index_shape_.size() - 1;
    for (int axis = out_.shape.size() - 2; axis >= 1; --axis) {
      const int64_t at = l % out_.shape[axis];
      l /= out_.shape[axis];
      offsets.from += at * values_.strides[axis + shift] * element_;
      offsets.to += at * out_.strides[axis] * element_;
    }
    return offsets;
  }

  const OperandLayout& values_;
  const Shape& index_shape_;
  const OperandLayout& out_;
  RowIndices indices_;
  int64_t element_;
  const char* from_;
  char* to_;
  int64_t line_ = 1, from_step_ = 0, to_step_ = 0;
  std::vector<int64_t> first_;   ///< per row: where its values begin in sorted_
  std::vector<int64_t> sorted_;  ///< byte offsets of values, by row
};

}  // namespace

void scatter_add(const LibraryCall& call, const Launch& launch) {
  ScatterAdd work(call, launch);
  int64_t wrong = 0;
  if (work.is_narrow()) {
    bool is_done = false;
    with_number_type(call.operands[0].dtype,
                     [&](auto dtype) { is_done = work.add_up<dtype.value>(wrong); });
    if (!is_done) report_index("scatter_add", wrong, work.rows(), launch);
    return;
  }
  if (!work.sort(wrong)) return report_index("scatter_add", wrong, work.rows(), launch);
  const int64_t per_row = std::max<int64_t>(work.count() / std::max<int64_t>(work.rows(), 1), 1) *
                          std::max<int64_t>(work.row_elements(), 1);
  split(work.rows(), std::max<int64_t>(16384 / per_row, 1), launch.threads,
        [&](int64_t first, int64_t last) { work.run(first, last); });
}

}  // namespace nitinol::host
