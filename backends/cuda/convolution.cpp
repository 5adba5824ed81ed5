// cuDNN takes images as (n, c, h, w) with any strides, so channels last need no copy; filters only
// packed.
#include "backends/cuda/executables.h"
#include "backends/cuda/gpu.h"
#include "backends/cuda/owned.h"
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
constexpr int type_f32 = 0, type_f64 = 1, type_f16 = 2, type_bf16 = 9;
constexpr int rows_of_filters = 0, last_channels_of_filters = 1;  // cudnnTensorFormat_t
constexpr int is_correlation = 1, is_deterministic = 1;
constexpr int math_of_tensor_cores = 1, math_of_fma = 3;

/// Algorithms that add up the products of the definition, in an order of theirs that is always the
/// same. Transforms (FFT, Winograd) have larger errors.
constexpr std::array forward_algorithms = {0, 1, 2};
constexpr std::array backward_algorithms = {1};
constexpr int most_choices = 10;

std::optional<int> type_of(DType dtype) {
  if (dtype == f32) return type_f32;
  if (dtype == f64) return type_f64;
  if (dtype == f16) return type_f16;
  if (dtype == bf16) return type_bf16;
  return std::nullopt;
}

/// Whether a status says that cuDNN does not do this (not supported, bad parameters), rather than
/// that something is broken.
bool is_refusal(int status) {
  constexpr int first = 2000, last = 3999;
  return status >= first && status <= last;
}

void expect_success(const Gpu& gpu, int status, const char* what) {
  if (status == 0) return;
  gpu.expect_alive();  // a lost device says more than a library does
  throw Error(ErrorKind::device,
              {.where = "conv2d",
               .what = fmt::format("cuDNN: {} failed with status {} ({})", what, status,
                                   cudnn().cudnnGetErrorString(status))});
}

using Images = Owned<Cudnn::Images, &cudnn, &Cudnn::cudnnDestroyTensorDescriptor>;
using Filters = Owned<Cudnn::Filters, &cudnn, &Cudnn::cudnnDestroyFilterDescriptor>;
using Description = Owned<Cudnn::Convolution, &cudnn, &Cudnn::cudnnDestroyConvolutionDescriptor>;

/// To be used while Gpu::order() is held: it is not for several threads. Null if cuDNN cannot be
/// used, which is said once: it may be there and miss a part of itself.
Cudnn::Handle handle_of(Gpu& gpu) {
  static ForkSafeMutex mutex;
  static auto& all = *new std::map<const Gpu*, Cudnn::Handle>;
  const Entered entered = gpu.enter();
  const std::lock_guard lock(mutex);
  if (const auto found = all.find(&gpu); found != all.end()) return found->second;
  Cudnn::Handle handle = nullptr;
  int status = cudnn().cudnnCreate(&handle);
  if (status == 0) status = cudnn().cudnnSetStream(handle, gpu.stream());
  if (status != 0) {
    log(LogLevel::warning,
        fmt::format("cuDNN cannot be used, so convolutions on cuda:{} are slower: {} (status {})",
                    gpu.number(), cudnn().cudnnGetErrorString(status), status));
    if (handle != nullptr) cudnn().cudnnDestroy(handle);
    handle = nullptr;
  }
  return all[&gpu] = handle;
}

/// How a filter is packed; nothing if it is not.
std::optional<int> packing_of(const OperandLayout& weight) {
  const Shape& s = weight.shape;
  if (is_contiguous(s, weight.strides)) return rows_of_filters;
  const Strides& t = weight.strides;
  if (is_contiguous({s[0], s[2], s[3], s[1]}, Strides{t[0], t[2], t[3], t[1]}))
    return last_channels_of_filters;
  return std::nullopt;
}

/// The images, the filter and the windows of a call, as cuDNN is told of them.
class Convolution final : public Executable {
 public:
  Convolution(Gpu& gpu, const LibraryCall& call, Cudnn::Handle handle)
      : gpu_(gpu), call_(call), handle_(handle) {
    label_ = std::make_shared<const std::string>(name_of(call.kind));
  }

