#include "backends/cpu/convolution.h"

#include "backends/cpu/allocator.h"
#include "backends/cpu/onednn.h"
#include "backends/host/convert.h"
#include "backends/host/split.h"
#include "core/parallel.h"

#include <algorithm>
#include <array>

namespace nitinol::cpu {
namespace {

/// Converts and copies between an operand as it lies and row-major f32, line by line of its last
/// axis. A copy that only moves counts the same lines.
void for_each_line(const OperandLayout& operand, int threads,
                   FunctionRef<void(int64_t line, int64_t offset)> f) {
  const Shape& shape = operand.shape;
  const int64_t lines = shape[0] * shape[1] * shape[2];
  host::split(lines, std::max<int64_t>(16384 / shape[3], 1), threads,
              [&](int64_t first, int64_t last) {
                for (int64_t line = first; line < last; ++line) {
                  const int64_t k = line % shape[2], j = line / shape[2] % shape[1];
                  const int64_t i = line / shape[2] / shape[1];
                  const Strides& s = operand.strides;
                  f(line, i * s[0] + j * s[1] + k * s[2]);
                }
              });
}

class Convolution final : public Executable {
 public:
  Convolution(const LibraryCall& call, std::unique_ptr<OneDnnCall> primitive)
      : operands_(call.operands), threads_(call.threads), primitive_(std::move(primitive)) {}

  [[nodiscard]] std::size_t bytes() const override { return primitive_->bytes(); }
  void launch(const Launch& launch) const override {
    std::array<StorageHandle, 3> copies;
    std::array<void*, 3> data = {};
    for (std::size_t k = 0; k < 3; ++k) {
      data[k] = launch.buffers[k];
      if (is_usable(operands_[k])) continue;
      const auto count = static_cast<std::size_t>(element_count(operands_[k].shape));
      copies[k] = allocate(count * sizeof(float));
      data[k] = copies[k]->data;
      if (k < 2) pack(operands_[k], launch.buffers[k], static_cast<float*>(data[k]));
    }
    primitive_->run({data[0], data[1]}, data[2]);
    if (!is_usable(operands_[2]))
      unpack(operands_[2], static_cast<const float*>(data[2]), launch.buffers[2]);
  }

 private:
  static bool is_usable(const OperandLayout& operand) {
    return operand.dtype == f32 && is_contiguous(operand.shape, operand.strides);
  }

  void pack(const OperandLayout& operand, const void* from, float* to) const {
    const host::Gather gather = host::gather_of(operand.dtype);
    const auto size = static_cast<int64_t>(size_of(operand.dtype));
    const int64_t length = operand.shape[3];
    for_each_line(operand, threads_, [&](int64_t line, int64_t offset) {
      gather(static_cast<const char*>(from) + offset * size, operand.strides[3] * size,
             to + line * length, length);
    });
  }

  void unpack(const OperandLayout& operand, const float* from, void* to) const {
    const host::Scatter scatter = host::scatter_of(operand.dtype);
    const auto size = static_cast<int64_t>(size_of(operand.dtype));
    const int64_t length = operand.shape[3];
    for_each_line(operand, threads_, [&](int64_t line, int64_t offset) {
      scatter(from + line * length, static_cast<char*>(to) + offset * size,
              operand.strides[3] * size, length);
    });
  }

  const std::vector<OperandLayout> operands_;
  const int threads_;
  const std::unique_ptr<OneDnnCall> primitive_;
};

std::unique_ptr<OneDnnCall> primitive_for(const LibraryCall& call, int threads) {
  const DType dtype = call.operands[0].dtype;
  if (dtype != f32 && dtype != f16 && dtype != bf16) return nullptr;
  const bool is_input = call.kind == LibraryCall::Kind::conv2d_input;
  const bool is_weight = call.kind == LibraryCall::Kind::conv2d_weight;
  return make_onednn_convolution({.kind = call.kind,
                                  .x = call.operands[is_input ? 2 : 0].shape,
                                  .weight = call.operands[is_weight ? 2 : 1].shape,
                                  .y = call.operands[is_input    ? 0
                                                     : is_weight ? 1
                                                                 : 2]
                                           .shape,
                                  .windows = call.windows,
                                  .threads = threads});
}

}  // namespace

std::unique_ptr<Executable> make_convolution(const LibraryCall& call) {
  LibraryCall counted = call;
  if (counted.threads <= 0) counted.threads = num_threads();
  auto primitive = primitive_for(counted, counted.threads);
  if (primitive == nullptr) return nullptr;
  return std::make_unique<Convolution>(counted, std::move(primitive));
}

}  // namespace nitinol::cpu
