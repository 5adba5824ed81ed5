// cuDNN is asked with channels last in images and filters, which is how images are laid out here
// and what its kernels of tensor cores take; for f32 and f64, which multiply without them, with
// channels first, where its other kernels are at home (on an H100 a layer in f32 took 1,526 us with
// channels last and takes 552, copies and all). Each with the other order where there is no way.
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
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

namespace nitinol::cuda {
namespace {

using Kind = LibraryCall::Kind;
using Choice = Cudnn::Choice;

// Of cudnn_graph.h and cudnn_ops.h.
constexpr TypeNumbers cudnn_types = {.f32 = 0, .f64 = 1, .f16 = 2, .bf16 = 9};
enum Format : uint8_t { channels_first, channels_last };  // cudnnTensorFormat_t
constexpr int is_correlation = 1, is_deterministic = 1;
constexpr int math_of_tensor_cores = 1, math_of_fma = 3;

/// Algorithms that add up the products of the definition, in an order of theirs that is always the
/// same. Transforms (FFT, Winograd) have larger errors.
constexpr std::array forward_algorithms = {0, 1, 2};
constexpr std::array backward_algorithms = {1};
constexpr int most_choices = 10;

/// Whether a status says that cuDNN does not do this (not supported, bad parameters), rather than
/// that something is broken.
bool is_refusal(int status) {
  constexpr int first = 2000, last = 3999;
  return status >= first && status <= last;
}

using Images = Owned<Cudnn::Images, &cudnn, &Cudnn::cudnnDestroyTensorDescriptor>;
using Filters = Owned<Cudnn::Filters, &cudnn, &Cudnn::cudnnDestroyFilterDescriptor>;
using Description = Owned<Cudnn::Convolution, &cudnn, &Cudnn::cudnnDestroyConvolutionDescriptor>;

/// To be used while Gpu::order() is held: it is not for several threads.
struct Handle {
  Cudnn::Handle handle = nullptr;   ///< null if cuDNN cannot be used
  Driver::Stream stream = nullptr;  ///< where it puts its work

