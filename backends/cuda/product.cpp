// cuBLASLt multiplies matrices whose columns are contiguous. One of ours with contiguous rows is
// its own transpose there: c = a b is c' = b' a'.
#include "backends/cuda/executables.h"
#include "backends/cuda/gpu.h"
#include "backends/cuda/owned.h"
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
constexpr int type_f32 = 0, type_f64 = 1, type_f16 = 2, type_bf16 = 14;
constexpr int compute_f32 = 68, compute_f64 = 70;
constexpr int transposes_a = 3, transposes_b = 4;
constexpr int layout_batch_count = 5, layout_batch_stride = 6;
constexpr int preference_workspace = 1, preference_reduction = 3;
constexpr int preference_alignment = 5;  // of a; b, c and d follow
constexpr int algorithm_id = 0, algorithm_parts = 2;
constexpr int not_supported = 15;
/// Parts of a sum meet in the type they are computed in, f32 for 16 bits: the other ways add them
/// in the result's type.
constexpr uint32_t in_compute_type = 2;
/// Vectors of loads have no more bytes. What is aligned better than that is not told, so that the
/// same matrices have the same algorithm wherever they lie in a block.
constexpr uint32_t most_alignment = 16;

std::optional<int> type_of(DType dtype) {
  if (dtype == f32) return type_f32;
  if (dtype == f64) return type_f64;
  if (dtype == f16) return type_f16;
  if (dtype == bf16) return type_bf16;
  return std::nullopt;
}

/// A matrix as cuBLASLt is told of it.
struct Matrix {
  int64_t rows, columns, leading;
  bool is_transposed;  ///< of what is to be multiplied
};

/// The transpose of a matrix of ours; nothing if neither its rows nor its columns are contiguous.
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

void expect_success(const Gpu& gpu, int result, const char* what) {
  if (result == 0) return;
  gpu.expect_alive();  // a lost device says more than a library does
  throw Error(
      ErrorKind::device,
      {.where = "matmul", .what = fmt::format("cuBLASLt: {} failed with status {}", what, result)});
}

using Description = Owned<CublasLt::Description, &cublas_lt, &CublasLt::cublasLtMatmulDescDestroy>;
using Layout = Owned<CublasLt::Layout, &cublas_lt, &CublasLt::cublasLtMatrixLayoutDestroy>;
using Preference =
    Owned<CublasLt::Preference, &cublas_lt, &CublasLt::cublasLtMatmulPreferenceDestroy>;

CublasLt::Handle handle_of(Gpu& gpu) {
  static ForkSafeMutex mutex;
  static auto& all = *new std::map<const Gpu*, CublasLt::Handle>;
  const Entered entered = gpu.enter();
  const std::lock_guard lock(mutex);
  CublasLt::Handle& handle = all[&gpu];
  if (handle == nullptr)
    expect_success(gpu, cublas_lt().cublasLtCreate(&handle), "creating a handle");
  return handle;
}

class Product final : public Executable {
 public:
  Product(Gpu& gpu, const LibraryCall& call, const std::array<Matrix, 3>& matrices)
      : gpu_(gpu), call_(call), handle_(handle_of(gpu)) {
    const auto& [a, b, c] = matrices;
    const Shape& left = call.operands[0].shape;
    label_ = std::make_shared<const std::string>(fmt::format(
        "a product of {} x {} x {}", left[left.size() - 2], left[left.size() - 1], c.rows));
    plan_batches();
    const int compute = output().dtype == f64 ? compute_f64 : compute_f32;
    const int scale = output().dtype == f64 ? type_f64 : type_f32;
    CublasLt::Description made = nullptr;
    expect(library_.cublasLtMatmulDescCreate(&made, compute, scale), "describing a product");
    description_.reset(made);
    set(transposes_a, b.is_transposed);
    set(transposes_b, a.is_transposed);
    layouts_ = {layout(b, 1), layout(a, 0), layout(c, 2)};
  }

  /// False if cuBLASLt has no way for matrices that are aligned as well as can be.
  bool plan() { return choice(most_alignment).has_value(); }

  [[nodiscard]] std::string describe(std::span<const Launch> /*examples*/) const override {
    const std::optional<CublasLt::Algorithm> chosen = choice(most_alignment);
    return chosen ? describe(*chosen) : std::string{};
  }

