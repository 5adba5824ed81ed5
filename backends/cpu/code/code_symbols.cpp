#include "backends/cpu/code/code_symbols.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace nitinol::cpu {

std::string symbol_name(std::string_view kernel, std::size_t stage, std::size_t stages) {
  if (kernel.empty()) kernel = "unnamed";
  return stages == 1 ? fmt::format("nitinol::kernel::{}", kernel)
                     : fmt::format("nitinol::kernel::{}::stage{}", kernel, stage);
}

std::optional<SourceLine> source_line(std::string_view place) {
  const std::size_t colon = place.rfind(':');
  if (colon == 0 || colon == std::string_view::npos) return std::nullopt;
  const std::string_view digits = place.substr(colon + 1);
  uint32_t line = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), line);
  if (error != std::errc() || end != digits.data() + digits.size() || line == 0)
    return std::nullopt;
  return SourceLine{std::string(place.substr(0, colon)), line};
}

}  // namespace nitinol::cpu
