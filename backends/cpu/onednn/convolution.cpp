#include "backends/cpu/onednn/convolution.h"

#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/onednn/trial.h"
#include "backends/host/allocator.h"
#include "backends/host/convert.h"
#include "backends/host/split.h"
#include "core/error.h"
#include "core/executables.h"
#include "core/kernel.h"
#include "core/parallel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

namespace nitinol::cpu {
namespace {

/// Converts and copies between an operand as it lies and a row-major one, line by line: of its last
/// axis, or of the last two where they are one loop. A copy that only moves counts the same lines.
class Lines {
 public:
  explicit Lines(const OperandLayout& operand)
      : shape_(operand.shape),
        strides_(operand.strides),
        is_joined_(shape_[3] == 1 || strides_[2] == shape_[3] * strides_[3]) {}

  [[nodiscard]] int64_t length() const { return is_joined_ ? shape_[2] * shape_[3] : shape_[3]; }
  [[nodiscard]] int64_t stride() const { return shape_[3] == 1 ? strides_[2] : strides_[3]; }

  void for_each(int threads, FunctionRef<void(int64_t line, int64_t offset)> f) const {
    const int64_t in_row = is_joined_ ? 1 : shape_[2];
    const int64_t lines = shape_[0] * shape_[1] * in_row;
    host::split(lines, std::max<int64_t>(16384 / length(), 1), threads,
                [&](int64_t first, int64_t last) {
                  for (int64_t line = first; line < last; ++line) {
                    const int64_t k = line % in_row, j = line / in_row % shape_[1];
                    const int64_t i = line / in_row / shape_[1];
                    f(line, i * strides_[0] + j * strides_[1] + k * strides_[2]);
                  }
                });
  }

 private:
  const Shape& shape_;
  const Strides& strides_;
  const bool is_joined_;
};

class Convolution;

/// What convolves by oneDNN.
class Convolving : public Executable {
 public:
  [[nodiscard]] virtual const Convolution& by_onednn() const = 0;
};

class Convolution final : public Convolving {
 public:
  /// The primitive takes `dtype`: the operands' or f32. With a packing it takes the weight as that
  /// has written it.
  Convolution(const LibraryCall& call, DType dtype, PackedConvolution primitive)
      : operands_(call.operands),
        threads_(call.threads),
        dtype_(dtype),
        packing_(std::move(primitive.packing)),
        primitive_(std::move(primitive.convolution)),
        packed_bytes_(primitive.packed_bytes) {}

  [[nodiscard]] const Convolution& by_onednn() const override { return *this; }
  [[nodiscard]] std::size_t packed_bytes() const { return packed_bytes_; }
  [[nodiscard]] std::size_t bytes() const override {
    return primitive_->bytes() + (packing_ ? packing_->bytes() : 0);
  }
  void launch(const Launch& launch) const override {
    std::array<StorageHandle, 3> copies;
    std::array<void*, 3> data = {};
    for (std::size_t k = 0; k < 3; ++k) {
      data[k] = launch.buffers[k];
      if (is_usable(operands_[k]) || (k == 1 && packing_)) continue;
      copies[k] = copy_of(operands_[k]);
      data[k] = copies[k]->data;
      if (k < 2) pack(operands_[k], launch.buffers[k], static_cast<char*>(data[k]));
    }
    primitive_->run({data[0], data[1]}, data[2]);
    if (!is_usable(operands_[2]))
      unpack(operands_[2], static_cast<const char*>(data[2]), launch.buffers[2]);
  }

  /// The weight as it lies -> as the primitive takes it.
  void pack_filter(const void* weight, void* packed) const {
    StorageHandle copy;
    if (!is_usable(operands_[1])) {
      copy = copy_of(operands_[1]);
      pack(operands_[1], weight, static_cast<char*>(copy->data));
      weight = copy->data;
    }
    packing_->run({weight}, packed);
  }