  /// Puts its work there from now on; what cuDNN says of it.
  int use(Driver::Stream other) {
    if (other == stream) return 0;
    const int status = cudnn().cudnnSetStream(handle, other);
    if (status == 0) stream = other;
    return status;
  }
};

/// If there is none, that is said once: cuDNN may be there and miss a part of itself.
Handle& handle_of(Gpu& gpu) {
  static ForkSafeMutex mutex;
  static auto& all = *new std::map<const Gpu*, Handle>;
  const Entered entered = gpu.enter();
  const std::lock_guard lock(mutex);
  if (const auto found = all.find(&gpu); found != all.end()) return found->second;
  Handle& made = all[&gpu];
  Cudnn::Handle handle = nullptr;
  int status = cudnn().cudnnCreate(&handle);
  made.handle = handle;
  if (status == 0) status = made.use(gpu.stream());
  if (status != 0) {
    log(LogLevel::warning,
        fmt::format("cuDNN cannot be used, so convolutions on cuda:{} are slower: {} (status {})",
                    gpu.number(), cudnn().cudnnGetErrorString(status), status));
    if (handle != nullptr) cudnn().cudnnDestroy(handle);
    made.handle = nullptr;
  }
  return made;
}

/// Of images [n, h, w, c] and filters [o, c, kh, kw], without gaps.
Strides image_strides(const Shape& s, Format format) {
  if (format == channels_last) return strides_of(s);
  return {s[1] * s[2] * s[3], s[2], 1, s[1] * s[2]};
}
Strides filter_strides(const Shape& s, Format format) {
  if (format == channels_first) return strides_of(s);
  return {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
}

/// The images, the filter and the windows of a call, as cuDNN is told of them.
class Convolution final : public VendorCall {
 public:
  Convolution(Gpu& gpu, const LibraryCall& call, Handle& handle)
      : VendorCall(gpu, call, "cuDNN", "conv2d"),
        used_(handle),
        handle_(handle.handle),
        label_(std::make_shared<const std::string>(name_of(call.kind))) {}

  /// Finds an algorithm; false if there is none for this call.
  bool plan() {
    const std::lock_guard order(gpu_.order());
    const Format usual = size_of(x().dtype) >= 4 ? channels_first : channels_last;
    return plan(usual) || plan(usual == channels_last ? channels_first : channels_last);
  }

 private:
  [[nodiscard]] const OperandLayout& x() const { return given().operands[place_of_x()]; }
  [[nodiscard]] const OperandLayout& weight() const { return given().operands[place_of_weight()]; }
  [[nodiscard]] const OperandLayout& y() const { return given().operands[place_of_y()]; }
  [[nodiscard]] std::size_t place_of_x() const { return kind() == Kind::conv2d_input ? 2 : 0; }
  [[nodiscard]] std::size_t place_of_weight() const {
    return kind() == Kind::conv2d_weight ? 2 : 1;
  }
  [[nodiscard]] std::size_t place_of_y() const { return 3 - place_of_x() - place_of_weight(); }
  [[nodiscard]] Kind kind() const { return given().kind; }

  bool plan(Format format) {
    format_ = format;
    give(place_of_x(), image_strides(x().shape, format));
    give(place_of_y(), image_strides(y().shape, format));
    give(place_of_weight(), filter_strides(weight().shape, format));
    if (!describe_all()) return false;
    std::array<Choice, most_choices> choices = {};
    int count = 0;
    if (!accepts(choose(choices, &count), "choosing an algorithm")) return false;
    for (const Choice& choice : std::span(choices).first(static_cast<std::size_t>(count))) {
      if (!is_wanted(choice)) continue;
      if (!accepts(workspace_of(choice.algorithm, &workspace_bytes_), "asking for a workspace"))
        continue;
      if (workspace_bytes_ > Gpu::workspace_bytes) continue;
      algorithm_ = choice.algorithm;
      return true;
    }
    return false;
  }

  [[nodiscard]] std::string algorithm() const override {
    return fmt::format("algorithm {}, channels {}", algorithm_,
                       format_ == channels_last ? "last" : "first");
  }

  /// False for what cuDNN refuses.
  bool accepts(int status, const char* what) const {
    if (is_refusal(status)) return false;
    expect_done(status, what);
    return true;
  }

  void expect_done(int status, const char* what) const {
    expect(status, what, status == 0 ? "" : library_.cudnnGetErrorString(status));
  }

  bool describe_all() {
    Cudnn::Images images = nullptr;
    expect_done(library_.cudnnCreateTensorDescriptor(&images), "describing images");
    x_.reset(images);
    expect_done(library_.cudnnCreateTensorDescriptor(&images), "describing images");
    y_.reset(images);
    Cudnn::Filters filters = nullptr;
    expect_done(library_.cudnnCreateFilterDescriptor(&filters), "describing a filter");
    weight_.reset(filters);
    Cudnn::Convolution convolution = nullptr;
    expect_done(library_.cudnnCreateConvolutionDescriptor(&convolution),
                "describing a convolution");
    convolution_.reset(convolution);
    return describe(x_.get(), x()) && describe(y_.get(), y()) && describe_weight() &&
           describe_windows();
  }

  bool describe(Cudnn::Images images, const OperandLayout& operand) const {
    const auto size = [&](int axis) { return static_cast<int>(operand.shape[axis]); };
    const auto stride = [&](int axis) { return static_cast<int>(operand.strides[axis]); };
    return accepts(library_.cudnnSetTensor4dDescriptorEx(
                       images, *number_of(operand.dtype, cudnn_types), size(0), size(3), size(1),
                       size(2), stride(0), stride(3), stride(1), stride(2)),
                   "describing images");
  }

  [[nodiscard]] bool describe_weight() const {
    const auto size = [&](int axis) { return static_cast<int>(weight().shape[axis]); };
    return accepts(
        library_.cudnnSetFilter4dDescriptor(weight_.get(), *number_of(weight().dtype, cudnn_types),
                                            format_, size(0), size(1), size(2), size(3)),
        "describing a filter");
  }

  [[nodiscard]] bool describe_windows() const {
    const Windows& w = given().windows;
    const auto number = [](int64_t value) { return static_cast<int>(value); };
    const auto convolution = convolution_.get();
    // f32 means f32: without tensor cores, which would round to TF32.
    const bool is_short = size_of(x().dtype) == 2;
    return accepts(library_.cudnnSetConvolution2dDescriptor(
                       convolution, number(w.padding[0]), number(w.padding[1]), number(w.stride[0]),
                       number(w.stride[1]), number(w.dilation[0]), number(w.dilation[1]),
                       is_correlation, x().dtype == f64 ? cudnn_types.f64 : cudnn_types.f32),
                   "describing windows") &&
           accepts(library_.cudnnSetConvolutionGroupCount(convolution, number(w.groups)),
                   "describing groups") &&
           accepts(library_.cudnnSetConvolutionMathType(
                       convolution, is_short ? math_of_tensor_cores : math_of_fma),
                   "choosing instructions");
  }

  int choose(std::span<Choice> choices, int* count) const {
    const auto w = weight_.get();
    const auto x = x_.get(), y = y_.get();
    const auto convolution = convolution_.get();
    const auto most = static_cast<int>(choices.size());
    switch (kind()) {
      case Kind::conv2d:
        return library_.cudnnGetConvolutionForwardAlgorithm_v7(handle_, x, w, convolution, y, most,
                                                               count, choices.data());
      case Kind::conv2d_input:
        return library_.cudnnGetConvolutionBackwardDataAlgorithm_v7(handle_, w, y, convolution, x,
                                                                    most, count, choices.data());
      default:
        return library_.cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle_, x, y, convolution, w,
                                                                      most, count, choices.data());
    }
  }

  [[nodiscard]] bool is_wanted(const Choice& choice) const {
    const auto is_in = [&](const auto& list) {
      return std::ranges::find(list, choice.algorithm) != list.end();
    };
    return choice.status == 0 && choice.determinism == is_deterministic &&
           (kind() == Kind::conv2d ? is_in(forward_algorithms) : is_in(backward_algorithms));
  }

  int workspace_of(int algorithm, std::size_t* bytes) const {
    const auto w = weight_.get();
    const auto x = x_.get(), y = y_.get();
    const auto convolution = convolution_.get();
    switch (kind()) {
      case Kind::conv2d:
        return library_.cudnnGetConvolutionForwardWorkspaceSize(handle_, x, w, convolution, y,
                                                                algorithm, bytes);
      case Kind::conv2d_input:
        return library_.cudnnGetConvolutionBackwardDataWorkspaceSize(handle_, w, y, convolution, x,
                                                                     algorithm, bytes);
      default:
        return library_.cudnnGetConvolutionBackwardFilterWorkspaceSize(handle_, x, y, convolution,
                                                                       w, algorithm, bytes);
    }
  }

  [[nodiscard]] bool run(const Buffers& at) const override {
    const auto w = weight_.get();
    const auto x = x_.get(), y = y_.get();
    const auto convolution = convolution_.get();
    const Entered entered = gpu_.enter();
    void* const workspace = gpu_.workspace();
    const auto convolve = [&](Driver::Stream stream) {
      if (const int status = used_.use(stream); status != 0) return status;
      switch (kind()) {
        case Kind::conv2d:
          return library_.cudnnConvolutionForward(handle_, one(), x, at[0], w, at[1], convolution,
                                                  algorithm_, workspace, workspace_bytes_, zero(),
                                                  y, at[2]);
        case Kind::conv2d_input:
          return library_.cudnnConvolutionBackwardData(handle_, one(), w, at[1], y, at[0],
                                                       convolution, algorithm_, workspace,
                                                       workspace_bytes_, zero(), x, at[2]);
        default:
          return library_.cudnnConvolutionBackwardFilter(handle_, one(), x, at[0], y, at[1],
                                                         convolution, algorithm_, workspace,
                                                         workspace_bytes_, zero(), w, at[2]);
      }
    };
    return accepts(gpu_.launch(convolve, at, label_), "a convolution");
  }

  const Cudnn& library_ = cudnn();
  Handle& used_;
  const Cudnn::Handle handle_;
  const std::shared_ptr<const std::string> label_;
  Images x_, y_;
  Filters weight_;
  Description convolution_;
  Format format_ = channels_last;
  int algorithm_ = 0;
  std::size_t workspace_bytes_ = 0;
};

/// Whether cuDNN can count what an operand has: there is something, and no more than an int holds.
bool fits(const Shape& shape) {
  const int64_t count = element_count(shape);
  return count > 0 && count <= std::numeric_limits<int>::max();
}

}  // namespace

std::unique_ptr<Executable> make_convolution(Gpu& gpu, const LibraryCall& call) {
  if (call.kind != Kind::conv2d && call.kind != Kind::conv2d_input &&
      call.kind != Kind::conv2d_weight)
    return nullptr;
  for (const OperandLayout& operand : call.operands) {
    if (!number_of(operand.dtype, cudnn_types) || operand.dtype != call.operands[2].dtype ||
        !fits(operand.shape))
      return nullptr;
  }
  if (!has_cudnn()) return nullptr;
  const Entered entered = gpu.enter();
  Handle& handle = handle_of(gpu);
  if (handle.handle == nullptr) return nullptr;
  auto convolution = std::make_unique<Convolution>(gpu, call, handle);
  if (convolution->plan()) return convolution;
  log(LogLevel::info,
      fmt::format("cuDNN has no way that is wanted for a {}; a kernel of our own runs it",
                  name_of(call.kind)));
  return nullptr;
}

}  // namespace nitinol::cuda
