// oneDNN takes matrices whose rows or columns are contiguous, with any distance between them, and
// batches of them at regular distances. So transposed and sliced views pass as they are. What does
// not fit (both steps larger than one, a repeated row) is first copied to a contiguous matrix, and
// f16, which oneDNN 2.6 does not multiply on CPUs, is converted to f32 in the same way, and bf16
// where the CPU does not multiply it: oneDNN's emulation takes 2.8 times as long as f32 (1024
// cubed, Zen 5).
//
// Batch dimensions merge where all operands allow it. If b is the same for the whole batch, the
// rows of all matrices of a are one tall matrix: x[8, 32, 64] w[64, 10] is one product of 256 rows.
// A batch that oneDNN has no fast code for is run matrix by matrix, and one of small matrices, for
// which its calls take longer than the products, not by it (host/matmul_small.h).

#include "backends/cpu/onednn/matmul.h"

#include "backends/cpu/onednn/exit_gate.h"
#include "backends/cpu/onednn/matmul_rule.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/host/allocator.h"
#include "backends/host/convert.h"
#include "backends/host/matmul_loops.h"
#include "backends/host/matmul_small.h"
#include "backends/host/split.h"
#include "core/error.h"
#include "core/parallel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace nitinol::cpu {
namespace {

/// Strides in elements.
struct Matrix {
  int64_t rows = 0, columns = 0;
  int64_t row = 0, column = 0;
  std::vector<int64_t> batch;
};

/// a, b, c with common batch sizes.
struct Product {
  std::vector<int64_t> batch;
  std::array<Matrix, 3> matrices;

  [[nodiscard]] int64_t count() const {
    int64_t product = 1;
    for (const int64_t size : batch) product *= size;
    return product;
  }
};

Product product_of(const LibraryCall& call) {
  Product product;
  const Shape& shape = call.operands[2].shape;
  const int batch_rank = shape.size() - 2;
  for (std::size_t k = 0; k < 3; ++k) {
    const OperandLayout& operand = call.operands[k];
    product.matrices[k] = {.rows = operand.shape[batch_rank],
                           .columns = operand.shape[batch_rank + 1],
                           .row = operand.strides[batch_rank],
                           .column = operand.strides[batch_rank + 1],
                           .batch = {}};
  }
  for (int axis = 0; axis < batch_rank; ++axis) {
    if (shape[axis] == 1) continue;
    const bool merges =
        !product.batch.empty() && std::ranges::all_of(std::array{0, 1, 2}, [&](int k) {
          const auto i = static_cast<std::size_t>(k);
          return product.matrices[i].batch.back() == call.operands[i].strides[axis] * shape[axis];
        });
    if (merges)
      product.batch.back() *= shape[axis];
    else
      product.batch.push_back(shape[axis]);
    for (std::size_t k = 0; k < 3; ++k) {
      if (!merges) product.matrices[k].batch.push_back(0);
      product.matrices[k].batch.back() = call.operands[k].strides[axis];
    }
  }
  return product;
}

/// Makes one tall product of a batch whose right operand repeats.
void fold_batch(Product& product) {
  auto& [a, b, c] = product.matrices;
  if (product.batch.size() != 1 || b.batch[0] != 0) return;
  for (Matrix* matrix : {&a, &c}) {
    if (matrix->rows == 1) matrix->row = matrix->batch[0];
  }
  if (a.batch[0] != a.rows * a.row || c.batch[0] != c.rows * c.row) return;
  a.rows *= product.batch[0];
  c.rows *= product.batch[0];
  for (Matrix& matrix : product.matrices) matrix.batch.clear();
  product.batch.clear();
}

/// Gives dimensions of size 1 a stride that oneDNN accepts; they are never stepped along.
void set_free_strides(Matrix& matrix) {
  if (matrix.columns == 1) matrix.column = 1;
  if (matrix.rows == 1) matrix.row = matrix.column == 1 ? matrix.columns : 1;
}

bool is_usable(const Matrix& matrix) {
  return (matrix.column == 1 && matrix.row >= matrix.columns) ||
         (matrix.row == 1 && matrix.column >= matrix.rows);
}

/// The layout of a copy: contiguous, by columns or by rows, repeated matrices once.
Matrix contiguous(const Matrix& matrix, const std::vector<int64_t>& batch, bool by_columns) {
  Matrix copy = matrix;
  copy.row = by_columns ? 1 : matrix.columns;
  copy.column = by_columns ? matrix.rows : 1;
  int64_t step = matrix.rows * matrix.columns;
  for (std::size_t i = batch.size(); i-- > 0;) {
    copy.batch[i] = matrix.batch[i] == 0 ? 0 : step;
    if (matrix.batch[i] != 0) step *= batch[i];
  }
  return copy;
}

int64_t elements_of(const Matrix& matrix, const std::vector<int64_t>& batch) {
  int64_t count = matrix.rows * matrix.columns;
  for (std::size_t i = 0; i < batch.size(); ++i) count *= matrix.batch[i] == 0 ? 1 : batch[i];
  return count;
}

/// Offset in elements of matrix number `number`.
int64_t offset_of(const Matrix& matrix, const std::vector<int64_t>& batch, int64_t number) {
  int64_t offset = 0;
  for (std::size_t i = batch.size(); i-- > 0;) {
    offset += number % batch[i] * matrix.batch[i];
    number /= batch[i];
  }
  return offset;
}

/// Batch sizes that count repeated matrices once.
std::vector<int64_t> distinct(const Matrix& matrix, std::vector<int64_t> batch) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (matrix.batch[i] == 0) batch[i] = 1;
  }
  return batch;
}