 private:
  [[nodiscard]] StorageHandle copy_of(const OperandLayout& operand) const {
    return host::allocate(static_cast<std::size_t>(element_count(operand.shape)) * size_of(dtype_));
  }
  [[nodiscard]] bool is_usable(const OperandLayout& operand) const {
    return operand.dtype == dtype_ && is_contiguous(operand.shape, operand.strides);
  }
  /// What lines are copied as: a copy that does not convert moves raw elements.
  [[nodiscard]] DType copied(const OperandLayout& operand) const {
    return operand.dtype == dtype_ && !host::is_direct(dtype_) ? i16 : operand.dtype;
  }

  void pack(const OperandLayout& operand, const void* from, char* to) const {
    const host::Gather gather = host::gather_of(copied(operand));
    const auto used = static_cast<int64_t>(size_of(dtype_));
    const auto size = static_cast<int64_t>(size_of(operand.dtype));
    const Lines lines(operand);
    const int64_t length = lines.length();
    lines.for_each(threads_, [&](int64_t line, int64_t offset) {
      gather(static_cast<const char*>(from) + offset * size, lines.stride() * size,
             to + line * length * used, length);
    });
  }

  void unpack(const OperandLayout& operand, const char* from, void* to) const {
    const host::Scatter scatter = host::scatter_of(copied(operand));
    const auto used = static_cast<int64_t>(size_of(dtype_));
    const auto size = static_cast<int64_t>(size_of(operand.dtype));
    const Lines lines(operand);
    const int64_t length = lines.length();
    lines.for_each(threads_, [&](int64_t line, int64_t offset) {
      scatter(from + line * length * used, static_cast<char*>(to) + offset * size,
              lines.stride() * size, length);
    });
  }

  const std::vector<OperandLayout> operands_;
  const int threads_;
  const DType dtype_;
  const std::unique_ptr<OneDnnCall> packing_, primitive_;
  const std::size_t packed_bytes_;
};

bool is_forward(const LibraryCall& call) {
  return call.kind == LibraryCall::Kind::conv2d || call.kind == LibraryCall::Kind::packed_conv2d;
}

/// Which operands are the image and the result of its convolution.
std::size_t image_of(const LibraryCall& call) {
  return call.kind == LibraryCall::Kind::conv2d_input ? 2 : 0;
}
std::size_t result_of(const LibraryCall& call) {
  if (call.kind == LibraryCall::Kind::conv2d_input) return 0;
  return call.kind == LibraryCall::Kind::conv2d_weight ? 1 : 2;
}

/// Null if there is none.
std::unique_ptr<Convolution> convolution_in(DType dtype, const LibraryCall& call) {
  const bool is_weight = call.kind == LibraryCall::Kind::conv2d_weight;
  const ConvolutionDescription description = {
      .kind = is_forward(call) ? LibraryCall::Kind::conv2d : call.kind,
      .dtype = dtype,
      .x = call.operands[image_of(call)].shape,
      .weight = call.operands[is_weight ? 2 : 1].shape,
      .y = call.operands[result_of(call)].shape,
      .windows = call.windows,
      .threads = call.threads};
  PackedConvolution made;
  if (call.kind == LibraryCall::Kind::packed_conv2d) {
    if (auto packed = make_onednn_packed_convolution(description)) made = std::move(*packed);
  } else {
    made.convolution = make_onednn_convolution(description);
  }
  if (made.convolution == nullptr) return nullptr;
  return std::make_unique<Convolution>(call, dtype, std::move(made));
}

/// The convolution by oneDNN, in its own dtype or else in f32; null if it has none.
std::unique_ptr<Convolution> convolution_for(const LibraryCall& call) {
  const DType dtype = call.operands[0].dtype;
  if (dtype == bf16 && has_bf16_units()) {
    if (auto convolution = convolution_in(bf16, call)) return convolution;
  }
  if (dtype != f32 && dtype != f16 && dtype != bf16) return nullptr;
  return convolution_in(f32, call);
}

bool is_part(const LibraryCall& call) {
  if (!is_forward(call)) return false;
  const Shape &x = call.operands[0].shape, &y = call.operands[2].shape;
  return y[1] != call.windows.count(0, x[1]) || y[2] != call.windows.count(1, x[2]);
}

LibraryCall whole_of(LibraryCall part) {
  part.kind = LibraryCall::Kind::conv2d;
  const Shape& x = part.operands[0].shape;
  OperandLayout& y = part.operands[2];
  y.shape[1] = part.windows.count(0, x[1]);
  y.shape[2] = part.windows.count(1, x[2]);
  y.strides = strides_of(y.shape);
  return part;
}

/// The same with no more of x than its windows reach: oneDNN leaves no pixels out.
LibraryCall without_rest(LibraryCall part) {
  Shape& x = part.operands[image_of(part)].shape;
  for (const int axis : {0, 1}) {
    const int64_t reach = part.windows.reach(axis, part.operands[result_of(part)].shape[axis + 1]);
    x[axis + 1] = std::min(x[axis + 1], reach);
  }
  return part;
}

/// The same for windows of one pixel, which see every so manieth pixel: as if no others were there.
LibraryCall without_pixels_between(LibraryCall call) {
  OperandLayout& x = call.operands[image_of(call)];
  for (const int axis : {0, 1}) {
    int64_t& step = call.windows.stride[static_cast<std::size_t>(axis)];
    x.shape[axis + 1] = call.operands[result_of(call)].shape[axis + 1];
    x.strides[axis + 1] *= step;
    step = 1;
  }
  return call;
}

/// A convolution, or a gradient, for which oneDNN has nothing fast as it is: some pixels are in no
/// window. The image without them is packed, or what is computed is unpacked into one of zeros.
class WithoutUnseen final : public Convolving {
 public:
  WithoutUnseen(const LibraryCall& call, std::unique_ptr<Convolution> seen)
      : seen_(std::move(seen)) {
    if (call.kind != LibraryCall::Kind::conv2d_input) return;
    const OperandLayout& image = call.operands[2];
    zeros_ = static_cast<std::size_t>(element_count(image.shape)) * size_of(image.dtype);
  }

