// The module's one symbol, and the switches for looking at its output.

#include "backends/cpu/jit/compiler.h"
#include "backends/cpu/jit/reserve.h"
#include "backends/cpu/jit_plugin.h"
#include "core/error.h"

#include <fmt/format.h>
#include <llvm/Support/ErrorHandling.h>

#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
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

#if !defined(NITINOL_LLVM_RESERVE)

/// Lets compilations in until the process exits, where LLVM's static objects are destroyed then:
/// other threads may still run, and static objects of the program call compiled functions.
class Door {
 public:
  /// Throws Error(unsupported) when it is closed.
  void enter() {
    const std::lock_guard lock(mutex_);
    if (is_closed_) {
      throw Error(ErrorKind::unsupported,
                  {.where = "compile", .what = "the process is ending", .got = "a new kernel"});
    }
    ++inside_;
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) empty_.notify_all();
    // LLVM makes more of them as it goes, and the door must be closed before the latest is gone.
    if (std::has_single_bit(++visits_)) std::atexit([] { door().close(); });
  }

  /// The one of the process, never destroyed.
  static Door& door() {
    static Door& instance = *new Door;
    return instance;
  }

 private:
  void close() {
    std::unique_lock lock(mutex_);
    is_closed_ = true;
    empty_.wait(lock, [this] { return inside_ == 0; });
  }

  std::mutex mutex_;
  std::condition_variable empty_;
  int inside_ = 0;
  uint64_t visits_ = 0;
  bool is_closed_ = false;
};

class Visit {
 public:
  Visit() { Door::door().enter(); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() { Door::door().leave(); }
};

#else

/// LLVM's static objects are never destroyed (reserve.cpp), so nothing needs to wait.
struct Visit {
  Visit() {}
};

#endif

/// LLVM would end the process: out of memory that even the reserve lacks, or something that it
/// cannot generate. Its frames have unwind tables, but clean nothing up.
void throw_bad_alloc(void*, const char*, bool) {
  throw std::bad_alloc();
}
void throw_error(void*, const char* reason, bool) {
  const WithoutReserve own;
  throw Error(ErrorKind::compile, {.where = "compile",
                                   .what = "LLVM cannot generate a kernel",
                                   .got = reason,
                                   .fix = "This is a bug in Nitinol; please report it."});
}

class Plugin : public JitPlugin {
 public:
  Plugin() {
    llvm::install_bad_alloc_error_handler(throw_bad_alloc);
    llvm::install_fatal_error_handler(throw_error);
  }

  GeneratedObject generate(const Kernel& kernel, Isa isa, Effort effort) override {
    const Visit visit;
    const ReserveScope reserve;
    GeneratedObject object;
    try {
      object = generate_for(kernel, target_for(isa), effort);
    } catch (...) {
      forget_target_machines();  // which may be in any state
      if (reserve.was_used()) throw std::bad_alloc();
      throw;
    }
    if (!reserve.was_used()) return object;
    forget_target_machines();
    throw std::bad_alloc();
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

 private:
  GeneratedObject generate_for(const Kernel& kernel, const Target& target, Effort effort) {
    if (dumps(Text::llvm)) std::fputs(intermediate_code_of(kernel, target).c_str(), stderr);
    if (dumps(Text::assembly)) std::fputs(assembly_of(kernel, target).c_str(), stderr);
    compilations_.fetch_add(1, std::memory_order_relaxed);
    return generate_object(kernel, target, effort);
  }

  std::atomic<uint64_t> compilations_ = 0;
};

}  // namespace
}  // namespace nitinol::cpu

extern "C" [[gnu::visibility("default")]] nitinol::cpu::JitPlugin* nitinol_llvm_plugin(
    int version) {
  if (version != nitinol::cpu::jit_plugin_version) return nullptr;
  static auto* const plugin = new nitinol::cpu::Plugin;
  nitinol::cpu::end_opening();
  return plugin;
}
