// Disassembly: what nvdisasm says of a cubin's functions.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nitinol::test {

/// A piece of code, without what a branch around a call of a subroutine skips: that is for rare
/// numbers.
struct Code {
  double instructions = 0;
  std::map<int, int> loads, stores;  ///< of the device's memory: how many of so many bits
};

struct Function {
  Code all;
  std::vector<Code> loops;  ///< the innermost ones that load
};

/// Of all functions of a cubin, by name; nothing if there is no nvdisasm: in the PATH, or in the
/// folder `bin` beside that of NVRTC.
[[nodiscard]] std::optional<std::map<std::string, Function>> disassembled(
    std::span<const std::byte> cubin);

}  // namespace nitinol::test
