// oneDNN's matrix products and convolutions, without its types.
#pragma once

#include "core/dtype.h"
#include "core/library.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

namespace nitinol::cpu {

/// The product of batches of matrices, as oneDNN is told of it: per operand (a, b, c) sizes and
/// strides of all dimensions. A batch dimension of size 1 repeats.
struct MatmulDescription {
  DType dtype = f32;  ///< f32 or bf16
  std::array<std::vector<int64_t>, 3> sizes;
  std::array<std::vector<int64_t>, 3> strides;
  int threads = 1;
};

/// How oneDNN can be asked for a product.
enum class MatmulWay : uint8_t {
  primitive,  ///< its primitive, which takes operands as they lie
  gemm,       ///< dnnl_sgemm: f32, two dimensions, the columns of c contiguous
};

/// A convolution or one of its gradients, as its LibraryCall has it but for layouts: all operands
/// are row-major.
struct ConvolutionDescription {
  LibraryCall::Kind kind = LibraryCall::Kind::conv2d;
  DType dtype = f32;   ///< f32 or, where has_bf16_units(), bf16
  Shape x, weight, y;  ///< [n, h, w, c], [o, c / groups, kh, kw], [n, oh, ow, o]
  Windows windows;
  int threads = 1;
};

/// A call of oneDNN with all it needs to run from several threads at once.
class OneDnnCall {
 public:
  virtual ~OneDnnCall() = default;
  virtual void run(std::initializer_list<const void*> inputs, void* result) const = 0;
  /// Bytes that it holds, scratch included; estimated.
  [[nodiscard]] virtual std::size_t bytes() const = 0;
};

/// A product that takes b in the layout that oneDNN's primitive likes best.
struct PackedMatmul {
  std::unique_ptr<OneDnnCall> packing;  ///< b as it lies -> b in that layout, 64-byte aligned
  std::unique_ptr<OneDnnCall> product;  ///< a, b in that layout -> c
  std::size_t packed_bytes = 0;
};

/// A convolution that takes its weight in the layout that oneDNN's primitive likes best.
struct PackedConvolution {
  std::unique_ptr<OneDnnCall> packing;  ///< the weight, row-major -> in that layout
  std::unique_ptr<OneDnnCall> convolution;
  std::size_t packed_bytes = 0;
};

/// Whether the instruction set in use multiplies bf16. Others would compute it from f32, slower
/// than f32 itself.
[[nodiscard]] bool has_bf16_units();

/// Null if oneDNN has no fast code for this on the instruction set in use. Throws Error(internal)
/// with its text.
[[nodiscard]] std::unique_ptr<OneDnnCall> make_onednn_matmul(const MatmulDescription& description,
                                                             MatmulWay way);
[[nodiscard]] std::optional<PackedMatmul> make_onednn_packed_matmul(
    const MatmulDescription& description);
[[nodiscard]] std::unique_ptr<OneDnnCall> make_onednn_convolution(
    const ConvolutionDescription& description);
/// The same code as of make_onednn_convolution() for this conv2d, or nothing if that takes the
/// weight as it lies.
[[nodiscard]] std::optional<PackedConvolution> make_onednn_packed_convolution(
    const ConvolutionDescription& description);

}  // namespace nitinol::cpu
