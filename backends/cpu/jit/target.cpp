// Features are named by level, never by the host's name, so that results and cached code do not
// depend on the machine; only the scheduling model ("tune-cpu", set per function) does.

#include "backends/cpu/jit/target.h"

#include "backends/cpu/jit/reserve.h"
#include "core/error.h"
#include "core/per_thread.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <array>
#include <memory>
#include <mutex>
#include <string>

namespace nitinol::cpu {
namespace {

const char* features_of(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::baseline:
      return "";
    // Gathers occur in rare branches only, where spelling them out costs compile time.
    case Isa::avx2:
      return "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt,+fast-gather,-prefer-no-gather";
    case Isa::avx512:
      return "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt,+fast-gather,-prefer-no-gather,"
             "+avx512f,+avx512bw,+avx512dq,+avx512vl";
  }
#endif
  static_cast<void>(isa);
  return "";
}

const char* processor_of() {
#if defined(__x86_64__)
  return "x86-64";
#else
  return "generic";
#endif
}

[[noreturn]] void refuse_processor(const std::string& reason) {
  const WithoutReserve own;
  throw Error(ErrorKind::unsupported, {.where = "compile",
                                       .what = "LLVM cannot generate code for this processor",
                                       .got = reason,
                                       .fix = "Set NITINOL_COMPILE=0 to run without it."});
}

std::unique_ptr<llvm::TargetMachine> make_machine(Isa isa) {
  static std::once_flag initialised;
  std::call_once(initialised, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  const std::string triple = llvm::sys::getProcessTriple();
  std::string reason;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, reason);
  if (target == nullptr) refuse_processor(reason);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  // The detected code model is the large one, which costs 20 % of the time and needs relocations
  // that our loader does not know.
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, processor_of(), features_of(isa), options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Less, /*JIT=*/true));
  if (machine == nullptr) refuse_processor("no target machine for " + triple);
  return machine;
}

}  // namespace

Target target_for(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::baseline:
      return {.isa = isa, .has_fma = false, .has_round = false};
    case Isa::avx2:
      return {
          .isa = isa, .vector_bytes = 32, .has_masks = true, .has_gather = true, .has_half = true};
    case Isa::avx512:
      return {.isa = isa,
              .vector_bytes = 64,
              .has_masks = true,
              .has_narrow_masks = true,
              .has_gather = true,
              .has_half = true};
  }
#endif
  return {.isa = isa};
}

namespace {

using Machines = std::array<std::unique_ptr<llvm::TargetMachine>, 3>;

/// Null in a thread that is ending.
Machines* machines() {
  return PerThread<Machines>::get();
}

}  // namespace

llvm::TargetMachine& target_machine(Isa isa) {
  if (machines() == nullptr) refuse_processor("the thread is ending");
  std::unique_ptr<llvm::TargetMachine>& machine = (*machines())[static_cast<std::size_t>(isa)];
  if (machine == nullptr) machine = make_machine(isa);
  return *machine;
}

void forget_target_machines() {
  if (machines() != nullptr) *machines() = {};
}

}  // namespace nitinol::cpu
