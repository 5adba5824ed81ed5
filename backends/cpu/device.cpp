#include "backends/cpu/device.h"

#include "backends/code_store.h"
#include "backends/cpu/convolution.h"
#include "backends/cpu/host_memory.h"
#include "backends/cpu/jit_loader.h"
#include "backends/cpu/library_calls.h"
#include "backends/cpu/matmul_packed.h"
#include "backends/cpu/stored_code.h"
#include "backends/host/flat_kernel.h"
#include "backends/host/prebuilt.h"
#include "backends/host/stage.h"
#include "backends/reference/interpreted.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/isa.h"
#include "core/parallel.h"
#include "core/round_up.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace nitinol::cpu {
namespace {

class GeneratedKernel final : public Executable {
 public:
  GeneratedKernel(const Kernel& kernel, StageCodes codes)
      : kernel_(kernel), codes_(std::move(codes)) {}
  GeneratedKernel(const GeneratedKernel&) = delete;
  GeneratedKernel& operator=(const GeneratedKernel&) = delete;
  ~GeneratedKernel() override {
    const NoFork no_fork;
    codes_ = {};
  }
  void launch(const Launch& launch) const override {
    host::run_loop_nest(kernel_, codes_.stages.data(), launch);
  }
  void launch_all(std::span<const Launch> launches) const override {
    host::run_loop_nests(kernel_, codes_.stages.data(), launches);
  }
  [[nodiscard]] std::unique_ptr<const Executable> specialise(
      std::span<const Launch> examples) const override {
    if (examples.size() > 1) return nullptr;
    return host::flat_kernel(kernel_, codes_.stages[0], *this, examples[0]);
  }
  [[nodiscard]] BuildReport report() const override { return codes_.report; }
  [[nodiscard]] std::size_t bytes() const override {  // code has its pages for itself
    constexpr std::size_t page = 4096;
    return round_up(codes_.report.code_bytes, page);
  }

 private:
  const Kernel kernel_;
  StageCodes codes_;
};

std::unique_ptr<Executable> prepare_kernel(const Kernel& kernel) {
  if (auto prebuilt = host::make_prebuilt(kernel)) return prebuilt;
  try {
    if (std::optional<StageCodes> codes = code_of(kernel, current_isa(), CodeStore::of_user()))
      return std::make_unique<GeneratedKernel>(kernel, std::move(*codes));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
  }
  return reference::make_interpreted(kernel);
}

class CpuDevice final : public HostMemoryBackend {
 public:
  [[nodiscard]] Device device() const override { return {}; }
  [[nodiscard]] std::string description() const override {
    return fmt::format("the processor ({}, {} threads)", name_of(current_isa()), num_threads());
  }
  std::unique_ptr<Executable> prepare(const Step& step) override {
    if (const auto* kernel = std::get_if<Kernel>(&step)) return prepare_kernel(*kernel);
    return prepare_call(std::get<LibraryCall>(step));
  }
  std::size_t packed_bytes(const LibraryCall& product, std::size_t uses) override {
    return cpu::packed_bytes(product, uses);
  }
  bool computes_part(const LibraryCall& call) override {
    return call.kind == LibraryCall::Kind::window_max || gives_bits_of_whole(call);
  }
  bool can_generate_code() override { return has_jit_plugin(); }
};

}  // namespace

Backend& device() {
  static Backend& instance = *new CpuDevice;
  return instance;
}

}  // namespace nitinol::cpu
