#include "core/isa.h"

#include <catch2/catch.hpp>

using namespace nitinol;

TEST_CASE("the instruction set in use is never above the host's", "[core][isa]") {
  CHECK(current_isa() <= host_isa());
  CHECK(current_isa() == current_isa());
}

TEST_CASE("instruction sets are ordered and named as NITINOL_ISA spells them", "[core][isa]") {
  CHECK(Isa::baseline < Isa::avx2);
  CHECK(Isa::avx2 < Isa::avx512);
  CHECK(name_of(Isa::baseline) == "baseline");
  CHECK(name_of(Isa::avx2) == "avx2");
  CHECK(name_of(Isa::avx512) == "avx512");
}