  void launch(const Launch& launch) const override {
    const Entered entered = gpu_.enter();
    const std::optional<CublasLt::Algorithm> chosen = choice(alignment_of(launch));
    if (!chosen) return own().launch(launch);
    const std::size_t size = size_of(output().dtype);
    Dims index = Dims::filled(static_cast<int>(outer_.size()), 0);
    for (;;) {
      std::array<std::byte*, 3> at = {};
      for (std::size_t k = 0; k < 3; ++k) {
        int64_t offset = 0;
        for (std::size_t i = 0; i < outer_.size(); ++i)
          offset += index[static_cast<int>(i)] * outer_[i].strides[k];
        at[k] = static_cast<std::byte*>(launch.buffers[k]) + offset * static_cast<int64_t>(size);
      }
      multiply(at, *chosen);
      auto axis = static_cast<int>(outer_.size());
      while (axis > 0 && ++index[axis - 1] == outer_[static_cast<std::size_t>(axis - 1)].size)
        index[--axis] = 0;
      if (axis == 0) return;
    }
  }

 private:
  struct Batch {
    int64_t size;
    std::array<int64_t, 3> strides;
  };

  [[nodiscard]] const OperandLayout& output() const { return call_.operands[2]; }

  /// Batch dimensions, merged where they can be: the innermost by cuBLASLt, those around one by
  /// one.
  void plan_batches() {
    for (int axis = output().shape.size() - 3; axis >= 0; --axis) {
      Batch batch = {output().shape[axis], {}};
      for (std::size_t k = 0; k < 3; ++k) batch.strides[k] = call_.operands[k].strides[axis];
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

  /// "cuBLASLt, algorithm 21, sums in 4 parts".
  [[nodiscard]] std::string describe(const CublasLt::Algorithm& chosen) const {
    const auto setting = [&](int attribute) {
      int32_t value = 0;
      std::size_t written = 0;
      const int result = library_.cublasLtMatmulAlgoConfigGetAttribute(&chosen, attribute, &value,
                                                                       sizeof value, &written);
      return result == 0 ? value : 0;
    };
    const int parts = setting(algorithm_parts);
    return fmt::format("cuBLASLt, algorithm {}{}", setting(algorithm_id),
                       parts > 1 ? fmt::format(", sums in {} parts", parts) : "");
  }

  void expect(int result, const char* what) const { expect_success(gpu_, result, what); }

  void set(int attribute, bool is_so) const {
    const int32_t value = is_so ? 1 : 0;
    expect(library_.cublasLtMatmulDescSetAttribute(description_.get(), attribute, &value,
                                                   sizeof value),
           "describing a product");
  }

  [[nodiscard]] Layout layout(const Matrix& matrix, std::size_t k) const {
    CublasLt::Layout made = nullptr;
    expect(library_.cublasLtMatrixLayoutCreate(
               &made, *type_of(call_.operands[k].dtype), static_cast<uint64_t>(matrix.rows),
               static_cast<uint64_t>(matrix.columns), matrix.leading),
           "describing a matrix");
    Layout layout(made);
    const auto set = [&](int attribute, const auto& value) {
      expect(library_.cublasLtMatrixLayoutSetAttribute(made, attribute, &value, sizeof value),
             "describing a matrix");
    };
    set(layout_batch_count, static_cast<int32_t>(inner_.size));
    set(layout_batch_stride, inner_.strides[k]);
    return layout;
  }

  /// The bytes at a multiple of which all matrices of the launch begin.
  [[nodiscard]] uint32_t alignment_of(const Launch& launch) const {
    uintptr_t bits = most_alignment;
    for (const void* const address : launch.buffers) bits |= reinterpret_cast<uintptr_t>(address);
    for (const Batch& batch : outer_) {
      for (const int64_t stride : batch.strides)
        bits |= static_cast<uintptr_t>(stride) * size_of(output().dtype);
    }
    return static_cast<uint32_t>(bits & (0 - bits));
  }

  /// The algorithm for matrices that are aligned so, asked for once; nothing if there is none.
  [[nodiscard]] std::optional<CublasLt::Algorithm> choice(uint32_t alignment) const {
    std::optional<CublasLt::Algorithm> chosen;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = choices_.find(alignment); found != choices_.end())
        return found->second;
      chosen = ask(alignment);
      choices_.emplace(alignment, chosen);
    }
    // Without the lock: what a log's sink does is the user's.
    log(LogLevel::info,
        fmt::format("{} at multiples of {} bytes: {}", *label_, alignment,
                    chosen ? describe(*chosen)
                           : "cuBLASLt has no way, so a kernel of our own computes it"));
    return chosen;
  }

