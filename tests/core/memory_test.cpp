// The public counts of memory.
#include "core/memory.h"

#include "nitinol.h"

#include <catch2/catch.hpp>

using namespace nitinol;

TEST_CASE("the peak is that of what ran since it was reset", "[memory]") {
  constexpr std::size_t size = 40'000'000;
  static_cast<void>(zeros({size / 4}));
  reset_peak_memory();
  const MemoryStatistics before = memory_statistics();
  CHECK(before.peak == before.in_use);
  {
    const Tensor x = zeros({size / 4});
    const Tensor y = x + 1;
    CHECK(memory_statistics().in_use >= before.in_use + 2 * size);
  }
  const MemoryStatistics after = memory_statistics();
  CHECK(after.in_use < before.in_use + size);
  CHECK(after.peak >= before.in_use + 2 * size);
  CHECK(after.peak < before.in_use + 3 * size);
}