  [[nodiscard]] const Convolution& by_onednn() const override { return *seen_; }
  [[nodiscard]] std::size_t bytes() const override { return seen_->bytes(); }
  void launch(const Launch& launch) const override {
    if (zeros_ > 0) std::memset(launch.buffers[2], 0, zeros_);
    seen_->launch(launch);
  }

 private:
  const std::unique_ptr<const Convolution> seen_;
  std::size_t zeros_ = 0;
};

/// Null where all pixels are in windows, or nothing fast is there for the others either.
std::unique_ptr<Convolving> make_without_unseen(const LibraryCall& call) {
  using Pair = std::array<int64_t, 2>;
  const bool is_of_pixels =
      call.windows.kernel == Pair{1, 1} && call.windows.padding == Pair{0, 0} && !is_part(call);
  if (!is_of_pixels && is_forward(call)) return nullptr;
  const LibraryCall seen = is_of_pixels ? without_pixels_between(call) : without_rest(call);
  const OperandLayout& image = call.operands[image_of(call)];
  if (seen.operands[image_of(call)].shape == image.shape) return nullptr;
  const bool fills = call.kind == LibraryCall::Kind::conv2d_input;
  if (fills && !is_contiguous(image.shape, image.strides)) return nullptr;
  auto convolution = convolution_for(seen);
  if (convolution == nullptr) return nullptr;
  return std::make_unique<WithoutUnseen>(call, std::move(convolution));
}

/// The first rows and columns of a convolution.
class PartOfConvolution final : public Convolving {
 public:
  PartOfConvolution(const LibraryCall& call, std::unique_ptr<Convolution> part)
      : call_(call), part_(std::move(part)) {}

  [[nodiscard]] const Convolution& by_onednn() const override { return *part_; }
  [[nodiscard]] std::size_t bytes() const override { return part_->bytes(); }
  void launch(const Launch& launch) const override { part_->launch(launch); }

  /// Whether they have the bits of the whole one, which is what eager runs: a trial tells
  /// (trial.h).
  [[nodiscard]] bool has_bits_of_whole() const {
    std::call_once(once_, [&] { has_bits_of_whole_ = try_both(); });
    return has_bits_of_whole_;
  }