/// How one operand reaches oneDNN.
struct Operand {
  Matrix original, used;
  bool is_copied = false;
  bool by_columns = false;  ///< how it is copied
};

class Matmul final : public Executable {
 public:
  explicit Matmul(const LibraryCall& call)
      : dtype_(call.operands[0].dtype),
        threads_(call.threads > 0 ? call.threads : num_threads()),
        product_(product_of(call)) {
    fold_batch(product_);
    is_empty_ = product_.count() * product_.matrices[2].rows * product_.matrices[2].columns == 0;
    depth_ = product_.matrices[0].columns;
    if (is_empty_ || depth_ == 0) return;
    const Matrix& c = product_.matrices[2];
    are_many_small_ = !product_.batch.empty() &&
                      host::are_many_small(c.rows, c.columns, depth_, product_.batch.back());
    if (are_many_small_) return;
    if (dtype_ == f32 || dtype_ == f16 || dtype_ == bf16) prepare();
  }

  [[nodiscard]] std::size_t bytes() const override {
    return onednn_ == nullptr ? 0 : onednn_->bytes();
  }
  void launch(const Launch& launch) const override {
    if (is_empty_) return;
    if (depth_ == 0) return fill_zeros(launch);
    if (onednn_ != nullptr) return run_onednn(launch);
    if (are_many_small_) return run_small(launch);
    for (int64_t i = 0; i < product_.count(); ++i) run_loops(launch, i);
  }

 private:
  void prepare() {
    is_converted_ = dtype_ == f16 || (dtype_ == bf16 && !has_bf16_units());
    plan();
    if (onednn_ == nullptr && dtype_ == bf16) {  // not on this instruction set
      is_converted_ = true;
      plan();
    }
    if (onednn_ == nullptr) {
      throw Error(ErrorKind::internal, {.where = "matmul", .what = "oneDNN has no code for it"});
    }
  }

  void plan() {
    for (std::size_t k = 0; k < 3; ++k) {
      Operand& operand = operands_[k];
      operand.original = product_.matrices[k];
      operand.used = operand.original;
      set_free_strides(operand.used);
      // Results are written by rows only.
      operand.is_copied =
          is_converted_ || !is_usable(operand.used) || (k == 2 && operand.used.column != 1);
      if (operand.is_copied) {
        const Matrix& matrix = operand.original;
        // In the orientation of the original, as far as that can be told; a column is one line.
        operand.by_columns =
            matrix.columns == 1 || (k < 2 && matrix.rows > 1 && matrix.row < matrix.column);
        operand.used = contiguous(matrix, product_.batch, operand.by_columns);
        set_free_strides(operand.used);
      }
    }
    runs_whole_batch_ = true;
    onednn_ = make(product_.batch);
    if (onednn_ != nullptr || product_.batch.empty()) return;
    runs_whole_batch_ = false;
    onednn_ = make({});
  }

