#include "core/library.h"

#include <catch2/catch.hpp>

using namespace nitinol;

TEST_CASE("library calls have names and compare in full", "[library]") {
  CHECK(name_of(LibraryCall::Kind::matmul) == "matmul");
  CHECK(name_of(LibraryCall::Kind::scatter_add) == "scatter_add");
  CHECK(name_of(LibraryCall::Kind::scatter_add_along) == "scatter_add_along");
  CHECK(name_of(LibraryCall::Kind::scan) == "scan");
  CHECK(name_of(LibraryCall::Kind::window_max_input) == "window_max_input");
  const LibraryCall call = {
      .kind = LibraryCall::Kind::scan, .operands = {{f32, {2}, {1}}}, .threads = 1};
  LibraryCall other = call;
  CHECK(other == call);
  other.threads = 2;
  CHECK_FALSE(other == call);
  other = call;
  other.operands[0].strides = {2};
  CHECK_FALSE(other == call);
  other = call;
  other.windows.padding = {0, 1};
  CHECK_FALSE(other == call);
  other = call;
  other.axis = 1;
  CHECK_FALSE(other == call);
  other = call;
  other.is_descending = true;
  CHECK_FALSE(other == call);
  other = call;
  other.is_right = true;
  CHECK_FALSE(other == call);
}

TEST_CASE("windows are counted as they fit", "[library]") {
  const Windows windows = {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}};
  CHECK(windows.count(0, 5) == 3);
  CHECK(windows.count(1, 5) == 4);
  CHECK(windows.count(1, 1) == 0);
  CHECK(Windows{.kernel = {2, 1}, .dilation = {4, 1}}.count(0, 5) == 1);
}