 private:
  [[nodiscard]] bool try_both() const {
    const LibraryCall whole = whole_of(call_);
    const auto elements = [](const OperandLayout& operand) {
      return static_cast<std::size_t>(element_count(operand.shape));
    };
    const StorageHandle x = trial_numbers(elements(whole.operands[0]), 1),
                        weight = trial_numbers(elements(whole.operands[1]), 2),
                        y = host::allocate(elements(whole.operands[2]) * sizeof(float)),
                        y_of_part = host::allocate(elements(call_.operands[2]) * sizeof(float));
    std::array<void*, 3> buffers = {x->data, weight->data, y->data};
    Launch launch;
    launch.buffers = buffers;
    launch.threads = call_.threads;
    executable_for(backend(Device{}), whole)->launch(launch);
    buffers[2] = y_of_part->data;
    part_->launch(launch);
    return are_equal(static_cast<const float*>(y->data), whole.operands[2].shape,
                     static_cast<const float*>(y_of_part->data), call_.operands[2].shape);
  }

  static bool are_equal(const float* whole, const Shape& shape, const float* part,
                        const Shape& part_shape) {
    const int64_t row = part_shape[2] * part_shape[3];
    for (int64_t n = 0; n < part_shape[0]; ++n) {
      for (int64_t i = 0; i < part_shape[1]; ++i, part += row) {
        const float* const expected = whole + (n * shape[1] + i) * shape[2] * shape[3];
        if (std::memcmp(part, expected, static_cast<std::size_t>(row) * sizeof(float)) != 0)
          return false;
      }
    }
    return true;
  }

  const LibraryCall call_;
  const std::unique_ptr<const Convolution> part_;
  mutable std::once_flag once_;
  mutable bool has_bits_of_whole_ = false;
};

std::unique_ptr<Convolving> make_by_onednn(LibraryCall call) {
  if (call.threads <= 0) call.threads = num_threads();
  const bool is_whole = !is_part(call);
  auto convolution = convolution_for(is_whole ? call : without_rest(call));
  if (convolution == nullptr) return make_without_unseen(call);
  if (is_whole) return convolution;
  return std::make_unique<PartOfConvolution>(call, std::move(convolution));
}

/// The weight, and the memory that it is packed into.
class FilterPacking final : public Executable {
 public:
  explicit FilterPacking(std::shared_ptr<const Executable> convolution)
      : convolution_(std::move(convolution)),
        by_onednn_(dynamic_cast<const Convolving&>(*convolution_).by_onednn()) {}
  void launch(const Launch& launch) const override {
    by_onednn_.pack_filter(launch.buffers[0], launch.buffers[1]);
  }
  [[nodiscard]] std::size_t packed_bytes() const { return by_onednn_.packed_bytes(); }

 private:
  const std::shared_ptr<const Executable> convolution_;
  const Convolution& by_onednn_;
};

FilterPacking filter_packing_of(LibraryCall call) {
  call.kind = LibraryCall::Kind::packed_conv2d;
  return FilterPacking(executable_for(backend(Device{}), call));
}

}  // namespace

std::size_t packed_filter_bytes(const LibraryCall& call, std::size_t uses) {
  if (uses < 2) return 0;
  try {
    return filter_packing_of(call).packed_bytes();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return 0;
  }
}

std::unique_ptr<Executable> make_filter_packing(const LibraryCall& call) {
  return std::make_unique<FilterPacking>(filter_packing_of(call));
}

std::unique_ptr<Executable> make_packed_convolution(const LibraryCall& call) {
  if (auto made = make_by_onednn(call)) return made;
  throw Error(ErrorKind::unsupported,
              {.where = "conv2d", .what = "oneDNN has no layout of its own for the weight"});
}

bool gives_bits_of_whole(const LibraryCall& part) {
  const bool is_usable = std::ranges::all_of(part.operands, [](const OperandLayout& operand) {
    return operand.dtype == f32 && is_contiguous(operand.shape, operand.strides);
  });
  if (!is_usable || !is_part(part)) return false;
  const auto executable = executable_for(backend(Device{}), part);
  const auto* const made = dynamic_cast<const PartOfConvolution*>(executable.get());
  return made != nullptr && made->has_bits_of_whole();
}

std::unique_ptr<Executable> make_convolution(const LibraryCall& call) {
  return make_by_onednn(call);
}

}  // namespace nitinol::cpu
