// tests/main.cpp -- The test program's main function, which is Catch's own.
//
// It is alone in its file because it takes 12 s to compile.

#define CATCH_CONFIG_MAIN  // NOLINT(readability-identifier-naming): Catch's
#include <catch2/catch.hpp>
