// The module's one symbol, and the switches for looking at its output.

#include "backends/cpu/jit/compiler.h"
#include "backends/cpu/jit_plugin.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unistd.h>

namespace nitinol::cpu {
namespace {

/// Whether the comma-separated list in the environment variable NITINOL_DUMP has `what`.
bool dumps(std::string_view what) {
  const char* const variable = std::getenv("NITINOL_DUMP");
  if (variable == nullptr) return false;
  std::string_view list = variable;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == what) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

/// With NITINOL_PERF=1, tells `perf` the names of generated functions by its map file. The format
/// cannot take names back, so it shows the last owner of a reused address.
void tell_perf(const CompiledKernel& compiled) {
  const char* const variable = std::getenv("NITINOL_PERF");
  if (variable == nullptr || std::string_view(variable) != "1") return;
  static std::mutex mutex;
  static std::FILE* const map =
      std::fopen(("/tmp/perf-" + std::to_string(getpid()) + ".map").c_str(), "a");
  if (map == nullptr) return;
  const std::lock_guard lock(mutex);
  const auto* const end = reinterpret_cast<const char*>(compiled.object.block.executable()) +
                          compiled.object.code_bytes;
  for (const auto& [name, address] : compiled.object.functions) {
    const auto* const first = static_cast<const char*>(address);
    std::fprintf(map, "%lx %lx nitinol:%s\n", reinterpret_cast<unsigned long>(first),
                 static_cast<unsigned long>(end - first), name.c_str());
  }
  std::fflush(map);
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
    if (dumps("llvm")) std::fputs(intermediate_code_of(kernel, target).c_str(), stderr);
    if (dumps("asm")) std::fputs(assembly_of(kernel, target).c_str(), stderr);
    compilations_.fetch_add(1, std::memory_order_relaxed);
    CompiledKernel compiled = compile_kernel(kernel, target);
    tell_perf(compiled);
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
