// cuBLASLt multiplies matrices whose columns are contiguous. One of ours with contiguous rows is
// its own transpose there: c = a b is c' = b' a'.
#include "backends/cuda/runtime/gpu.h"
#include "backends/cuda/runtime/owned.h"
#include "backends/cuda/vendor/executables.h"
#include "backends/cuda/vendor/vendor_call.h"
#include "core/error.h"
#include "core/library.h"
#include "core/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace nitinol::cuda {
namespace {

// Of library_types.h and cublasLt.h.
constexpr TypeNumbers cuda_types = {.f32 = 0, .f64 = 1, .f16 = 2, .bf16 = 14};
constexpr int compute_f32 = 68, compute_f64 = 70;
constexpr int transposes_a = 3, transposes_b = 4;
constexpr int layout_batch_count = 5, layout_batch_stride = 6;
constexpr int preference_workspace = 1, preference_reduction = 3;
constexpr int preference_alignment = 5;  // of a; b, c and d follow
constexpr int algorithm_id = 0, algorithm_parts = 2;
constexpr int invalid_value = 7, arch_mismatch = 8, not_supported = 15;
/// Parts of a sum meet in the type they are computed in, f32 for 16 bits: the other ways add them
/// in the result's type.
constexpr uint32_t in_compute_type = 2;
/// A matrix as cuBLASLt is told of it.
struct Matrix {
  int64_t rows, columns, leading;
  bool is_transposed;  ///< of what is to be multiplied
};

/// The transpose of a matrix of ours as it is; nothing if neither its rows nor its columns are
/// contiguous.
std::optional<Matrix> transpose_of(const OperandLayout& operand) {
  const int rank = operand.shape.size();
  const int64_t rows = operand.shape[rank - 2], columns = operand.shape[rank - 1];
  const int64_t row = operand.strides[rank - 2], column = operand.strides[rank - 1];
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1))
    return Matrix{columns, rows, rows == 1 ? columns : row, false};
  if ((row == 1 || rows == 1) && (column >= rows || columns == 1))
    return Matrix{rows, columns, columns == 1 ? rows : column, true};
  return std::nullopt;
}

using Description = Owned<CublasLt::Description, &cublas_lt, &CublasLt::cublasLtMatmulDescDestroy>;
using Layout = Owned<CublasLt::Layout, &cublas_lt, &CublasLt::cublasLtMatrixLayoutDestroy>;
using Preference =
    Owned<CublasLt::Preference, &cublas_lt, &CublasLt::cublasLtMatmulPreferenceDestroy>;

/// Batches as they are, and matrices row by row: for what no Matrix describes.
Strides packed(const OperandLayout& operand) {
  Strides strides = operand.strides;
  int64_t next = 1;
  for (int axis = strides.size() - 1; axis >= 0; --axis) {
    if (axis < strides.size() - 2 && strides[axis] == 0) continue;
    strides[axis] = next;
    next *= operand.shape[axis];
  }
  return strides;
}

class Product final : public VendorCall {
 public:
  Product(Gpu& gpu, const LibraryCall& call) : VendorCall(gpu, call, "cuBLASLt", "matmul") {
    const OperandLayout &left = call.operands[0], &result = call.operands[2];
    const int rank = left.shape.size();
    label_ = std::make_shared<const std::string>(
        fmt::format("a product of {} x {} x {}", left.shape[rank - 2], left.shape[rank - 1],
                    result.shape[rank - 1]));
    const Matrix a = matrix(0), b = matrix(1), c = matrix(2);
    plan_batches();
    const int compute = dtype() == f64 ? compute_f64 : compute_f32;
    const int scale = dtype() == f64 ? cuda_types.f64 : cuda_types.f32;
    CublasLt::Description made = nullptr;
    expect(library_.cublasLtMatmulDescCreate(&made, compute, scale), "describing a product");
    description_.reset(made);
    set(transposes_a, b.is_transposed);
    set(transposes_b, a.is_transposed);
    layouts_ = {layout(b, 1), layout(a, 0), layout(c, 2)};
    usual_ = {usual(b, 1), usual(a, 0), usual(c, 2)};
  }

  /// Finds an algorithm; false if cuBLASLt has none.
  bool plan() {
    handle_ = handle();
    chosen_ = ask(usual_);
    if (!chosen_ || !runs_here(*chosen_)) chosen_ = ask(layouts_);
    log(LogLevel::info,
        fmt::format("{}: {}", *label_,
                    chosen_ ? "cuBLASLt, " + algorithm()
                            : "cuBLASLt has no way, so a kernel of our own computes it"));
    return chosen_.has_value();
  }

