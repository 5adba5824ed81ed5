// Times, bytes, counts and lines as explain() and profiles write them.
#pragma once

#include "program/report.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::jit {

/// "12.3 us": three significant digits and the unit that suits.
[[nodiscard]] std::string seconds(double value);
/// "12.3 kB".
[[nodiscard]] std::string bytes(std::size_t count);
/// "1 step", "2 steps".
[[nodiscard]] std::string counted(uint64_t count, std::string_view noun);
/// "model.cpp:42, 44, net.cpp:7 and 3 more": files without their folders.
[[nodiscard]] std::string lines_of(const std::vector<std::string>& places);

/// "graph: 96 replays, 4 made, 0 updated", or why there is none; empty where there cannot be one.
[[nodiscard]] std::string text_of(const program::ReplayReport& replays);

}  // namespace nitinol::jit
