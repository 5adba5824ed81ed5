// The arena: each block at the lowest place that is free, however many there are.
#include "program/arena.h"

#include <catch2/catch.hpp>

#include <random>

using namespace nitinol;

namespace {

struct Block {
  std::size_t offset = 0, bytes = 0;
};

/// The lowest free place, by a look at every block.
std::size_t first_fit(std::vector<Block>& live, std::size_t bytes) {
  std::ranges::sort(live, {}, &Block::offset);
  std::size_t offset = 0;
  for (const Block& block : live) {
    if (block.offset >= offset + bytes) break;
    offset = std::max(offset, block.offset + block.bytes);
  }
  return offset;
}

}  // namespace

TEST_CASE("a block gets the lowest place that is free", "[jit][memory]") {
  program::Arena arena;
  CHECK(arena.place(128) == 0);
  CHECK(arena.place(64) == 128);
  CHECK(arena.place(256) == 192);
  arena.free(0, 128);
  CHECK(arena.place(192) == 448);
  CHECK(arena.place(64) == 0);
  arena.free(128, 64);
  CHECK(arena.place(128) == 64);  // two gaps that touch are one
  CHECK(arena.bytes() == 640);
}

TEST_CASE("what is free at the top is not counted, nor kept", "[jit][memory]") {
  program::Arena arena;
  CHECK(arena.place(64) == 0);
  CHECK(arena.place(64) == 64);
  arena.free(64, 64);
  arena.free(0, 64);
  CHECK(arena.place(640) == 0);
  CHECK(arena.bytes() == 640);
}

TEST_CASE("blocks of no bytes are in nobody's way", "[jit][memory]") {
  program::Arena arena;
  CHECK(arena.place(64) == 0);
  CHECK(arena.place(0) == 0);
  arena.free(0, 0);
  CHECK(arena.place(64) == 64);
}

TEST_CASE("places are those of a look at every block", "[jit][memory]") {
  std::mt19937 random(11);
  for (const std::size_t most : {5, 200, 3000}) {
    program::Arena arena;
    std::vector<Block> live;
    std::size_t end = 0;
    for (int step = 0; step < 12'000; ++step) {
      if (live.size() < random() % (2 * most)) {
        const std::size_t bytes = 64 * (random() % 4 == 0 ? random() % 40 : random() % 3);
        const std::size_t expected = first_fit(live, bytes);
        REQUIRE(arena.place(bytes) == expected);
        live.push_back({expected, bytes});
        end = std::max(end, expected + bytes);
      } else if (!live.empty()) {
        std::swap(live[random() % live.size()], live.back());
        arena.free(live.back().offset, live.back().bytes);
        live.pop_back();
      }
      REQUIRE(arena.bytes() == end);
    }
  }
}
