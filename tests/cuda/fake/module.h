// Module: printed kernels as the fake driver holds them.
#pragma once

#include "tests/replay/fibers.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nitinol::test {

/// Runs an entry; for entry ~0 stores the u64 size of the arguments instead.
using Run = void (*)(void* arguments, uint32_t entry);

/// What NVRTC made: text, compiled for the host at its first launch.
struct Module {
  std::string text;
  int part = 0;                   ///< its number in a program of several, from 1 on
  std::vector<uint32_t> threads;  ///< of each entry: of a block, at most
  bool waits = false;
  Run run = nullptr;
};
struct Function {
  std::shared_ptr<Module> module;
  uint32_t entry;
};

/// Of a "cubin" of the fake NVRTC's, each part of its program; none for anything else.
[[nodiscard]] std::vector<std::shared_ptr<Module>> read_image(const void* image);

/// Compiles the text for the host unless that was done before, by whatever process. Any thread.
void compile(const Module& module);

/// A copy of a launch's one parameter, as large as the function has it; empty if the text does not
/// compile.
[[nodiscard]] std::vector<std::byte> arguments_of(const Function& function, const void* parameter);

/// Runs a launch. False, with a message, if it does not compile or its threads go astray.
[[nodiscard]] bool run_launch(const Function& function, Blocks blocks,
                              std::span<std::byte> arguments);

}  // namespace nitinol::test
