// What blocks are cut from, without a driver.
#include "backends/cuda/runtime/segments.h"

#include <catch2/catch.hpp>

#include <cstddef>
#include <vector>

namespace nitinol::segments_test {

using cuda::Segments;

namespace {

std::vector<std::byte> memory(3000);

std::ptrdiff_t offset(const Segments::Cut& cut) {
  return cut.block == nullptr ? -1 : static_cast<std::byte*>(cut.block) - memory.data();
}

void* at(std::ptrdiff_t offset) {
  return memory.data() + offset;
}

}  // namespace

TEST_CASE("a block is cut from the smallest piece that has room", "[cuda][memory]") {
  Segments segments;
  CHECK(offset(segments.cut(1)) == -1);
  segments.add(at(0), 1000);
  CHECK(offset(segments.cut(300)) == 0);
  CHECK(offset(segments.cut(200)) == 300);
  CHECK(offset(segments.cut(400)) == 500);
  segments.give(at(0));
  segments.add(at(1000), 1000);
  CHECK(offset(segments.cut(90)) == 900);
  CHECK(offset(segments.cut(250)) == 0);
  CHECK(offset(segments.cut(60)) == 1000);
  CHECK(segments.has_room(940));
  CHECK(!segments.has_room(941));
  CHECK(offset(segments.cut(941)) == -1);
}

TEST_CASE("what is given back joins what is free beside it, within a segment", "[cuda][memory]") {
  Segments segments;
  segments.add(at(0), 1000);
  segments.add(at(1000), 1000);  // no gap between them, as some drivers give them
  for (const int offset_of_cut : {0, 400, 1000, 1400})
    CHECK(offset(segments.cut(400)) == offset_of_cut);
  segments.give(at(400));
  segments.give(at(1000));
  CHECK(!segments.has_room(601));  // not 1,000 over the border
  segments.give(at(1400));
  CHECK(segments.has_room(1000));
  CHECK(offset(segments.cut(1000)) == 1000);
  segments.give(at(0));
  CHECK(offset(segments.cut(1000)) == 0);
}

TEST_CASE("a segment of which nothing is cut goes, if it is taken", "[cuda][memory]") {
  Segments segments;
  segments.add(at(0), 1000);
  segments.add(at(2000), 500);
  CHECK(offset(segments.cut(600)) == 0);
  std::vector<void*> released;
  const auto take = [&](void* segment) {
    released.push_back(segment);
    return true;
  };
  CHECK(segments.release_whole(take) == 500);
  CHECK(released == std::vector{at(2000)});
  segments.give(at(0));
  CHECK(segments.release_whole([](void*) { return false; }) == 0);
  CHECK(segments.has_room(1000));
  CHECK(segments.release_whole(take) == 1000);
  CHECK(!segments.has_room(1));
}

TEST_CASE("a piece is unused until it has been cut, and when all is done", "[cuda][memory]") {
  Segments segments;
  segments.add(at(0), 1000);
  CHECK(segments.cut(500).is_unused);
  segments.give(at(0));
  CHECK(!segments.cut(400).is_unused);  // of a piece of which a part was
  CHECK(!segments.cut(600).is_unused);
  segments.give(at(400));
  segments.note_done();
  CHECK(segments.cut(600).is_unused);
}

}  // namespace nitinol::segments_test
