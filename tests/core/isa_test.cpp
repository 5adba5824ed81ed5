#include "core/isa.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <string_view>

using namespace nitinol;

TEST_CASE("the instruction set in use is never above the host's", "[core][isa]") {
  CHECK(current_isa() <= host_isa());
  const char* const asked = std::getenv("NITINOL_ISA");
  const std::string_view name = asked != nullptr ? asked : "";
  // What is asked for is what runs, as far as the processor has it.
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (name == name_of(isa)) CHECK(current_isa() == std::min(isa, host_isa()));
  }
  if (name.empty()) CHECK(current_isa() == host_isa());
}

TEST_CASE("instruction sets are ordered and named as NITINOL_ISA spells them", "[core][isa]") {
  CHECK(Isa::baseline < Isa::avx2);
  CHECK(Isa::avx2 < Isa::avx512);
  CHECK(name_of(Isa::baseline) == "baseline");
  CHECK(name_of(Isa::avx2) == "avx2");
  CHECK(name_of(Isa::avx512) == "avx512");
}
