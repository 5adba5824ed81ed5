#include "backends/cpu/jit_loader.h"

#include "core/fork.h"
#include "core/log.h"
#include "core/own_file.h"

#include <fmt/format.h>

#include <atomic>
#include <dlfcn.h>
#include <string>
#include <unistd.h>

#if defined(NITINOL_LLVM_BUILTIN)
extern "C" nitinol::cpu::JitPlugin* nitinol_llvm_plugin(int version);
#endif

namespace nitinol::cpu {
namespace {

#if defined(NITINOL_LLVM_BUILTIN)

JitPlugin* load() {
  return nitinol_llvm_plugin(jit_plugin_version);
}

bool may_load() {
  return true;
}

#elif defined(NITINOL_LLVM_PLUGIN)

JitPlugin* give_up(const std::string& reason) {
  log(LogLevel::warning,
      fmt::format("no code generator, so fused kernels are interpreted, which is slow: {}",
                  reason));
  return nullptr;
}

JitPlugin* load() {
  void* const module = dlopen(beside_own_file(NITINOL_LLVM_PLUGIN).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return give_up(dlerror());
  const auto entry = reinterpret_cast<JitPluginEntry>(dlsym(module, jit_plugin_symbol));
  if (entry == nullptr) return give_up("the module lacks its entry point");
  JitPlugin* const plugin = entry(jit_plugin_version);
  return plugin != nullptr ? plugin : give_up("the module is of another version");
}

bool may_load() {
  static const bool is_there = access(beside_own_file(NITINOL_LLVM_PLUGIN).c_str(), R_OK) == 0;
  return is_there;
}

#else

JitPlugin* load() {
  log(LogLevel::warning,
      "built without LLVM, so fused kernels are interpreted, which is slow: configure with "
      "-DNITINOL_LLVM=ON");
  return nullptr;
}

bool may_load() {
  return false;
}

#endif

std::atomic<bool> has_failed = false;

}  // namespace

JitPlugin* jit_plugin() {
  const NoFork no_fork;
  static JitPlugin* const plugin = load();
  if (plugin == nullptr) has_failed.store(true, std::memory_order_relaxed);
  return plugin;
}

bool has_jit_plugin() {
  return !has_failed.load(std::memory_order_relaxed) && may_load();
}

}  // namespace nitinol::cpu
