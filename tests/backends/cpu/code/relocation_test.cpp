// Relocations of both machines. The instructions of aarch64 are what an assembler writes for the
// same distances.

#include "backends/cpu/code/relocation.h"

#include "core/error.h"

#include <catch2/catch.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <span>
#include <string>

using namespace nitinol;

namespace {

constexpr uint64_t here = 0x7f0012345678;

/// The first four bytes after relocating `before`, of eight.
uint32_t word(uint16_t machine, uint32_t type, uint32_t before, uint64_t target) {
  std::array<std::byte, 8> place = {};
  std::memcpy(place.data(), &before, sizeof before);
  cpu::relocate(machine, type, place, here, target);
  uint32_t after = 0;
  std::memcpy(&after, place.data(), sizeof after);
  return after;
}

uint32_t arm(uint32_t type, uint32_t before, uint64_t target) {
  return word(EM_AARCH64, type, before, target);
}

std::string refusal(uint16_t machine, uint32_t type, uint64_t target, std::size_t size = 8) {
  std::array<std::byte, 8> place = {};
  try {
    cpu::relocate(machine, type, std::span(place).first(size), here, target);
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::compile);
    CHECK(place == std::array<std::byte, 8>{});
    return error.report().what;
  }
}

}  // namespace

TEST_CASE("relocations of x86-64", "[cpu][code]") {
  for (const uint32_t type : {R_X86_64_PC32, R_X86_64_PLT32}) {
    CHECK(word(EM_X86_64, type, 0xffffffff, here + 0x1234) == 0x1234);
    CHECK(word(EM_X86_64, type, 0, here - 4) == 0xfffffffc);
    CHECK(word(EM_X86_64, type, 0, here + 0x7fffffff) == 0x7fffffff);
    CHECK(word(EM_X86_64, type, 0, here - 0x80000000) == 0x80000000);
    for (const uint64_t far :
         {here + 0x80000000, here - 0x80000001, uint64_t{0}, here ^ uint64_t{1} << 63})
      CHECK_THAT(refusal(EM_X86_64, type, far), Catch::EndsWith("a target is too far away"));
    CHECK_THAT(refusal(EM_X86_64, type, here, 3), Catch::EndsWith("ends beyond its section"));
    CHECK(refusal(EM_X86_64, type, here, 4).empty());
  }
  CHECK(word(EM_X86_64, R_X86_64_64, 0, 0x123456789abcdef0) == 0x9abcdef0);
  CHECK(refusal(EM_X86_64, R_X86_64_64, ~uint64_t{0}, 8).empty());
  CHECK_THAT(refusal(EM_X86_64, R_X86_64_64, here, 7), Catch::EndsWith("ends beyond its section"));
}

TEST_CASE("relocations of aarch64: calls", "[cpu][code]") {
  constexpr uint64_t reach = uint64_t{1} << 27;                          // 128 MB
  CHECK(arm(R_AARCH64_CALL26, 0x94000000, here + 0x100) == 0x94000040);  // bl #256
  CHECK(arm(R_AARCH64_CALL26, 0x97ffffff, here + 0x100) == 0x94000040);
  CHECK(arm(R_AARCH64_CALL26, 0x94000000, here - 4) == 0x97ffffff);  // bl #-4
  CHECK(arm(R_AARCH64_JUMP26, 0x14000000, here + reach - 4) == 0x15ffffff);
  CHECK(arm(R_AARCH64_JUMP26, 0x14000000, here - reach) == 0x16000000);
  for (const uint64_t far : {here + reach, here - reach - 4})
    CHECK_THAT(refusal(EM_AARCH64, R_AARCH64_CALL26, far), Catch::EndsWith("too far away"));
  CHECK_THAT(refusal(EM_AARCH64, R_AARCH64_CALL26, here + 2), Catch::EndsWith("not aligned"));
  CHECK_THAT(refusal(EM_AARCH64, R_AARCH64_CALL26, here, 3),
             Catch::EndsWith("ends beyond its section"));
}

TEST_CASE("relocations of aarch64: what unwinders read", "[cpu][code]") {
  CHECK(arm(R_AARCH64_PREL32, 0xffffffff, here + 0x1234) == 0x1234);
  CHECK(arm(R_AARCH64_PREL32, 0, here - 4) == 0xfffffffc);
  CHECK_THAT(refusal(EM_AARCH64, R_AARCH64_PREL32, here + 0x80000000),
             Catch::EndsWith("too far away"));
}

TEST_CASE("relocations of aarch64: pages and offsets", "[cpu][code]") {
  constexpr uint64_t page = here & ~uint64_t{0xfff};
  constexpr uint64_t reach = uint64_t{1} << 32;  // 4 GB
  const uint32_t adrp = 0x90000000;              // adrp x0, #0
  CHECK(arm(R_AARCH64_ADR_PREL_PG_HI21, adrp, page + 0x1000) == 0xb0000000);
  CHECK(arm(R_AARCH64_ADR_PREL_PG_HI21, adrp, page + 0x1fff) == 0xb0000000);
  CHECK(arm(R_AARCH64_ADR_PREL_PG_HI21, adrp, page + 0x4000) == 0x90000020);
  CHECK(arm(R_AARCH64_ADR_PREL_PG_HI21, adrp, page - 0x1000) == 0xf0ffffe0);
  CHECK(arm(R_AARCH64_ADR_PREL_PG_HI21, adrp, page - reach) == 0x90800000);
  for (const uint64_t far : {page + reach, page - reach - 1})
    CHECK_THAT(refusal(EM_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, far),
               Catch::EndsWith("too far away"));

  CHECK(arm(R_AARCH64_ADD_ABS_LO12_NC, 0x91000000, page + 0x123) == 0x91048c00);
  CHECK(arm(R_AARCH64_LDST8_ABS_LO12_NC, 0x39400000, page + 0xfff) == 0x397ffc00);
  CHECK(arm(R_AARCH64_LDST16_ABS_LO12_NC, 0x79400000, page + 0x122) == 0x79424400);
  CHECK(arm(R_AARCH64_LDST32_ABS_LO12_NC, 0xb9400000, page + 0x124) == 0xb9412400);
  CHECK(arm(R_AARCH64_LDST64_ABS_LO12_NC, 0xf9400000, page + 0x128) == 0xf9409400);
  CHECK(arm(R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc00000, page + 0x120) == 0x3dc04800);
  for (const uint32_t type : {R_AARCH64_LDST16_ABS_LO12_NC, R_AARCH64_LDST32_ABS_LO12_NC,
                              R_AARCH64_LDST64_ABS_LO12_NC, R_AARCH64_LDST128_ABS_LO12_NC})
    CHECK_THAT(refusal(EM_AARCH64, type, page + 1), Catch::EndsWith("not aligned"));
  CHECK(refusal(EM_AARCH64, R_AARCH64_ABS64, ~uint64_t{0}).empty());
}

TEST_CASE("relocations that our code does not have", "[cpu][code]") {
  for (const uint32_t type : {0U, uint32_t{R_X86_64_32}, uint32_t{R_X86_64_GOTPCREL}, 255U}) {
    CHECK_THAT(refusal(EM_X86_64, type, here),
               Catch::EndsWith("it has a relocation of type " + std::to_string(type)));
  }
  CHECK_THAT(refusal(EM_AARCH64, R_AARCH64_ADR_GOT_PAGE, here),
             Catch::EndsWith("it has a relocation of type 311"));
}