  [[nodiscard]] std::unique_ptr<OneDnnCall> make(const std::vector<int64_t>& batch) const {
    const MatmulDescription description = describe(batch);
    return make_onednn_matmul(description, fastest_way(description));
  }

  [[nodiscard]] MatmulDescription describe(const std::vector<int64_t>& batch) const {
    MatmulDescription description;
    description.dtype = is_converted_ || dtype_ == f32 ? f32 : bf16;
    description.threads = threads_;
    for (std::size_t k = 0; k < 3; ++k) {
      const Matrix& used = operands_[k].used;
      auto& sizes = description.sizes[k];
      auto& strides = description.strides[k];
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const bool repeats = used.batch[i] == 0;
        sizes.push_back(repeats ? 1 : batch[i]);
        strides.push_back(repeats ? elements_of(used, product_.batch) : used.batch[i]);
      }
      sizes.insert(sizes.end(), {used.rows, used.columns});
      strides.insert(strides.end(), {used.row, used.column});
    }
    return description;
  }

  [[nodiscard]] int64_t stored_size() const { return static_cast<int64_t>(size_of(dtype_)); }
  [[nodiscard]] int64_t used_size() const { return is_converted_ ? 4 : stored_size(); }

  void run_onednn(const Launch& launch) const {
    std::array<StorageHandle, 3> copies;
    std::array<char*, 3> data;
    for (std::size_t k = 0; k < 3; ++k) {
      data[k] = static_cast<char*>(launch.buffers[k]);
      if (!operands_[k].is_copied) continue;
      const int64_t bytes = elements_of(operands_[k].used, product_.batch) * used_size();
      copies[k] = host::allocate(static_cast<std::size_t>(bytes));
      data[k] = static_cast<char*>(copies[k]->data);
      if (k < 2) move(operands_[k], static_cast<char*>(launch.buffers[k]), data[k], true);
    }
    if (used_size() == 4 && is_onednn_ending()) {
      multiply_copies(data);
    } else if (runs_whole_batch_) {
      onednn_->run({data[0], data[1]}, data[2]);
    } else {
      for (int64_t i = 0; i < product_.count(); ++i) {
        const auto at = [&](std::size_t k) {
          return data[k] + offset_of(operands_[k].used, product_.batch, i) * used_size();
        };
        onednn_->run({at(0), at(1)}, at(2));
      }
    }
    if (operands_[2].is_copied) {
      move(operands_[2], static_cast<char*>(launch.buffers[2]), data[2], false);
    }
  }

  /// What oneDNN would do of the operands as it takes them, in f32, by loops.
  void multiply_copies(const std::array<char*, 3>& data) const {
    for (int64_t i = 0; i < product_.count(); ++i) {
      const auto at = [&](std::size_t k) {
        const Matrix& used = operands_[k].used;
        return host::MatrixView{.data = data[k] + offset_of(used, product_.batch, i) * used_size(),
                                .row = used.row,
                                .column = used.column};
      };
      const Matrix& c = product_.matrices[2];
      host::multiply(f32,
                     {.m = c.rows, .n = c.columns, .k = depth_, .a = at(0), .b = at(1), .c = at(2)},
                     threads_);
    }
  }

  /// Copies, and converts, the original into the copy, or (c) back, line by contiguous line.
  void move(const Operand& operand, char* original, char* copy, bool is_in) const {
    const Matrix &from = operand.original, &to = operand.used;
    const bool by_columns = operand.by_columns;
    const int64_t lines = by_columns ? from.columns : from.rows;
    const int64_t length = by_columns ? from.rows : from.columns;
    const int64_t line_step = by_columns ? from.column : from.row;
    const int64_t step = (by_columns ? from.row : from.column) * stored_size();
    // A copy that does not convert moves raw elements.
    const DType dtype = is_converted_ || is_direct(dtype_) ? dtype_ : i16;
    const host::Gather gather = host::gather_of(dtype);
    const host::Scatter scatter = host::scatter_of(dtype);
    const std::vector<int64_t> batch = distinct(from, product_.batch);
    const int64_t total = elements_of(from, product_.batch) / std::max<int64_t>(length, 1);
    host::split(
        total, std::max<int64_t>(16384 / length, 1), threads_, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) {
            const int64_t matrix = i / lines, line = i % lines;
            char* const at =
                original + (offset_of(from, batch, matrix) + line * line_step) * stored_size();
            char* const kept = copy + (offset_of(to, batch, matrix) + line * length) * used_size();
            if (is_in)
              gather(at, step, kept, length);
            else
              scatter(kept, at, step, length);
          }
        });
  }

  static bool is_direct(DType dtype) { return host::is_direct(dtype); }

  [[nodiscard]] host::MatrixView view(const Launch& launch, std::size_t k, int64_t number) const {
    const Matrix& matrix = product_.matrices[k];
    char* const data = static_cast<char*>(launch.buffers[k]) +
                       offset_of(matrix, product_.batch, number) * stored_size();
    return {.data = data, .row = matrix.row, .column = matrix.column};
  }

  [[nodiscard]] host::MatrixProduct product_at(const Launch& launch, int64_t number) const {
    const Matrix& c = product_.matrices[2];
    return {.m = c.rows,
            .n = c.columns,
            .k = depth_,
            .a = view(launch, 0, number),
            .b = view(launch, 1, number),
            .c = view(launch, 2, number)};
  }

  void run_loops(const Launch& launch, int64_t number) const {
    host::multiply(dtype_, product_at(launch, number), threads_);
  }

  /// Along the last dimension of the batch, for each index of the others.
  void run_small(const Launch& launch) const {
    std::array<int64_t, 3> steps;
    for (std::size_t k = 0; k < 3; ++k) steps[k] = product_.matrices[k].batch.back();
    const int64_t count = product_.batch.back();
    for (int64_t i = 0; i < product_.count(); i += count)
      host::multiply_many(dtype_, product_at(launch, i), steps, count, threads_);
  }

  void fill_zeros(const Launch& launch) const {
    const Matrix& c = product_.matrices[2];
    const auto size = static_cast<std::size_t>(stored_size());
    for (int64_t i = 0; i < product_.count(); ++i) {
      char* const data = static_cast<char*>(view(launch, 2, i).data);
      for (int64_t row = 0; row < c.rows; ++row) {
        for (int64_t column = 0; column < c.columns; ++column) {
          std::memset(data + (row * c.row + column * c.column) * stored_size(), 0, size);
        }
      }
    }
  }

  const DType dtype_;
  const int threads_;
  Product product_;
  bool is_empty_ = false;
  bool are_many_small_ = false;
  int64_t depth_ = 0;
  bool is_converted_ = false;  ///< operands pass as f32 copies
  bool runs_whole_batch_ = true;
  std::array<Operand, 3> operands_;
  std::unique_ptr<OneDnnCall> onednn_;
};

}  // namespace

std::unique_ptr<Executable> make_matmul(const LibraryCall& call) {
  return std::make_unique<Matmul>(call);
}

std::optional<MatmulDescription> as_one_product(const LibraryCall& call) {
  Product product = product_of(call);
  fold_batch(product);
  const bool is_empty = std::ranges::any_of(
      product.matrices, [](const Matrix& m) { return m.rows == 0 || m.columns == 0; });
  if (call.operands[0].dtype != f32 || !product.batch.empty() || is_empty) return std::nullopt;
  MatmulDescription description;
  description.threads = call.threads > 0 ? call.threads : num_threads();
  for (std::size_t k = 0; k < 3; ++k) {
    Matrix& matrix = product.matrices[k];
    set_free_strides(matrix);
    if (!is_usable(matrix) || (k == 2 && matrix.column != 1)) return std::nullopt;
    description.sizes[k] = {matrix.rows, matrix.columns};
    description.strides[k] = {matrix.row, matrix.column};
  }
  return description;
}

}  // namespace nitinol::cpu
