#include "backends/cpu/library_calls.h"

#include "backends/cpu/onednn/convolution.h"
#include "backends/cpu/onednn/matmul.h"
#include "backends/cpu/onednn/matmul_packed.h"
#include "backends/host/compress.h"
#include "backends/host/convolve.h"
#include "backends/host/order.h"
#include "backends/host/permutation.h"
#include "backends/host/scan.h"
#include "backends/host/scatter.h"
#include "backends/host/scatter_add.h"
#include "backends/host/scatter_add_along.h"
#include "backends/host/search.h"
#include "backends/host/window_max.h"
#include "dist/collective.h"

namespace nitinol::cpu {
namespace {

class HostRoutine final : public Executable {
 public:
  HostRoutine(LibraryCall call, Routine routine) : call_(std::move(call)), routine_(routine) {}
  void launch(const Launch& launch) const override { routine_(call_, launch); }

 private:
  const LibraryCall call_;
  const Routine routine_;
};

class HostCollective final : public Executable {
 public:
  explicit HostCollective(LibraryCall call) : call_(std::move(call)) {}
  void launch(const Launch& launch) const override { dist::run_collective(call_, launch); }
  [[nodiscard]] std::unique_ptr<Underway> begin(const Launch& launch) const override {
    return dist::begin_collective(call_, launch);
  }

 private:
  const LibraryCall call_;
};

}  // namespace

std::unique_ptr<Executable> prepare_call(const LibraryCall& call) {
  switch (call.kind) {
    case LibraryCall::Kind::matmul:
      return make_matmul(call);
    case LibraryCall::Kind::pack:
      return make_packing(call);
    case LibraryCall::Kind::packed_matmul:
      return make_packed_matmul(call);
    case LibraryCall::Kind::scatter_add:
      return std::make_unique<HostRoutine>(call, host::scatter_add);
    case LibraryCall::Kind::scatter:
      return std::make_unique<HostRoutine>(call, host::scatter);
    case LibraryCall::Kind::scatter_add_along:
      return std::make_unique<HostRoutine>(call, host::scatter_add_along);
    case LibraryCall::Kind::scan:
      return std::make_unique<HostRoutine>(call, host::scan);
    case LibraryCall::Kind::sort:
      return std::make_unique<HostRoutine>(call, host::sort);
    case LibraryCall::Kind::argsort:
      return std::make_unique<HostRoutine>(call, host::argsort);
    case LibraryCall::Kind::search:
      return std::make_unique<HostRoutine>(call, host::search);
    case LibraryCall::Kind::compress:
      return std::make_unique<HostRoutine>(call, host::compress);
    case LibraryCall::Kind::positions:
      return std::make_unique<HostRoutine>(call, host::positions);
    case LibraryCall::Kind::permutation:
      return std::make_unique<HostRoutine>(call, host::permute_numbers);
    case LibraryCall::Kind::pack_filter:
      return make_filter_packing(call);
    case LibraryCall::Kind::packed_conv2d:
      return make_packed_convolution(call);
    case LibraryCall::Kind::conv2d:
    case LibraryCall::Kind::conv2d_input:
    case LibraryCall::Kind::conv2d_weight:
      if (auto fast = make_convolution(call)) return fast;
      return std::make_unique<HostRoutine>(call, host::convolve);
    case LibraryCall::Kind::window_max:
      return std::make_unique<HostRoutine>(call, host::window_max);
    case LibraryCall::Kind::window_max_input:
      return std::make_unique<HostRoutine>(call, host::window_max_input);
    case LibraryCall::Kind::collective:
      return std::make_unique<HostCollective>(call);
    case LibraryCall::Kind::routine:
      return std::make_unique<HostRoutine>(call, call.routine);
  }
  return nullptr;
}

}  // namespace nitinol::cpu
