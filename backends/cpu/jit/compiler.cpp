// Emission, and LLVM's code generator without optimisation passes.
//
// The code that is emitted is what should run: vectors of the right width, nothing redundant. So
// no LLVM pass has anything to do before instruction selection, which makes compilation three
// times faster than scalar code through the vectoriser, for faster code.

#include "backends/cpu/jit/compiler.h"

#include "backends/cpu/jit/reserve.h"
#include "backends/cpu/jit/stage_code.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/kernel.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <memory>
#include <span>

namespace nitinol::cpu {
namespace {

[[noreturn]] void fail(const std::string& reason) {
  const WithoutReserve own;
  throw Error(ErrorKind::compile, {.where = "compile",
                                   .what = "LLVM rejects a kernel",
                                   .got = reason,
                                   .fix = "This is a bug in Nitinol; please report it."});
}

void set_attributes(llvm::Module& module, const Target& target) {
  static const llvm::StringRef processor = llvm::sys::getHostCPUName();  // of static life
  const std::string bits = std::to_string(target.vector_bytes * 8);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("tune-cpu", processor);
    // For debuggers and profilers, at every instruction: it takes no instructions.
    function.setUWTableKind(llvm::UWTableKind::Async);
    function.addFnAttr("prefer-vector-width", bits);
    function.addFnAttr("min-legal-vector-width", bits);
  }
}

/// Halves the time to generate a function, which then runs slower: by about 10 % if that is once
/// per row.
void compile_quickly(llvm::Module& module, const std::string& name) {
  llvm::Function& function = *module.getFunction(name);
  function.addFnAttr(llvm::Attribute::OptimizeNone);
  function.addFnAttr(llvm::Attribute::NoInline);
}

std::unique_ptr<llvm::Module> emit_module(llvm::LLVMContext& context, const Kernel& kernel,
                                          const Target& target, Effort effort) {
  llvm::TargetMachine& machine = target_machine(target.isa);
  auto module = std::make_unique<llvm::Module>("nitinol", context);
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setDataLayout(machine.createDataLayout());
  for (std::size_t s = 0; s < kernel.stages.size(); ++s) {
    const bool is_rare = kernel.stages[s].level == Stage::Level::row;
    const bool is_quick = is_rare || effort == Effort::least;
    emit_stage(*module, target, kernel, kernel.stages[s], stage_name(s), !is_quick);
    if (is_quick) compile_quickly(*module, stage_name(s));
  }
  set_attributes(*module, target);
#ifndef NDEBUG
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(*module, &stream)) fail(stream.str());
#endif
  return module;
}

llvm::SmallVector<char, 0> generate(llvm::Module& module, const Target& target,
                                    llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (target_machine(target.isa)
          .addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true)) {
    fail("the target does not emit object files");
  }
  passes.run(module);
  return bytes;
}

}  // namespace

GeneratedObject generate_object(const Kernel& kernel, const Target& target, Effort effort) {
  const double start = precise_now();
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = emit_module(context, kernel, target, effort);
  const double emitted = precise_now();
  const llvm::SmallVector<char, 0> text =
      generate(*module, target, llvm::CodeGenFileType::ObjectFile);
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {
      .bytes = {bytes.begin(), bytes.end()},
      .report = {.emit_s = emitted - start,
                 .codegen_s = precise_now() - emitted,
                 .origin = effort == Effort::least ? CodeOrigin::quick : CodeOrigin::generated}};
}

std::string intermediate_code_of(const Kernel& kernel, const Target& target) {
  llvm::LLVMContext context;
  std::string text;
  llvm::raw_string_ostream stream(text);
  emit_module(context, kernel, target, Effort::full)->print(stream, nullptr);
  return stream.str();
}

std::string assembly_of(const Kernel& kernel, const Target& target) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = emit_module(context, kernel, target, Effort::full);
  const llvm::SmallVector<char, 0> text =
      generate(*module, target, llvm::CodeGenFileType::AssemblyFile);
  return {text.begin(), text.end()};
}

}  // namespace nitinol::cpu
