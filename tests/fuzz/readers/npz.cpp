// libFuzzer's entry for .npz files; `./dev fuzz npz` builds and runs it.
#include "tests/hostile_files.h"

#include <cstddef>
#include <cstdint>

// NOLINTNEXTLINE(readability-identifier-naming): the library calls it so
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace nitinol::test;
  reads(read_npz, {data, size}, times_zipped);
  return 0;
}
