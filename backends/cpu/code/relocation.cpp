#include "backends/cpu/code/relocation.h"

#include "backends/cpu/code/elf_object.h"

#include <cstring>
#include <elf.h>
#include <string>

namespace nitinol::cpu {
namespace {

template <class T>
void write(std::span<std::byte> place, T value) {
  if (place.size() < sizeof value) reject_object("a relocation ends beyond its section");
  std::memcpy(place.data(), &value, sizeof value);
}

/// Puts `count` bits into the instruction at `place`, the lowest as its bit `first`.
void insert(std::span<std::byte> place, uint64_t bits, int first, int count) {
  uint32_t word = 0;
  if (place.size() < sizeof word) reject_object("a relocation ends beyond its section");
  std::memcpy(&word, place.data(), sizeof word);
  const uint32_t mask = ((uint32_t{1} << count) - 1) << first;
  word = (word & ~mask) | (static_cast<uint32_t>(bits << first) & mask);
  std::memcpy(place.data(), &word, sizeof word);
}

/// A distance that must be a number of `bits` bits with a sign.
uint64_t reachable(uint64_t distance, int bits) {
  const uint64_t half = uint64_t{1} << (bits - 1);
  if (distance + half >= 2 * half) reject_object("a target is too far away");
  return distance;
}

/// Bytes of what an instruction loads, stores or adds at an offset in a page; 0 for other types.
uint64_t unit_of(uint32_t type) {
  switch (type) {
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
      return 1;
    case R_AARCH64_LDST16_ABS_LO12_NC:
      return 2;
    case R_AARCH64_LDST32_ABS_LO12_NC:
      return 4;
    case R_AARCH64_LDST64_ABS_LO12_NC:
      return 8;
    case R_AARCH64_LDST128_ABS_LO12_NC:
      return 16;
    default:
      return 0;
  }
}

uint64_t aligned(uint64_t number, uint64_t unit) {
  if (number % unit != 0) reject_object("a target is not aligned");
  return number;
}

bool relocate_x86(uint32_t type, std::span<std::byte> place, uint64_t distance, uint64_t target) {
  switch (type) {
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
      write(place, static_cast<uint32_t>(reachable(distance, 32)));
      return true;
    case R_X86_64_64:
      write(place, target);
      return true;
    default:
      return false;
  }
}

bool relocate_arm(uint32_t type, std::span<std::byte> place, uint64_t address, uint64_t target) {
  constexpr uint64_t page = 4096;
  switch (type) {
    case R_AARCH64_ABS64:
      write(place, target);
      return true;
    case R_AARCH64_PREL32:
      write(place, static_cast<uint32_t>(reachable(target - address, 32)));
      return true;
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
      insert(place, reachable(aligned(target - address, 4), 28) / 4, 0, 26);
      return true;
    case R_AARCH64_ADR_PREL_PG_HI21: {
      const uint64_t pages = reachable(target / page - address / page, 21);
      insert(place, pages, 29, 2);
      insert(place, pages >> 2, 5, 19);
      return true;
    }
    default:
      break;
  }
  const uint64_t unit = unit_of(type);
  if (unit == 0) return false;
  insert(place, aligned(target % page, unit) / unit, 10, 12);
  return true;
}

}  // namespace

void relocate(uint16_t machine, uint32_t type, std::span<std::byte> place, uint64_t address,
              uint64_t target) {
  const bool is_known = machine == EM_X86_64 ? relocate_x86(type, place, target - address, target)
                                             : relocate_arm(type, place, address, target);
  if (!is_known) reject_object("it has a relocation of type " + std::to_string(type));
}

}  // namespace nitinol::cpu
