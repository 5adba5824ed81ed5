// libcudnn.so.9 by plain loops, for convolutions: sums in double. It refuses what cuDNN may refuse,
// some of it late. Algorithms that are not wanted, and TF32, give NaN.
#include "tests/cuda/fake/calls.h"
#include "tests/cuda/fake/fake.h"
#include "tests/cuda/fake/library.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <tuple>
#include <vector>

FAKE_CALLS;

using namespace nitinol::test;

namespace {

constexpr int not_initialized = 1001, bad_param = 2000, not_supported = 3000, failed = 5000;
constexpr int math_of_fma = 3;

struct Handle : Counted {
  void* stream = nullptr;
};
/// Sizes and strides of n, c, h, w.
struct Images : Counted {
  int type = -1;
  std::array<int, 4> sizes = {}, strides = {};
};
/// Of k, c, h, w.
struct Filters : Images {
  int format = 0;  ///< 1: channels last
};
struct Convolution : Counted {
  std::array<int, 2> padding = {}, stride = {}, dilation = {};
  int type = -1, groups = 1, math = 0;
};
struct Choice {
  int algorithm, status;
  float time;
  std::size_t workspace_bytes;
  int determinism, math;
  int reserved[3];
};

/// What a convolution sums over.
enum class Sum : uint8_t { y, x, weight };

struct Work {
  Images x, y;
  Filters weight;
  Convolution convolution;
  double alpha;
  std::array<const void*, 3> from;  ///< x, weight, y
  void* to;
  Sum sum;
  void* workspace;
  std::size_t workspace_bytes;
};

int64_t place(const Images& images, std::array<int64_t, 4> at) {
  int64_t offset = 0;
  for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * images.strides[i];
  return offset;
}

int64_t extent(const Images& images) {
  int64_t extent = 1;
  for (std::size_t i = 0; i < images.sizes.size(); ++i)
    extent += static_cast<int64_t>(images.sizes[i] - 1) * images.strides[i];
  return extent;
}

/// Calls `take` with places in x, weight and y for each product of the convolution.
template <class Take>
void for_each_product(const Work& work, Take take) {
  const auto& [x, y, weight, convolution] = std::tie(work.x, work.y, work.weight, work.convolution);
  const int64_t filters = weight.sizes[0] / convolution.groups, channels = weight.sizes[1];
  for (int64_t n = 0; n < y.sizes[0]; ++n) {
    for (int64_t k = 0; k < y.sizes[1]; ++k) {
      for (int64_t i = 0; i < y.sizes[2]; ++i) {
        for (int64_t j = 0; j < y.sizes[3]; ++j) {
          for (int64_t p = 0; p < weight.sizes[2]; ++p) {
            const int64_t h =
                i * convolution.stride[0] - convolution.padding[0] + p * convolution.dilation[0];
            if (h < 0 || h >= x.sizes[2]) continue;
            for (int64_t q = 0; q < weight.sizes[3]; ++q) {
              const int64_t w =
                  j * convolution.stride[1] - convolution.padding[1] + q * convolution.dilation[1];
              if (w < 0 || w >= x.sizes[3]) continue;
              for (int64_t c = 0; c < channels; ++c) {
                take(place(x, {n, k / filters * channels + c, h, w}), place(weight, {k, c, p, q}),
                     place(y, {n, k, i, j}));
              }
            }
          }
        }
      }
    }
  }
}

void run(void* data) {
  const auto* const work = static_cast<Work*>(data);
  if (work->workspace_bytes > 0) std::memset(work->workspace, 0xa5, work->workspace_bytes);
  const Images& result = work->sum == Sum::y   ? work->y
                         : work->sum == Sum::x ? work->x
                                               : static_cast<const Images&>(work->weight);
  std::vector<double> sums(static_cast<std::size_t>(extent(result)));
  for_each_product(*work, [&](int64_t x, int64_t weight, int64_t y) {
    const auto at = [&](std::size_t which, const Images& images, int64_t place) {
      return value_of(work->from[which], images.type, place);
    };
    switch (work->sum) {
      case Sum::y:
        sums[static_cast<std::size_t>(y)] += at(0, work->x, x) * at(1, work->weight, weight);
        break;
      case Sum::x:
        sums[static_cast<std::size_t>(x)] += at(1, work->weight, weight) * at(2, work->y, y);
        break;
      case Sum::weight:
        sums[static_cast<std::size_t>(weight)] += at(0, work->x, x) * at(2, work->y, y);
        break;
    }
  });
  std::array<int64_t, 4> at = {};
  for (at[0] = 0; at[0] < result.sizes[0]; ++at[0]) {
    for (at[1] = 0; at[1] < result.sizes[1]; ++at[1]) {
      for (at[2] = 0; at[2] < result.sizes[2]; ++at[2]) {
        for (at[3] = 0; at[3] < result.sizes[3]; ++at[3]) {
          const int64_t to = place(result, at);
          store(work->to, result.type, to, work->alpha * sums[static_cast<std::size_t>(to)]);
        }
      }
    }
  }
}

void end(void* data) {
  delete static_cast<Work*>(data);
}

bool fits(const Images& x, const Filters& weight, const Convolution& convolution, const Images& y) {
  const auto windows = [&](std::size_t axis) {
    const int seen = (weight.sizes[axis + 2] - 1) * convolution.dilation[axis] + 1;
    return (x.sizes[axis + 2] + 2 * convolution.padding[axis] - seen) / convolution.stride[axis] +
           1;
  };
  const bool is_double = x.type == type_f64;
  return x.type == y.type && x.type == weight.type &&
         convolution.type == (is_double ? type_f64 : type_f32) && x.sizes[0] == y.sizes[0] &&
         x.sizes[1] == weight.sizes[1] * convolution.groups && y.sizes[1] == weight.sizes[0] &&
         y.sizes[1] % convolution.groups == 0 && y.sizes[2] == windows(0) &&
         y.sizes[3] == windows(1);
}

/// Doubles are taken with channels first alone.
bool is_supported(const Filters& weight) {
  return weight.type != type_f64 || weight.format == 0;
}

/// Algorithms as the library lists them, the fastest first: among them transforms, and such that
/// give other bits in each run.
int list(std::span<const Choice> all, int most, int* count, Choice* choices) {
  *count = std::min(most, static_cast<int>(all.size()));
  std::copy_n(all.begin(), *count, choices);
  return 0;
}

constexpr std::size_t small_workspace = 4096, large_workspace = std::size_t{1} << 30;

int workspace_of(int algorithm, std::size_t* bytes) {
  *bytes = algorithm == 0 ? large_workspace : small_workspace;
  return 0;
}

bool is_held(const void* at, const Images& images) {
  return fake_driver().holds(at, static_cast<std::size_t>(extent(images)) * bytes_of(images.type));
}

/// `factor`s are read at the call.
double factor(const void* from, int type) {
  return type == type_f64 ? *static_cast<const double*>(from) : *static_cast<const float*>(from);
}

struct Call {
  const Handle* handle;
  const void *alpha, *beta;
  const Images *x, *y;
  const Filters* weight;
  const Convolution* convolution;
  std::array<const void*, 3> from;  ///< x, weight, y; null for what is written
  void* to;
  Sum sum;
  void* workspace;
  std::size_t workspace_bytes;
};

int enqueue(const Call& call, bool is_wanted, std::size_t least_workspace) {
  if (call.handle == nullptr || !fits(*call.x, *call.weight, *call.convolution, *call.y))
    return bad_param;
  const std::array<const void*, 3> at = {call.sum == Sum::x ? call.to : call.from[0],
                                         call.sum == Sum::weight ? call.to : call.from[1],
                                         call.sum == Sum::y ? call.to : call.from[2]};
  if (!is_held(at[0], *call.x) || !is_held(at[1], *call.weight) || !is_held(at[2], *call.y))
    return bad_param;
  if (call.workspace_bytes < least_workspace ||
      !fake_driver().holds(call.workspace, call.workspace_bytes))
    return bad_param;
  if (factor(call.beta, call.x->type) != 0) return not_supported;
  const bool is_exact = call.x->type != type_f32 || call.convolution->math == math_of_fma;
  const double alpha = factor(call.alpha, call.x->type);
  auto* const work = new Work{*call.x,
                              *call.y,
                              *call.weight,
                              *call.convolution,
                              is_wanted && is_exact ? alpha : std::nan(""),
                              at,
                              call.to,
                              call.sum,
                              call.workspace,
                              call.workspace_bytes};
  return fake_driver().enqueue_again(call.handle->stream, run, work, end) == 0 ? 0 : failed;
}

template <class Object>
int make(Object** made) {
  *made = new Object;
  return 0;
}

}  // namespace

extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
std::size_t cudnnGetVersion() {
  return 91900;
}
std::size_t cudnnGetCudartVersion() {
  return 13010;
}
const char* cudnnGetErrorString(int status) {
  return status == bad_param ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_INTERNAL_ERROR";
}
int cudnnCreate(Handle** made) {
  FAKE_ENTRY;
  if (fake_driver().enqueue == nullptr) return not_initialized;
  return make(made);
}
int cudnnDestroy(Handle* handle) {
  FAKE_ENTRY;
  delete handle;
  return 0;
}
int cudnnSetStream(Handle* handle, void* stream) {
  FAKE_ENTRY;
  handle->stream = stream;
  return 0;
}
int cudnnCreateTensorDescriptor(Images** made) {
  FAKE_ENTRY;
  return make(made);
}
int cudnnDestroyTensorDescriptor(Images* images) {
  FAKE_ENTRY;
  delete images;
  return 0;
}
int cudnnSetTensor4dDescriptorEx(Images* images, int type, int n, int c, int h, int w, int n_stride,
                                 int c_stride, int h_stride, int w_stride) {
  FAKE_ENTRY;
  images->type = type;
  images->sizes = {n, c, h, w};
  images->strides = {n_stride, c_stride, h_stride, w_stride};
  const auto is_positive = [](int number) { return number > 0; };
  return std::ranges::all_of(images->sizes, is_positive) &&
                 std::ranges::all_of(images->strides, is_positive)
             ? 0
             : bad_param;
}
int cudnnCreateFilterDescriptor(Filters** made) {
  FAKE_ENTRY;
  return make(made);
}
int cudnnDestroyFilterDescriptor(Filters* filters) {
  FAKE_ENTRY;
  delete filters;
  return 0;
}
int cudnnSetFilter4dDescriptor(Filters* filters, int type, int format, int k, int c, int h, int w) {
  FAKE_ENTRY;
  if (k <= 0 || c <= 0 || h <= 0 || w <= 0 || format < 0 || format > 1) return bad_param;
  filters->type = type;
  filters->format = format;
  filters->sizes = {k, c, h, w};
  if (format == 0)
    filters->strides = {c * h * w, h * w, w, 1};
  else
    filters->strides = {c * h * w, 1, w * c, c};
  return 0;
}
int cudnnCreateConvolutionDescriptor(Convolution** made) {
  FAKE_ENTRY;
  return make(made);
}
int cudnnDestroyConvolutionDescriptor(Convolution* convolution) {
  FAKE_ENTRY;
  delete convolution;
  return 0;
}
int cudnnSetConvolution2dDescriptor(Convolution* convolution, int pad_h, int pad_w, int stride_h,
                                    int stride_w, int dilation_h, int dilation_w, int mode,
                                    int type) {
  FAKE_ENTRY;
  if (pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1)
    return bad_param;
  if (mode != 1) return not_supported;  // a correlation is what is asked for
  convolution->padding = {pad_h, pad_w};
  convolution->stride = {stride_h, stride_w};
  convolution->dilation = {dilation_h, dilation_w};
  convolution->type = type;
  return 0;
}
int cudnnSetConvolutionGroupCount(Convolution* convolution, int groups) {
  FAKE_ENTRY;
  convolution->groups = groups;
  return groups < 1 ? bad_param : 0;
}
int cudnnSetConvolutionMathType(Convolution* convolution, int math) {
  FAKE_ENTRY;
  convolution->math = math;
  return 0;
}
int cudnnGetConvolutionForwardAlgorithm_v7(Handle*, const Images* x, const Filters* weight,
                                           const Convolution* convolution, const Images* y,
                                           int most, int* count, Choice* choices) {
  FAKE_ENTRY;
  if (!fits(*x, *weight, *convolution, *y)) return bad_param;
  if (!is_supported(*weight)) return not_supported;
  const Choice all[] = {{6, 0, 1, 0, 1, 0, {}},  // Winograd
                        {0, 0, 2, 0, 1, 0, {}},  // wants too large a workspace
                        {1, not_supported, 3, 0, 1, 0, {}},
                        {1, 0, 4, 0, 0, 0, {}},  // gives other bits each time
                        {2, 0, 5, 0, 1, 0, {}}};
  return list(all, most, count, choices);
}
int cudnnGetConvolutionForwardWorkspaceSize(Handle*, const Images*, const Filters*,
                                            const Convolution*, const Images*, int algorithm,
                                            std::size_t* bytes) {
  FAKE_ENTRY;
  return workspace_of(algorithm, bytes);
}
int cudnnConvolutionForward(Handle* handle, const void* alpha, const Images* x, const void* from_x,
                            const Filters* weight, const void* from_weight,
                            const Convolution* convolution, int algorithm, void* workspace,
                            std::size_t workspace_bytes, const void* beta, const Images* y,
                            void* to) {
  FAKE_ENTRY;
  return enqueue({handle,
                  alpha,
                  beta,
                  x,
                  y,
                  weight,
                  convolution,
                  {from_x, from_weight, nullptr},
                  to,
                  Sum::y,
                  workspace,
                  workspace_bytes},
                 algorithm == 2, small_workspace);
}
int cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle*, const Filters* weight, const Images* y,
                                                const Convolution* convolution, const Images* x,
                                                int most, int* count, Choice* choices) {
  FAKE_ENTRY;
  if (!fits(*x, *weight, *convolution, *y)) return bad_param;
  if (convolution->dilation[0] > 1 || !is_supported(*weight)) return not_supported;
  const Choice all[] = {{0, 0, 1, 0, 0, 0, {}}, {1, 0, 2, 0, 1, 0, {}}};
  return list(all, most, count, choices);
}
int cudnnGetConvolutionBackwardDataWorkspaceSize(Handle*, const Filters*, const Images*,
                                                 const Convolution*, const Images*, int algorithm,
                                                 std::size_t* bytes) {
  FAKE_ENTRY;
  return workspace_of(algorithm, bytes);
}
int cudnnConvolutionBackwardData(Handle* handle, const void* alpha, const Filters* weight,
                                 const void* from_weight, const Images* y, const void* from_y,
                                 const Convolution* convolution, int algorithm, void* workspace,
                                 std::size_t workspace_bytes, const void* beta, const Images* x,
                                 void* to) {
  FAKE_ENTRY;
  // Once more it finds out late: a stride along one axis alone.
  if (convolution->stride[0] != convolution->stride[1]) return not_supported;
  return enqueue({handle,
                  alpha,
                  beta,
                  x,
                  y,
                  weight,
                  convolution,
                  {nullptr, from_weight, from_y},
                  to,
                  Sum::x,
                  workspace,
                  workspace_bytes},
                 algorithm == 1, small_workspace);
}
int cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle*, const Images* x, const Images* y,
                                                  const Convolution* convolution,
                                                  const Filters* weight, int most, int* count,
                                                  Choice* choices) {
  FAKE_ENTRY;
  if (!fits(*x, *weight, *convolution, *y)) return bad_param;
  if (convolution->dilation[0] > 1 || !is_supported(*weight)) return not_supported;
  const Choice all[] = {{3, 0, 1, 0, 0, 0, {}}, {5, 0, 2, 0, 1, 0, {}}, {1, 0, 3, 0, 1, 0, {}}};
  return list(all, most, count, choices);
}
int cudnnGetConvolutionBackwardFilterWorkspaceSize(Handle*, const Images*, const Images*,
                                                   const Convolution*, const Filters*,
                                                   int algorithm, std::size_t* bytes) {
  FAKE_ENTRY;
  return workspace_of(algorithm, bytes);
}
int cudnnConvolutionBackwardFilter(Handle* handle, const void* alpha, const Images* x,
                                   const void* from_x, const Images* y, const void* from_y,
                                   const Convolution* convolution, int algorithm, void* workspace,
                                   std::size_t workspace_bytes, const void* beta,
                                   const Filters* weight, void* to) {
  FAKE_ENTRY;
  return enqueue({handle,
                  alpha,
                  beta,
                  x,
                  y,
                  weight,
                  convolution,
                  {from_x, nullptr, from_y},
                  to,
                  Sum::weight,
                  workspace,
                  workspace_bytes},
                 algorithm == 1, small_workspace);
}
uint64_t fake_live() {
  return live_objects();
}
// NOLINTEND(readability-identifier-naming)
}