  /// Finds an algorithm; false if there is none for this call.
  bool plan() {
    const std::lock_guard order(gpu_.order());
    if (!describe()) return false;
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

  [[nodiscard]] std::string describe(std::span<const Launch> /*examples*/) const override {
    return fmt::format("cuDNN, algorithm {}", algorithm_);
  }

  void launch(const Launch& launch) const override {
    if (!is_refused_.load(std::memory_order_relaxed) && run(launch.buffers)) return;
    own().launch(launch);
  }

 private:
  [[nodiscard]] const OperandLayout& x() const {
    return call_.operands[call_.kind == Kind::conv2d_input ? 2 : 0];
  }
  [[nodiscard]] const OperandLayout& weight() const {
    return call_.operands[call_.kind == Kind::conv2d_weight ? 2 : 1];
  }
  [[nodiscard]] const OperandLayout& y() const {
    return call_.operands[call_.kind == Kind::conv2d         ? 2
                          : call_.kind == Kind::conv2d_input ? 0
                                                             : 1];
  }
  [[nodiscard]] bool is_double() const { return x().dtype == f64; }

  /// False for what cuDNN refuses.
  bool accepts(int status, const char* what) const {
    if (is_refusal(status)) return false;
    expect_success(gpu_, status, what);
    return true;
  }

  bool describe() {
    Cudnn::Images images = nullptr;
    expect_success(gpu_, library_.cudnnCreateTensorDescriptor(&images), "describing images");
    x_.reset(images);
    expect_success(gpu_, library_.cudnnCreateTensorDescriptor(&images), "describing images");
    y_.reset(images);
    Cudnn::Filters filters = nullptr;
    expect_success(gpu_, library_.cudnnCreateFilterDescriptor(&filters), "describing a filter");
    weight_.reset(filters);
    Cudnn::Convolution convolution = nullptr;
    expect_success(gpu_, library_.cudnnCreateConvolutionDescriptor(&convolution),
                   "describing a convolution");
    convolution_.reset(convolution);
    return describe(x_.get(), x()) && describe(y_.get(), y()) && describe_weight() &&
           describe_windows();
  }

  bool describe(Cudnn::Images images, const OperandLayout& operand) const {
    const auto size = [&](int axis) { return static_cast<int>(operand.shape[axis]); };
    const auto stride = [&](int axis) { return static_cast<int>(operand.strides[axis]); };
    return accepts(library_.cudnnSetTensor4dDescriptorEx(images, *type_of(operand.dtype), size(0),
                                                         size(3), size(1), size(2), stride(0),
                                                         stride(3), stride(1), stride(2)),
                   "describing images");
  }

  [[nodiscard]] bool describe_weight() const {
    const auto size = [&](int axis) { return static_cast<int>(weight().shape[axis]); };
    return accepts(library_.cudnnSetFilter4dDescriptor(weight_.get(), *type_of(weight().dtype),
                                                       *packing_of(weight()), size(0), size(1),
                                                       size(2), size(3)),
                   "describing a filter");
  }

  [[nodiscard]] bool describe_windows() const {
    const Windows& w = call_.windows;
    const auto number = [](int64_t value) { return static_cast<int>(value); };
    const auto convolution = convolution_.get();
    // f32 means f32: without tensor cores, which would round to TF32.
    const bool is_short = size_of(x().dtype) == 2;
    return accepts(library_.cudnnSetConvolution2dDescriptor(
                       convolution, number(w.padding[0]), number(w.padding[1]), number(w.stride[0]),
                       number(w.stride[1]), number(w.dilation[0]), number(w.dilation[1]),
                       is_correlation, is_double() ? type_f64 : type_f32),
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
    switch (call_.kind) {
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
           (call_.kind == Kind::conv2d ? is_in(forward_algorithms) : is_in(backward_algorithms));
  }

  int workspace_of(int algorithm, std::size_t* bytes) const {
    const auto w = weight_.get();
    const auto x = x_.get(), y = y_.get();
    const auto convolution = convolution_.get();
    switch (call_.kind) {
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

  /// False if cuDNN refuses after all.
  bool run(std::span<void* const> at) const {
    constexpr uintptr_t alignment = 16;
    const auto is_aligned = [](const void* address) {
      return reinterpret_cast<uintptr_t>(address) % alignment == 0;
    };
    if (!std::ranges::all_of(at, is_aligned)) return false;
    const float one = 1, zero = 0;
    const double one_double = 1, zero_double = 0;
    const void* const alpha = is_double() ? static_cast<const void*>(&one_double) : &one;
    const void* const beta = is_double() ? static_cast<const void*>(&zero_double) : &zero;
    const auto w = weight_.get();
    const auto x = x_.get(), y = y_.get();
    const auto convolution = convolution_.get();
    const Entered entered = gpu_.enter();
    void* const workspace = gpu_.workspace();
    const std::lock_guard order(gpu_.order());
    const auto status = [&] {
      switch (call_.kind) {
        case Kind::conv2d:
          return library_.cudnnConvolutionForward(handle_, alpha, x, at[0], w, at[1], convolution,
                                                  algorithm_, workspace, workspace_bytes_, beta, y,
                                                  at[2]);
        case Kind::conv2d_input:
          return library_.cudnnConvolutionBackwardData(handle_, alpha, w, at[1], y, at[0],
                                                       convolution, algorithm_, workspace,
                                                       workspace_bytes_, beta, x, at[2]);
        default:
          return library_.cudnnConvolutionBackwardFilter(handle_, alpha, x, at[0], y, at[1],
                                                         convolution, algorithm_, workspace,
                                                         workspace_bytes_, beta, w, at[2]);
      }
    }();
    if (!accepts(status, "a convolution")) {
      is_refused_ = true;
      return false;
    }
    gpu_.note(label_);
    return true;
  }

  /// For what cuDNN does not take.
  const Executable& own() const {
    const std::lock_guard lock(mutex_);
    if (!own_) own_ = make_routine(gpu_, call_);
    return *own_;
  }

  Gpu& gpu_;
  const LibraryCall call_;
  const Cudnn& library_ = cudnn();
  const Cudnn::Handle handle_;
  std::shared_ptr<const std::string> label_;
  Images x_, y_;
  Filters weight_;
  Description convolution_;
  int algorithm_ = 0;
  std::size_t workspace_bytes_ = 0;
  mutable std::atomic<bool> is_refused_ = false;
  mutable ForkSafeMutex mutex_;
  mutable std::unique_ptr<Executable> own_;
};

bool fits(const OperandLayout& operand) {
  constexpr int64_t most = std::numeric_limits<int>::max();
  int64_t extent = 1;
  for (int axis = 0; axis < operand.shape.size(); ++axis) {
    if (operand.shape[axis] < 1 || operand.strides[axis] < 1) return false;
    extent += (operand.shape[axis] - 1) * operand.strides[axis];
  }
  return extent <= most;
}

}  // namespace

std::unique_ptr<Executable> make_convolution(Gpu& gpu, const LibraryCall& call) {
  if (call.kind != Kind::conv2d && call.kind != Kind::conv2d_input &&
      call.kind != Kind::conv2d_weight)
    return nullptr;
  for (const OperandLayout& operand : call.operands) {
    if (!type_of(operand.dtype) || operand.dtype != call.operands[2].dtype || !fits(operand))
      return nullptr;
  }
  const std::size_t weight = call.kind == Kind::conv2d_weight ? 2 : 1;
  if (!packing_of(call.operands[weight]) || !has_cudnn()) return nullptr;
  const Entered entered = gpu.enter();
  const Cudnn::Handle handle = handle_of(gpu);
  if (handle == nullptr) return nullptr;
  auto convolution = std::make_unique<Convolution>(gpu, call, handle);
  if (convolution->plan()) return convolution;
  log(LogLevel::info,
      fmt::format("cuDNN has no way that is wanted for a {}; a kernel of our own runs it",
                  name_of(call.kind)));
  return nullptr;
}

}  // namespace nitinol::cuda
