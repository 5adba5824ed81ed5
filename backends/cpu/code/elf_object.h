// ElfObject: what the loader uses of a relocatable ELF file, read and checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::cpu {

/// Something to write into a section when all addresses are known.
struct ElfRelocation {
  uint32_t type = 0;  ///< R_X86_64_* or R_AARCH64_*; not checked
  std::size_t offset = 0;
  std::size_t symbol = 0;
  int64_t addend = 0;
};

/// Code or constants; empty if the section is something else.
struct ElfSection {
  std::span<const std::byte> bytes;
  std::size_t align = 1;  ///< a power of two
  bool is_code = false;
  bool is_unwind = false;  ///< constants of which nobody reads but who unwinds: .eh_frame
  std::vector<ElfRelocation> relocations;  ///< of existing symbols, at offsets within the bytes
};

struct ElfSymbol {
  enum class Place : uint8_t {
    section,  ///< `bytes` bytes at `offset` of `section`, which hold code or constants
    outside,  ///< a name to be found elsewhere
    nowhere,  ///< not to be used
  };
  Place place = Place::nowhere;
  std::string_view name;
  std::size_t section = 0, offset = 0, bytes = 0;
  bool is_function = false;  ///< a global one, in code
};

/// Its views are of the bytes that it was read from, which may lie at any address.
struct ElfObject {
  uint16_t machine = 0;
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;
};

/// What e_machine is on this machine.
[[nodiscard]] uint16_t this_machine();

/// Reads an object made for this machine: position-independent, small code model. Takes memory and
/// time in proportion to the object. Throws Error(compile) that says what is wrong with it, also if
/// it has more than code, constants and their relocations: data that changes, variables of threads.
[[nodiscard]] ElfObject read_elf(std::span<const std::byte> object);

/// Throws Error(compile): generated code cannot be loaded, because of `reason`.
[[noreturn]] void reject_object(const std::string& reason);

}  // namespace nitinol::cpu
