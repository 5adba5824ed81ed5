// A linker for what our own code generator emits.
//
// With PIC, the small code model and no mutable globals, an object is .text and a few read-only
// constant sections, of which one is for unwinders, tied together by a handful of relocation types.
// LLVM's linkers know more, take longer, and need LLVM, which code read back from disk should not
// (docs/decisions/0014-object-loader.md). All sections go into one block, so that distances are
// short; calls to functions outside (libm's fma, memset) go through a jump at the block's end,
// because those may be further than 2 GB away.

#include "backends/cpu/code/elf_loader.h"

#include "backends/cpu/code/elf_object.h"
#include "backends/cpu/code/outside_functions.h"
#include "backends/cpu/code/relocation.h"
#include "core/round_up.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace nitinol::cpu {
namespace {

/// A jump to an outside function.
struct Stub {
#if defined(__x86_64__)
  std::array<uint8_t, 8> jump = {0xff, 0x25, 2, 0, 0, 0, 0x0f, 0x0b};  // jmp *[rip+2]; ud2
#else
  std::array<uint8_t, 8> jump = {0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6};  // ldr x16, #8; br x16
#endif
  uint64_t function = 0;
};
static_assert(sizeof(Stub) == 16);

class Loader {
 public:
  explicit Loader(std::span<const std::byte> object) : object_(read_elf(object)) {}

  LoadedObject load() {
    place();
    for (std::size_t i = 0; i < object_.sections.size(); ++i) copy(i);
    for (std::size_t i = 0; i < object_.sections.size(); ++i) link(i);
    name_functions();
    name_unwind();
    result_.block.publish();
    return std::move(result_);
  }

 private:
  /// Finds a place in a block for each section, and one for each stub.
  void place() {
    std::size_t size = 0;
    for (const ElfSection& section : object_.sections) {
      if (section.align > CodeArena::alignment) reject_object("a section's alignment is too large");
      offsets_.push_back(size = round_up(size, section.align));
      size += section.bytes.size();
    }
    result_.code_bytes = size;
    stub_offset_ = size = round_up(size, sizeof(Stub));
    stubs_.assign(object_.symbols.size(), 0);
    const auto outside =
        std::ranges::count(object_.symbols, ElfSymbol::Place::outside, &ElfSymbol::place);
    result_.block = code_arena().allocate(size + static_cast<std::size_t>(outside) * sizeof(Stub));
  }

  void copy(std::size_t section) {
    const std::span bytes = object_.sections[section].bytes;
    if (!bytes.empty()) std::memcpy(write_at(offsets_[section]), bytes.data(), bytes.size());
  }

  void link(std::size_t index) {
    const ElfSection& section = object_.sections[index];
    for (const ElfRelocation& relocation : section.relocations) {
      const std::size_t offset = offsets_[index] + relocation.offset;
      const std::span place(write_at(offset), section.bytes.size() - relocation.offset);
      relocate(object_.machine, relocation.type, place, address_at(offset),
               address_of(relocation.symbol) + static_cast<uint64_t>(relocation.addend));
    }
  }

  void name_functions() {
    for (const ElfSymbol& symbol : object_.symbols) {
      if (!symbol.is_function) continue;
      const std::byte* const code =
          result_.block.executable() + offsets_[symbol.section] + symbol.offset;
      const auto added = result_.functions.emplace(symbol.name, std::span(code, symbol.bytes));
      if (!added.second) reject_object("it has two functions " + std::string(symbol.name));
    }
  }

  void name_unwind() {
    for (std::size_t i = 0; i < object_.sections.size(); ++i) {
      const ElfSection& section = object_.sections[i];
      if (!section.is_unwind || section.bytes.empty()) continue;
      result_.unwind = {result_.block.executable() + offsets_[i], section.bytes.size()};
    }
  }

  uint64_t address_of(std::size_t index) {
    const ElfSymbol& symbol = object_.symbols[index];
    switch (symbol.place) {
      case ElfSymbol::Place::section:
        return address_at(offsets_[symbol.section] + symbol.offset);
      case ElfSymbol::Place::outside:
        return stub_for(index);
      case ElfSymbol::Place::nowhere:
        break;
    }
    reject_object("a relocation by a symbol of an unknown kind");
  }

  /// Made at its first use.
  uint64_t stub_for(std::size_t index) {
    if (stubs_[index] != 0) return stubs_[index];
    const std::string name(object_.symbols[index].name);
    const Stub stub = {.function = reinterpret_cast<uint64_t>(outside_function(name))};
    if (stub.function == 0) reject_object("it asks for an unknown function " + name);
    std::memcpy(write_at(stub_offset_), &stub, sizeof stub);
    stubs_[index] = address_at(stub_offset_);
    stub_offset_ += sizeof stub;
    return stubs_[index];
  }

  [[nodiscard]] std::byte* write_at(std::size_t offset) const {
    return result_.block.writable().data() + offset;
  }
  [[nodiscard]] uint64_t address_at(std::size_t offset) const {
    return reinterpret_cast<uint64_t>(result_.block.executable() + offset);
  }

  ElfObject object_;
  std::vector<std::size_t> offsets_;  ///< per section: where it lies in the block
  std::vector<uint64_t> stubs_;       ///< per symbol: its stub's address, or 0
  std::size_t stub_offset_ = 0;       ///< of the next one
  LoadedObject result_;
};

}  // namespace

LoadedObject load_object(std::span<const std::byte> object) {
  return Loader(object).load();
}

}  // namespace nitinol::cpu
