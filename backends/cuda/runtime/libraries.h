// Libraries: NVIDIA's, opened when they are first needed.
#pragma once

#include "backends/cuda/runtime/driver.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nitinol::cuda {

/// Where a library was looked for, and why it was not taken; `why` is empty for what was.
struct PlaceTried {
  std::string place, why;
};

/// NVRTC's functions, by their names. Results are nvrtcResult, 0 for success.
struct Nvrtc {
  using Program = struct NvrtcProgram*;
  int (*nvrtcVersion)(int* major, int* minor);
  int (*nvrtcCreateProgram)(Program*, const char* text, const char* name, int headers,
                            const char* const* contents, const char* const* names);
  int (*nvrtcCompileProgram)(Program, int count, const char* const* options);
  int (*nvrtcGetCUBINSize)(Program, std::size_t*);
  int (*nvrtcGetCUBIN)(Program, char*);
  int (*nvrtcGetPTXSize)(Program, std::size_t*);
  int (*nvrtcGetPTX)(Program, char*);
  int (*nvrtcGetProgramLogSize)(Program, std::size_t*);
  int (*nvrtcGetProgramLog)(Program, char*);
  int (*nvrtcDestroyProgram)(Program*);
  const char* (*nvrtcGetErrorString)(int);
  int (*nvrtcGetNumSupportedArchs)(int*);
  int (*nvrtcGetSupportedArchs)(int*);
};

/// cuBLASLt's functions; results are cublasStatus_t, 0 for success. Creating a handle takes a
/// driver.
struct CublasLt {
  using Handle = struct CublasLtContext*;
  using Description = struct CublasLtDescription*;
  using Layout = struct CublasLtLayout*;
  using Preference = struct CublasLtPreference*;
  /// cublasLtMatmulAlgo_t: opaque.
  struct Algorithm {
    uint64_t data[8];
  };
  /// cublasLtMatmulHeuristicResult_t.
  struct Choice {
    Algorithm algorithm;
    std::size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
  };
  std::size_t (*cublasLtGetVersion)();
  int (*cublasLtCreate)(Handle*);
  int (*cublasLtDestroy)(Handle);
  int (*cublasLtMatmulDescCreate)(Description*, int compute, int scale);
  int (*cublasLtMatmulDescDestroy)(Description);
  int (*cublasLtMatmulDescSetAttribute)(Description, int, const void*, std::size_t bytes);
  int (*cublasLtMatrixLayoutCreate)(Layout*, int type, uint64_t rows, uint64_t columns,
                                    int64_t leading);
  int (*cublasLtMatrixLayoutDestroy)(Layout);
  int (*cublasLtMatrixLayoutSetAttribute)(Layout, int, const void*, std::size_t bytes);
  int (*cublasLtMatmulPreferenceCreate)(Preference*);
  int (*cublasLtMatmulPreferenceDestroy)(Preference);
  int (*cublasLtMatmulPreferenceSetAttribute)(Preference, int, const void*, std::size_t bytes);
  int (*cublasLtMatmulAlgoGetHeuristic)(Handle, Description, Layout a, Layout b, Layout c, Layout d,
                                        Preference, int most, Choice*, int* count);
  int (*cublasLtMatmulAlgoCheck)(Handle, Description, Layout a, Layout b, Layout c, Layout d,
                                 const Algorithm*, Choice*);
  int (*cublasLtMatmulAlgoConfigGetAttribute)(const Algorithm*, int, void* value, std::size_t bytes,
                                              std::size_t* written);
  int (*cublasLtMatmul)(Handle, Description, const void* alpha, const void* a, Layout,
                        const void* b, Layout, const void* beta, const void* c, Layout, void* d,
                        Layout, const Algorithm*, void* workspace, std::size_t workspace_bytes,
                        Driver::Stream);
};