 private:
  struct Batch {
    int64_t size;
    std::array<int64_t, 3> strides;
  };
  using Layouts = std::array<Layout, 3>;  ///< of b, a and c

  [[nodiscard]] DType dtype() const { return given().operands[2].dtype; }

  [[nodiscard]] CublasLt::Handle handle() const {
    static ForkSafeMutex mutex;
    static auto& all = *new std::map<const Gpu*, CublasLt::Handle>;
    const std::lock_guard lock(mutex);
    CublasLt::Handle& handle = all[&gpu_];
    if (handle == nullptr) expect(library_.cublasLtCreate(&handle), "creating a handle");
    return handle;
  }

  /// Operand `k` as cuBLASLt gets it.
  Matrix matrix(std::size_t k) {
    const std::optional<Matrix> found = transpose_of(given().operands[k]);
    if (found && !(k == 2 && found->is_transposed)) return *found;
    give(k, packed(given().operands[k]));
    return *transpose_of(given().operands[k]);
  }

  /// Batch dimensions, merged where they can be: the innermost by cuBLASLt, those around one by
  /// one.
  void plan_batches() {
    for (int axis = given().operands[2].shape.size() - 3; axis >= 0; --axis) {
      Batch batch = {given().operands[2].shape[axis], {}};
      for (std::size_t k = 0; k < 3; ++k) batch.strides[k] = given().operands[k].strides[axis];
      if (batch.size == 1) continue;
      if (!outer_.empty()) {
        Batch& inner = outer_.front();
        bool merges = true;
        for (std::size_t k = 0; k < 3; ++k)
          merges = merges && batch.strides[k] == inner.strides[k] * inner.size;
        if (merges) {
          inner.size *= batch.size;
          continue;
        }
      }
      outer_.insert(outer_.begin(), batch);
    }
    // cuBLASLt is not said to take matrices backwards.
    if (outer_.empty() || *std::ranges::min_element(outer_.back().strides) < 0) return;
    inner_ = outer_.back();
    outer_.pop_back();
  }

  [[nodiscard]] std::string algorithm() const override {
    const auto setting = [&](int attribute) {
      int32_t value = 0;
      std::size_t written = 0;
      const int status = library_.cublasLtMatmulAlgoConfigGetAttribute(&*chosen_, attribute, &value,
                                                                       sizeof value, &written);
      return status == 0 ? value : 0;
    };
    const int parts = setting(algorithm_parts);
    return fmt::format("algorithm {}{}", setting(algorithm_id),
                       parts > 1 ? fmt::format(", sums in {} parts", parts) : "");
  }

  void set(int attribute, bool is_so) const {
    const int32_t value = is_so ? 1 : 0;
    expect(library_.cublasLtMatmulDescSetAttribute(description_.get(), attribute, &value,
                                                   sizeof value),
           "describing a product");
  }

  [[nodiscard]] Layout layout(const Matrix& matrix, std::size_t k) const {
    return layout(matrix, k, inner_.strides[k]);
  }

  /// As if the columns, and the matrices, followed on one another: by this the algorithm is chosen
  /// where that can be. (On an H100 the distance of columns chose others for a matrix times a
  /// vector, and with them other bits.)
  [[nodiscard]] Layout usual(Matrix matrix, std::size_t k) const {
    matrix.leading = matrix.rows;
    return layout(matrix, k, inner_.strides[k] == 0 ? 0 : matrix.rows * matrix.columns);
  }

  [[nodiscard]] Layout layout(const Matrix& matrix, std::size_t k, int64_t batch_stride) const {
    CublasLt::Layout made = nullptr;
    expect(library_.cublasLtMatrixLayoutCreate(
               &made, *number_of(given().operands[k].dtype, cuda_types),
               static_cast<uint64_t>(matrix.rows), static_cast<uint64_t>(matrix.columns),
               matrix.leading),
           "describing a matrix");
    Layout layout(made);
    const auto set = [&](int attribute, const auto& value) {
      expect(library_.cublasLtMatrixLayoutSetAttribute(made, attribute, &value, sizeof value),
             "describing a matrix");
    };
    set(layout_batch_count, static_cast<int32_t>(inner_.size));
    set(layout_batch_stride, batch_stride);
    return layout;
  }

  /// The bytes at a multiple of which all matrices begin: told are no more than all operands have,
  /// so that it is the shapes that choose the algorithm.
  [[nodiscard]] uint32_t told_alignment() const {
    uint64_t bits = alignment;
    for (const Batch& batch : outer_) {
      for (const int64_t stride : batch.strides)
        bits |= static_cast<uint64_t>(stride) * size_of(dtype());
    }
    return static_cast<uint32_t>(bits & (0 - bits));
  }