  [[nodiscard]] std::optional<CublasLt::Algorithm> ask(uint32_t alignment) const {
    CublasLt::Preference made = nullptr;
    expect(library_.cublasLtMatmulPreferenceCreate(&made), "a preference");
    const Preference preference(made);
    const auto set = [&](int attribute, const auto& value) {
      expect(library_.cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value),
             "a preference");
    };
    set(preference_workspace, Gpu::workspace_bytes);
    set(preference_reduction, in_compute_type);
    for (int k = 0; k < 4; ++k) set(preference_alignment + k, alignment);
    CublasLt::Choice found = {};
    int count = 0;
    const auto [b, a, c] = layouts();
    const int result = library_.cublasLtMatmulAlgoGetHeuristic(handle_, description_.get(), b, a, c,
                                                               c, made, 1, &found, &count);
    if (result != not_supported) expect(result, "choosing an algorithm");
    if (result != 0 || count == 0 || found.state != 0) return std::nullopt;
    return found.algorithm;
  }

  void multiply(const std::array<std::byte*, 3>& at, const CublasLt::Algorithm& chosen) const {
    const bool is_double = output().dtype == f64;
    const float one = 1, zero = 0;
    const double one_double = 1, zero_double = 0;
    const void* const alpha = is_double ? static_cast<const void*>(&one_double) : &one;
    const void* const beta = is_double ? static_cast<const void*>(&zero_double) : &zero;
    void* const workspace = gpu_.workspace();
    const std::lock_guard order(gpu_.order());
    const auto [b, a, c] = layouts();
    expect(library_.cublasLtMatmul(handle_, description_.get(), alpha, at[1], b, at[0], a, beta,
                                   at[2], c, at[2], c, &chosen, workspace, Gpu::workspace_bytes,
                                   gpu_.stream()),
           "a product");
    gpu_.note(label_);
  }

  /// For what cuBLASLt does not take.
  [[nodiscard]] const Executable& own() const {
    const std::lock_guard lock(mutex_);
    if (!own_) own_ = make_routine(gpu_, call_);
    return *own_;
  }

  /// Of b, a and c.
  [[nodiscard]] std::array<CublasLt::Layout, 3> layouts() const {
    return {layouts_[0].get(), layouts_[1].get(), layouts_[2].get()};
  }

  Gpu& gpu_;
  const LibraryCall call_;
  const CublasLt& library_ = cublas_lt();
  const CublasLt::Handle handle_;
  std::shared_ptr<const std::string> label_;
  std::vector<Batch> outer_;
  Batch inner_ = {1, {0, 0, 0}};
  Description description_;
  std::array<Layout, 3> layouts_;                                           ///< of b, a and c
  mutable ForkSafeMutex mutex_;                                             ///< of what follows
  mutable std::map<uint32_t, std::optional<CublasLt::Algorithm>> choices_;  ///< by alignment
  mutable std::unique_ptr<Executable> own_;
};

}  // namespace

std::unique_ptr<Executable> make_product(Gpu& gpu, const LibraryCall& call) {
  if (call.kind != LibraryCall::Kind::matmul || !has_cublas_lt()) return nullptr;
  for (const OperandLayout& operand : call.operands) {
    if (!type_of(operand.dtype) || operand.dtype != call.operands[2].dtype) return nullptr;
    if (element_count(operand.shape) == 0) return nullptr;
  }
  const auto a = transpose_of(call.operands[0]), b = transpose_of(call.operands[1]);
  const auto c = transpose_of(call.operands[2]);
  if (!a || !b || !c || c->is_transposed) return nullptr;
  const Entered entered = gpu.enter();
  auto product = std::make_unique<Product>(gpu, call, std::array{*a, *b, *c});
  if (!product->plan()) return nullptr;
  return product;
}

}  // namespace nitinol::cuda
