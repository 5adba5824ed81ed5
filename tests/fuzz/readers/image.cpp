// libFuzzer's entry for images; `./dev fuzz image` builds and runs it.
#include "tests/hostile_files.h"

#include <cstddef>
#include <cstdint>

// NOLINTNEXTLINE(readability-identifier-naming): the library calls it so
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  nitinol::test::reads(nitinol::test::read_image, {data, size});
  return 0;
}
