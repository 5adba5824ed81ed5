// tests/main.cpp -- The test program's main function: Catch's own, on the device that is asked for.
//
// It is alone in its file because it takes 12 s to compile.
#include "tests/cuda/collecting.h"
#include "tests/fenced.h"

#define CATCH_CONFIG_RUNNER  // NOLINT(readability-identifier-naming): Catch's
#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>
#include <vector>

namespace {

/// Tags each case with its folder, [in:jit], or [in:tree] if it lies in tests/ itself: the entries
/// of ctest. Names of files, which -# gives, are not of one folder only.
void tag_folders() {
  for (const Catch::TestCase& test : Catch::getRegistryHub().getTestCaseRegistry().getAllTests()) {
    const std::string file = test.lineInfo.file;  // tests/jit/ops_test.cpp
    const std::size_t start = file.rfind("tests/") + 6, end = file.find('/', start);
    std::vector<std::string> tags = test.tags;
    tags.push_back("in:" + (end == std::string::npos ? "tree" : file.substr(start, end - start)));
    setTags(const_cast<Catch::TestCase&>(test), tags);  // NOLINT: as Catch does for -#
  }
}

}  // namespace

int main(int argc, char** argv) {
  setenv("NITINOL_CACHE", "0", 0);  // as on a machine where nothing has run yet
  if (!nitinol::test::use_test_device()) return 2;
#ifdef NITINOL_CUDA
  nitinol::test::collect_if_asked();
#endif
  Catch::Session session;
  tag_folders();
  return session.run(argc, argv);
}
