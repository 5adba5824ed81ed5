// The contents of the constant tables that the instruction `table` reads.
#pragma once

#include "core/scalar.h"

#include <array>
#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol {

/// The words of a constant table, for native code.
template <TableId id>
inline constexpr auto table_words = std::array<uint32_t, 0>{};

/// 1/pi in binary: 64 bits before the point (all zero), 1280 after it; word 0 is the most
/// significant.
template <>
inline constexpr std::array<uint32_t, 42> table_words<TableId::inverse_pi> = {
    0x00000000, 0x00000000, 0x517cc1b7, 0x27220a94, 0xfe13abe8, 0xfa9a6ee0, 0x6db14acc,
    0x9e21c820, 0xff28b1d5, 0xef5de2b0, 0xdb92371d, 0x2126e970, 0x03249775, 0x04e8c90e,
    0x7f0ef58e, 0x5894d39f, 0x74411afa, 0x975da242, 0x74ce3813, 0x5a2fbf20, 0x9cc8eb1c,
    0xc1a99cfa, 0x4e422fc5, 0xdefc941d, 0x8ffc4bff, 0xef02cc07, 0xf79788c5, 0xad05368f,
    0xb69b3f67, 0x93e584db, 0xa7a31fb3, 0x4f2ff516, 0xba93dd63, 0xf5f2f8bd, 0x9e839cfb,
    0xc5294975, 0x35fdafd8, 0x8fc6ae84, 0x2b019823, 0x7e3db5d5, 0xf867de10, 0x4d7a1b0e,
};

}  // namespace nitinol

#pragma GCC visibility pop
