// A collective of tensors in a GPU's memory, by way of the host's.
#include "dist/collective.h"

#include "backends/cuda/runtime/executables.h"
#include "core/backend.h"
#include "core/library.h"
#include "core/strided.h"

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace nitinol::cuda {
namespace {

class ByHost final : public Executable {
 public:
  ByHost(Backend& device, LibraryCall call) : device_(device), call_(std::move(call)) {}

  [[nodiscard]] std::string describe(std::span<const Launch> /*examples*/) const override {
    return "by way of the host's memory";
  }

  void launch(const Launch& launch) const override {
    const OperandLayout &x = call_.operands[0], &y = call_.operands[1];
    const auto size = static_cast<int64_t>(size_of(x.dtype));
    std::vector<std::byte> in, out(static_cast<std::size_t>(element_count(y.shape) * size));
    std::byte* first_in = nullptr;
    if (element_count(x.shape) > 0) {
      const Extent extent = extent_of(x.shape, x.strides);
      in.resize(static_cast<std::size_t>(extent.count() * size));
      const auto* const first = static_cast<const std::byte*>(launch.buffers[0]);
      device_.download(first - extent.before * size, in.data(), in.size());
      first_in = in.data() + extent.before * size;
    }
    const std::array<void*, 2> buffers = {first_in, out.data()};
    Launch here = launch;
    here.buffers = buffers;
    dist::run_collective(call_, here);
    if (!out.empty()) device_.upload(out.data(), launch.buffers[1], out.size());
  }

 private:
  Backend& device_;
  const LibraryCall call_;
};

}  // namespace

std::unique_ptr<Executable> make_collective(Backend& device, const LibraryCall& call) {
  return std::make_unique<ByHost>(device, call);
}

}  // namespace nitinol::cuda