  [[nodiscard]] std::optional<CublasLt::Algorithm> ask(const Layouts& layouts) const {
    CublasLt::Preference made = nullptr;
    expect(library_.cublasLtMatmulPreferenceCreate(&made), "a preference");
    const Preference preference(made);
    const auto set = [&](int attribute, const auto& value) {
      expect(library_.cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value),
             "a preference");
    };
    set(preference_workspace, Gpu::workspace_bytes);
    set(preference_reduction, in_compute_type);
    for (int k = 0; k < 4; ++k) set(preference_alignment + k, told_alignment());
    CublasLt::Choice found = {};
    int count = 0;
    const auto [b, a, c] = pointers(layouts);
    const int result = library_.cublasLtMatmulAlgoGetHeuristic(handle_, description_.get(), b, a, c,
                                                               c, made, 1, &found, &count);
    if (result != not_supported) expect(result, "choosing an algorithm");
    if (result != 0 || count == 0 || found.state != 0) return std::nullopt;
    return found.algorithm;
  }

  /// Whether an algorithm that was chosen for other layouts computes these.
  [[nodiscard]] bool runs_here(const CublasLt::Algorithm& algorithm) const {
    CublasLt::Choice found = {};
    const auto [b, a, c] = pointers(layouts_);
    const int result = library_.cublasLtMatmulAlgoCheck(handle_, description_.get(), b, a, c, c,
                                                        &algorithm, &found);
    const bool is_answer =
        result == invalid_value || result == arch_mismatch || result == not_supported;
    if (!is_answer) expect(result, "checking an algorithm");
    return result == 0 && found.state == 0 && found.workspace_bytes <= Gpu::workspace_bytes;
  }

  [[nodiscard]] bool run(const Buffers& at) const override {
    const Entered entered = gpu_.enter();
    const auto size = static_cast<int64_t>(size_of(dtype()));
    Dims index = Dims::filled(static_cast<int>(outer_.size()), 0);
    for (;;) {
      Buffers matrices = at;
      for (std::size_t k = 0; k < matrices.size(); ++k) {
        int64_t offset = 0;
        for (std::size_t i = 0; i < outer_.size(); ++i)
          offset += index[static_cast<int>(i)] * outer_[i].strides[k];
        matrices[k] = static_cast<std::byte*>(at[k]) + offset * size;
      }
      multiply(matrices);
      auto axis = static_cast<int>(outer_.size());
      while (axis > 0 && ++index[axis - 1] == outer_[static_cast<std::size_t>(axis - 1)].size)
        index[--axis] = 0;
      if (axis == 0) return true;
    }
  }

  void multiply(const Buffers& at) const {
    void* const workspace = gpu_.workspace();
    const auto multiply = [&](Driver::Stream stream) {
      const auto [b, a, c] = pointers(layouts_);
      return library_.cublasLtMatmul(handle_, description_.get(), one(), at[1], b, at[0], a, zero(),
                                     at[2], c, at[2], c, &*chosen_, workspace, Gpu::workspace_bytes,
                                     stream);
    };
    expect(gpu_.launch(multiply, at, label_), "a product");
  }

  [[nodiscard]] static std::array<CublasLt::Layout, 3> pointers(const Layouts& layouts) {
    return {layouts[0].get(), layouts[1].get(), layouts[2].get()};
  }

  const CublasLt& library_ = cublas_lt();
  CublasLt::Handle handle_ = nullptr;
  std::shared_ptr<const std::string> label_;
  std::vector<Batch> outer_;
  Batch inner_ = {1, {0, 0, 0}};
  Description description_;
  Layouts layouts_, usual_;
  std::optional<CublasLt::Algorithm> chosen_;
};

}  // namespace

std::unique_ptr<Executable> make_product(Gpu& gpu, const LibraryCall& call) {
  if (call.kind != LibraryCall::Kind::matmul || !has_cublas_lt()) return nullptr;
  for (const OperandLayout& operand : call.operands) {
    if (!number_of(operand.dtype, cuda_types) || operand.dtype != call.operands[2].dtype)
      return nullptr;
    if (element_count(operand.shape) == 0) return nullptr;
  }
  const Entered entered = gpu.enter();
  auto product = std::make_unique<Product>(gpu, call);
  if (!product->plan()) return nullptr;
  return product;
}

}  // namespace nitinol::cuda
