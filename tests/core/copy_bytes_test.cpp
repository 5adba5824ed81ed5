#include "core/copy_bytes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

TEST_CASE("copies wherever they lie in their pages", "[copy_bytes]") {
  constexpr std::size_t page = 4096, room = 16;
  std::vector<uint8_t> memory(8 * page), from(3 * page);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i % 251 + 1);
  const std::size_t distance =
      (reinterpret_cast<uintptr_t>(from.data()) - reinterpret_cast<uintptr_t>(memory.data())) %
      page;
  for (const std::size_t bytes : {0, 1, 1023, 1024, 1025, 2048, 4096, 9001}) {
    for (const std::size_t ahead : {0, 1, 28, 63, 64, 100, 4095}) {
      CAPTURE(bytes, ahead);
      std::ranges::fill(memory, 0);
      uint8_t* const to = memory.data() + distance + room + ahead;
      nitinol::copy_bytes(to, from.data() + room, bytes);
      const bool is_copied = std::equal(to, to + bytes, from.data() + room);
      CHECK(is_copied);
      CHECK(to[-1] == 0);
      CHECK(to[bytes] == 0);
    }
  }
}
