// Driver: CUDA's driver, by its functions.
#pragma once

#include <array>
#include <cstddef>

namespace nitinol::cuda {

/// The driver's functions, those whose names have a version by the name with it. Results are
/// CUresult.
struct Driver {
  using Context = struct CudaContext*;
  using Module = struct CudaModule*;
  using Function = struct CudaFunction*;
  using Stream = struct CudaStream*;
  using Event = struct CudaEvent*;
  using Graph = struct CudaGraph*;
  using Node = struct CudaGraphNode*;
  using GraphExec = struct CudaGraphExec*;
  using Address = unsigned long long;
  /// CUDA_KERNEL_NODE_PARAMS_v2.
  struct KernelNode {
    Function function;
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
    void** parameters;
    void** extra;
    void* kernel;     ///< instead of a function
    Context context;  ///< of a kernel
  };
  /// As a number, and what is said of pinned memory and of events.
  [[nodiscard]] static Address address_of(const void* memory) {
    return reinterpret_cast<Address>(memory);
  }
  static constexpr unsigned portable_and_mapped = 1 | 2, no_timing = 2;
  static constexpr int relaxed = 2;  ///< CUstreamCaptureMode: other threads are left alone
  using Uuid = std::array<std::byte, 16>;
  int (*cuInit)(unsigned flags);
  int (*cuDriverGetVersion)(int*);
  int (*cuGetErrorName)(int, const char**);
  int (*cuDeviceGetCount)(int*);
  int (*cuDeviceGet)(int* device, int number);
  int (*cuDeviceGetName)(char*, int length, int device);
  int (*cuDeviceGetAttribute)(int*, int attribute, int device);
  int (*cuDeviceTotalMem_v2)(std::size_t*, int device);
  int (*cuDeviceGetUuid_v2)(Uuid*, int device);
  int (*cuDevicePrimaryCtxRetain)(Context*, int device);
  int (*cuCtxGetCurrent)(Context*);
  int (*cuCtxSetCurrent)(Context);
  int (*cuCtxEnablePeerAccess)(Context, unsigned flags);
  int (*cuStreamCreate)(Stream*, unsigned flags);
  int (*cuStreamSynchronize)(Stream);
  int (*cuStreamWaitEvent)(Stream, Event, unsigned flags);
  int (*cuMemAlloc_v2)(Address*, std::size_t bytes);
  int (*cuMemFree_v2)(Address);
  int (*cuMemHostAlloc)(void**, std::size_t bytes, unsigned flags);
  int (*cuMemcpyHtoDAsync_v2)(Address, const void*, std::size_t bytes, Stream);
  int (*cuMemcpyDtoHAsync_v2)(void*, Address, std::size_t bytes, Stream);
  int (*cuMemcpyDtoDAsync_v2)(Address to, Address from, std::size_t bytes, Stream);
  int (*cuMemcpyPeerAsync)(Address to, Context, Address from, Context, std::size_t bytes, Stream);
  int (*cuMemsetD8Async)(Address, unsigned char, std::size_t count, Stream);
  int (*cuMemsetD16Async)(Address, unsigned short, std::size_t count, Stream);
  int (*cuMemsetD32Async)(Address, unsigned, std::size_t count, Stream);
  int (*cuMemsetD2D32Async)(Address, std::size_t pitch, unsigned, std::size_t width,
                            std::size_t height, Stream);
  int (*cuModuleLoadData)(Module*, const void* cubin);
  int (*cuModuleUnload)(Module);
  int (*cuModuleGetFunction)(Function*, Module, const char* name);
  int (*cuLaunchKernel)(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        Stream, void** parameters, void** extra);
  int (*cuEventCreate)(Event*, unsigned flags);
  int (*cuEventDestroy_v2)(Event);
  int (*cuEventRecord)(Event, Stream);
  int (*cuEventQuery)(Event);
  int (*cuEventSynchronize)(Event);
  int (*cuEventElapsedTime)(float* milliseconds, Event, Event);
  int (*cuStreamBeginCapture_v2)(Stream, int mode);
  int (*cuStreamEndCapture)(Stream, Graph*);
  int (*cuGraphCreate)(Graph*, unsigned flags);
  int (*cuGraphDestroy)(Graph);
  int (*cuGraphAddKernelNode_v2)(Node*, Graph, const Node* after, std::size_t count,
                                 const KernelNode*);
  int (*cuGraphAddChildGraphNode)(Node*, Graph, const Node* after, std::size_t count, Graph child);
  int (*cuGraphInstantiateWithFlags)(GraphExec*, Graph, unsigned long long flags);
  int (*cuGraphExecKernelNodeSetParams_v2)(GraphExec, Node, const KernelNode*);
  int (*cuGraphExecChildGraphNodeSetParams)(GraphExec, Node, Graph child);
  int (*cuGraphLaunch)(GraphExec, Stream);
  int (*cuGraphExecDestroy)(GraphExec);
};

}  // namespace nitinol::cuda
