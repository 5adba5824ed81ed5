#include "backends/cpu/device.h"

#include "backends/cpu/improving_code.h"
#include "backends/cpu/jit_loader.h"
#include "backends/cpu/library_calls.h"
#include "backends/cpu/onednn/convolution.h"
#include "backends/cpu/onednn/matmul_packed.h"
#include "backends/cpu/rates.h"
#include "backends/cpu/stored_code.h"
#include "backends/disk/code_store.h"
#include "backends/host/flat_kernel.h"
#include "backends/host/host_memory.h"
#include "backends/host/prebuilt.h"
#include "backends/host/stage.h"
#include "backends/reference/interpreted.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/isa.h"
#include "core/parallel.h"
#include "core/round_up.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

namespace nitinol::cpu {
namespace {

/// What NITINOL_CODE says of how code is made.
enum class Asked : uint8_t {
  nothing,
  best,
  quick,
  least,  ///< quick code that stays: for tests
};

Asked asked() {
  static const Asked answer = [] {
    constexpr std::string_view values[] = {"best", "quick", "least"};
    const std::optional<std::size_t> choice = environment_choice("NITINOL_CODE", values);
    return choice ? static_cast<Asked>(*choice + 1) : Asked::nothing;
  }();
  return answer;
}

Effort effort_for(const Kernel& kernel) {
  const bool is_quick = asked() == Asked::nothing ? kernel.making.is_quick : asked() != Asked::best;
  return is_quick ? Effort::least : Effort::full;
}

class GeneratedKernel final : public Executable {
 public:
  GeneratedKernel(const Kernel& kernel, StageCodes codes, CodeStore* store)
      : kernel_(kernel), report_(codes.report) {
    if (report_.origin == CodeOrigin::quick && asked() != Asked::least) {
      improving_ = std::make_shared<ImprovingCode>(kernel, current_isa(), std::move(codes), store);
    } else {
      codes_ = std::move(codes);
    }
    stages_ = improving_ ? improving_->stages() : codes_.stages.data();
  }
  GeneratedKernel(const GeneratedKernel&) = delete;
  GeneratedKernel& operator=(const GeneratedKernel&) = delete;
  ~GeneratedKernel() override {
    const NoFork no_fork;
    const StageCodes last = std::move(codes_);
  }
  void launch(const Launch& launch) const override {
    if (improving_) improving_->note_launch();
    host::run_loop_nest(kernel_, stages_, launch);
  }
  void launch_all(std::span<const Launch> launches) const override {
    host::run_loop_nests(kernel_, stages_, launches);
  }
  [[nodiscard]] std::unique_ptr<const Executable> specialise(
      std::span<const Launch> examples) const override {
    if (examples.size() > 1) return nullptr;
    return host::flat_kernel(kernel_, stages_[0], *this, examples[0]);
  }
  [[nodiscard]] BuildReport report() const override { return report_; }
  [[nodiscard]] std::vector<CodeText> code_texts(std::span<const Launch>) const override {
    JitPlugin* const plugin = jit_plugin();
    if (plugin == nullptr) {
      return {
          {"LLVM IR", "The code is from disk: what writes it, LLVM, is not there to show it.\n"}};
    }
    return {{"LLVM IR", plugin->intermediate_code(kernel_)},
            {"assembly", plugin->assembly(kernel_)}};
  }
  [[nodiscard]] std::size_t bytes() const override {  // code has its pages for itself
    constexpr std::size_t page = 4096, for_debuggers = 1024;
    return (round_up(report_.code_bytes, page) + for_debuggers) * (improving_ ? 2 : 1);
  }

 private:
  const Kernel kernel_;
  const BuildReport report_;
  StageCodes codes_;
  std::shared_ptr<ImprovingCode> improving_;  ///< or null: then `codes_` are what it runs
  const host::StageCode* stages_ = nullptr;
};

std::unique_ptr<Executable> prepare_kernel(const Kernel& kernel) {
  if (auto prebuilt = host::make_prebuilt(kernel)) return prebuilt;
  CodeStore* const store = CodeStore::of_user();
  try {
    if (std::optional<StageCodes> codes = code_of(kernel, current_isa(), store, effort_for(kernel)))
      return std::make_unique<GeneratedKernel>(kernel, std::move(*codes), store);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
  }
  return reference::make_interpreted(kernel);
}

class CpuDevice final : public host::HostMemoryBackend {
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
    return product.kind == LibraryCall::Kind::conv2d ? packed_filter_bytes(product, uses)
                                                     : cpu::packed_bytes(product, uses);
  }
  bool computes_part(const LibraryCall& call) override {
    return call.kind == LibraryCall::Kind::window_max || gives_bits_of_whole(call);
  }
  bool can_generate_code() override { return has_jit_plugin(); }
  DeviceRates rates(int threads) override { return cpu::rates(threads); }
};

}  // namespace

Backend& device() {
  static Backend& instance = *new CpuDevice;
  return instance;
}

}  // namespace nitinol::cpu
