#include "core/library.h"

#include <catch2/catch.hpp>

using namespace nitinol;

TEST_CASE("library calls have names and compare in full", "[library]") {
  CHECK(name_of(LibraryCall::Kind::matmul) == "matmul");
  CHECK(name_of(LibraryCall::Kind::take) == "take");
  const LibraryCall call = {
      .kind = LibraryCall::Kind::take, .operands = {{f32, {2}, {1}}}, .threads = 1};
  LibraryCall other = call;
  CHECK(other == call);
  other.threads = 2;
  CHECK_FALSE(other == call);
  other = call;
  other.operands[0].strides = {2};
  CHECK_FALSE(other == call);
}
