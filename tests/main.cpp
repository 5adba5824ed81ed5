// tests/main.cpp -- The test program's main function: Catch's own, on the device that is asked for.
//
// It is alone in its file because it takes 12 s to compile.
#include "tests/cuda/collecting.h"
#include "tests/fenced.h"

#define CATCH_CONFIG_RUNNER  // NOLINT(readability-identifier-naming): Catch's
#include <catch2/catch.hpp>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("NITINOL_CACHE", "0", 0);  // as on a machine where nothing has run yet
  if (!nitinol::test::use_test_device()) return 2;
#ifdef NITINOL_CUDA
  nitinol::test::collect_if_asked();
#endif
  return Catch::Session().run(argc, argv);
}
