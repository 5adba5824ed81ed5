// The module's one symbol, and the switches for looking at its output.

#include "backends/cpu/jit/compiler.h"
#include "backends/cpu/jit/perf_map.h"
#include "backends/cpu/jit_plugin.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace nitinol::cpu {
namespace {

enum class Text : uint8_t { llvm, assembly };

/// Whether NITINOL_DUMP lists it. Other names are the passes' (jit/passes/pipeline.cpp), which
/// warn of those that nobody knows.
bool dumps(Text text) {
  static const std::string list = [] {
    const char* const variable = std::getenv("NITINOL_DUMP");
    return fmt::format(",{},", variable != nullptr ? variable : "");
  }();
  return list.find(text == Text::llvm ? ",llvm," : ",asm,") != std::string::npos;
}

/// The format cannot take names back, so perf shows the last owner of a reused address.
void tell_perf_of(const CompiledKernel& compiled) {
  const auto* const end = reinterpret_cast<const char*>(compiled.object.block.executable()) +
                          compiled.object.code_bytes;
  for (const auto& [name, address] : compiled.object.functions) {
    const auto* const first = static_cast<const char*>(address);
    tell_perf(name, first, static_cast<std::size_t>(end - first));
  }
}

class LoadedStages : public StageCodes {
 public:
  explicit LoadedStages(CompiledKernel compiled) : object_(std::move(compiled.object)) {
    for (const void* const entry : compiled.entries) {
      // Functions cannot be converted to from data pointers otherwise.
      stages_.push_back({.function = reinterpret_cast<host::StageFunction>(
                             reinterpret_cast<std::uintptr_t>(entry))});
    }
    report_ = compiled.report;
  }

 private:
  LoadedObject object_;
};

class Plugin : public JitPlugin {
 public:
  std::unique_ptr<StageCodes> compile(const Kernel& kernel) override {
    return compile_for(kernel, current_isa());
  }

  std::unique_ptr<StageCodes> compile_for(const Kernel& kernel, Isa isa) override {
    const Target target = target_for(isa);
    if (dumps(Text::llvm)) std::fputs(intermediate_code_of(kernel, target).c_str(), stderr);
    if (dumps(Text::assembly)) std::fputs(assembly_of(kernel, target).c_str(), stderr);
    compilations_.fetch_add(1, std::memory_order_relaxed);
    CompiledKernel compiled = compile_kernel(kernel, target);
    tell_perf_of(compiled);
    return std::make_unique<LoadedStages>(std::move(compiled));
  }

  std::string intermediate_code(const Kernel& kernel) override {
    return intermediate_code_of(kernel, target_for(current_isa()));
  }
  std::string assembly(const Kernel& kernel) override {
    return assembly_of(kernel, target_for(current_isa()));
  }
  [[nodiscard]] uint64_t compilations() const override {
    return compilations_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t code_bytes_in_use() const override { return code_arena().in_use(); }

 private:
  std::atomic<uint64_t> compilations_ = 0;
};

}  // namespace
}  // namespace nitinol::cpu

extern "C" [[gnu::visibility("default")]] nitinol::cpu::JitPlugin* nitinol_llvm_plugin(
    int version) {
  if (version != nitinol::cpu::jit_plugin_version) return nullptr;
  static auto* const plugin = new nitinol::cpu::Plugin;
  return plugin;
}
