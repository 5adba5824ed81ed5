// What tools are told of a kernel's code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::cpu {

/// A function by the name that tools show: "nitinol::kernel::add_mul_tanh".
struct CodeSymbol {
  std::string name;
  std::span<const std::byte> code;
};

/// A line of the user's code.
struct SourceLine {
  std::string file;
  uint32_t line = 0;
};

struct CodeSymbols {
  std::vector<CodeSymbol> functions;
  /// How to leave the functions: .eh_frame, where it was loaded. Empty: not known.
  std::span<const std::byte> unwind = {};
  std::optional<SourceLine> line = {};  ///< of all functions
};

/// What a kernel called `kernel` (Making::name) has its stage called, of `stages`.
[[nodiscard]] std::string symbol_name(std::string_view kernel, std::size_t stage,
                                      std::size_t stages);

/// "model.cpp:42" taken apart; nothing if that is not what `place` is.
[[nodiscard]] std::optional<SourceLine> source_line(std::string_view place);

}  // namespace nitinol::cpu