/// The functions of cuDNN 9 for convolutions; results are cudnnStatus_t, 0 for success.
struct Cudnn {
  using Handle = struct CudnnContext*;
  using Images = struct CudnnTensor*;
  using Filters = struct CudnnFilter*;
  using Convolution = struct CudnnConvolution*;
  /// cudnnConvolutionFwdAlgoPerf_t and its two likes.
  struct Choice {
    int algorithm;
    int status;
    float time;
    std::size_t workspace_bytes;
    int determinism;
    int math;
    int reserved[3];
  };
  std::size_t (*cudnnGetVersion)();
  std::size_t (*cudnnGetCudartVersion)();
  const char* (*cudnnGetErrorString)(int);
  int (*cudnnCreate)(Handle*);
  int (*cudnnDestroy)(Handle);
  int (*cudnnSetStream)(Handle, Driver::Stream);
  int (*cudnnCreateTensorDescriptor)(Images*);
  int (*cudnnDestroyTensorDescriptor)(Images);
  int (*cudnnSetTensor4dDescriptorEx)(Images, int type, int n, int c, int h, int w, int n_stride,
                                      int c_stride, int h_stride, int w_stride);
  int (*cudnnCreateFilterDescriptor)(Filters*);
  int (*cudnnDestroyFilterDescriptor)(Filters);
  int (*cudnnSetFilter4dDescriptor)(Filters, int type, int format, int k, int c, int h, int w);
  int (*cudnnCreateConvolutionDescriptor)(Convolution*);
  int (*cudnnDestroyConvolutionDescriptor)(Convolution);
  int (*cudnnSetConvolution2dDescriptor)(Convolution, int pad_h, int pad_w, int stride_h,
                                         int stride_w, int dilation_h, int dilation_w, int mode,
                                         int type);
  int (*cudnnSetConvolutionGroupCount)(Convolution, int);
  int (*cudnnSetConvolutionMathType)(Convolution, int);
  int (*cudnnGetConvolutionForwardAlgorithm_v7)(Handle, Images x, Filters, Convolution, Images y,
                                                int most, int* count, Choice*);
  int (*cudnnGetConvolutionForwardWorkspaceSize)(Handle, Images x, Filters, Convolution, Images y,
                                                 int algorithm, std::size_t*);
  int (*cudnnConvolutionForward)(Handle, const void* alpha, Images, const void* x, Filters,
                                 const void* w, Convolution, int algorithm, void* workspace,
                                 std::size_t workspace_bytes, const void* beta, Images, void* y);
  int (*cudnnGetConvolutionBackwardDataAlgorithm_v7)(Handle, Filters, Images y, Convolution,
                                                     Images x, int most, int* count, Choice*);
  int (*cudnnGetConvolutionBackwardDataWorkspaceSize)(Handle, Filters, Images y, Convolution,
                                                      Images x, int algorithm, std::size_t*);
  int (*cudnnConvolutionBackwardData)(Handle, const void* alpha, Filters, const void* w, Images,
                                      const void* y, Convolution, int algorithm, void* workspace,
                                      std::size_t workspace_bytes, const void* beta, Images,
                                      void* x);
  int (*cudnnGetConvolutionBackwardFilterAlgorithm_v7)(Handle, Images x, Images y, Convolution,
                                                       Filters, int most, int* count, Choice*);
  int (*cudnnGetConvolutionBackwardFilterWorkspaceSize)(Handle, Images x, Images y, Convolution,
                                                        Filters, int algorithm, std::size_t*);
  int (*cudnnConvolutionBackwardFilter)(Handle, const void* alpha, Images, const void* x, Images,
                                        const void* y, Convolution, int algorithm, void* workspace,
                                        std::size_t workspace_bytes, const void* beta, Filters,
                                        void* w);
};

/// NCCL's functions to send from process to process, and to receive; results are ncclResult_t, 0
/// for success.
struct Nccl {
  using Communicator = struct NcclCommunicator*;
  static constexpr int in_progress = 7, bytes = 0;  ///< a result; a type of elements
  /// ncclUniqueId: by which ranks find each other.
  struct Id {
    char data[128];
  };
  /// ncclConfig_t as of NCCL 2.14, which its size says: later ones take their defaults for what it
  /// does not have.
  struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef, version = 21'400;
    int is_blocking = 0;
  };
  int (*ncclGetVersion)(int*);
  int (*ncclGetUniqueId)(Id*);
  int (*ncclCommInitRankConfig)(Communicator*, int ranks, Id, int rank, Config*);
  int (*ncclCommAbort)(Communicator);
  int (*ncclCommGetAsyncError)(Communicator, int* result);
  const char* (*ncclGetErrorString)(int);
  int (*ncclGroupStart)();
  int (*ncclGroupEnd)();
  int (*ncclSend)(const void*, std::size_t count, int type, int to, Communicator, Driver::Stream);
  int (*ncclRecv)(void*, std::size_t count, int type, int from, Communicator, Driver::Stream);
};

/// The functions of NVTX for ranges.
struct Nvtx {
  int (*nvtxRangePushA)(const char*);
  int (*nvtxRangePop)();
};

/// Whether this process is the child of one that has started the driver, which does not survive
/// fork().
[[nodiscard]] bool is_forked_off();

/// Opened at the first call, and never closed. Throws Error(device), with all places tried, if
/// there is none. Any thread.
///
/// Looked for: in NITINOL_CUDA_PATH (folders, separated by colons); in the process; by the loader;
/// in the folders of CUDA's own packages; among Python's packages. Never in a folder of stubs. Of
/// a major version that the driver loads code of, if there is a driver.
[[nodiscard]] const Nvrtc& nvrtc();
[[nodiscard]] const Driver& driver();
/// Of NVRTC's major version, if there is NVRTC: two versions do not mix. 150 MB and half a second.
[[nodiscard]] const CublasLt& cublas_lt();
/// Made for NVRTC's major version of CUDA, if there is NVRTC.
[[nodiscard]] const Cudnn& cudnn();
/// 2.14 or later.
[[nodiscard]] const Nccl& nccl();

/// Null if no tool waits for ranges (NVTX_INJECTION64_PATH is not set), or there is no such
/// library.
[[nodiscard]] const Nvtx* nvtx();

/// The version of NVRTC: 13000 is 13.0.
[[nodiscard]] int nvrtc_version();

/// Which NVRTC this machine has, for keys of what it compiles: "13.0", or "none". Told by a name
/// in the folder where it lies, if that says so: a process that finds all it needs on disk does not
/// open it.
[[nodiscard]] const std::string& nvrtc_identity();

/// Whether they could be opened, without an error; and where NVRTC was looked for.
[[nodiscard]] bool has_nvrtc();
[[nodiscard]] bool has_driver();
[[nodiscard]] bool has_cublas_lt();
[[nodiscard]] bool has_cudnn();
[[nodiscard]] bool has_nccl();
/// The names of Driver's fields, in their order.
[[nodiscard]] std::span<const char* const> driver_functions();
/// Why the driver cannot be used, with where it was looked for; empty if it can.
[[nodiscard]] std::string missing_driver();
[[nodiscard]] std::vector<PlaceTried> places_of_nvrtc();

}  // namespace nitinol::cuda
