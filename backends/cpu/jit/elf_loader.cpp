// A linker for what our own code generator emits.
//
// With PIC, the small code model, no unwind tables and no mutable globals, an object is .text and a
// few read-only constant sections, tied together by a handful of relocation types; LLVM's general
// linkers take longer to set up (0.8 ms) than this takes to load (0.05 ms), and need LLVM, which
// code read back from disk should not. All sections go into one block, so that distances are short;
// calls to functions outside (libm's fma, memset) go through a jump at the block's end, because
// those may be further than 2 GB away.

#include "backends/cpu/jit/elf_loader.h"

#include "backends/cpu/jit/reserve.h"
#include "core/error.h"
#include "core/round_up.h"

#include <cstring>
#include <elf.h>
#include <vector>

namespace nitinol::cpu {
namespace {

constexpr std::size_t stub_size = 16;

[[noreturn]] void fail(const std::string& what) {
  const WithoutReserve own;
  throw Error(ErrorKind::compile, {.where = "compile",
                                   .what = "cannot load generated code: " + what,
                                   .fix = "This is a bug in Nitinol; please report it."});
}

class Loader {
 public:
  Loader(std::span<const std::byte> object, SymbolResolver resolve)
      : object_(object), resolve_(resolve) {
    header_ = at<Elf64_Ehdr>(0);
    if (std::memcmp(header_->e_ident, ELFMAG, SELFMAG) != 0 || header_->e_type != ET_REL) {
      fail("not a relocatable ELF object");
    }
    sections_ = {at<Elf64_Shdr>(header_->e_shoff, header_->e_shnum), header_->e_shnum};
  }

  LoadedObject load() {
    find_symbols();
    place_sections();
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_RELA && is_loaded(section.sh_info)) relocate(section);
    }
    export_functions();
    result_.block.publish();
    return std::move(result_);
  }

 private:
  template <class T>
  [[nodiscard]] const T* at(std::size_t offset, std::size_t count = 1) const {
    if (offset > object_.size() || count * sizeof(T) > object_.size() - offset) fail("truncated");
    return reinterpret_cast<const T*>(object_.data() + offset);
  }

  [[nodiscard]] bool is_loaded(std::size_t index) const {
    return (sections_[index].sh_flags & SHF_ALLOC) != 0 && sections_[index].sh_size != 0;
  }

  void find_symbols() {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      const std::size_t count = section.sh_size / sizeof(Elf64_Sym);
      symbols_ = {at<Elf64_Sym>(section.sh_offset, count), count};
      const Elf64_Shdr& strings = sections_[section.sh_link];
      names_ = {at<char>(strings.sh_offset, strings.sh_size), strings.sh_size};
    }
    stubs_.assign(symbols_.size(), 0);
  }

  [[nodiscard]] std::string_view name_of(const Elf64_Sym& symbol) const {
    return names_.substr(symbol.st_name, names_.find('\0', symbol.st_name) - symbol.st_name);
  }

  void place_sections() {
    offsets_.assign(sections_.size(), 0);
    std::size_t size = 0;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& section = sections_[i];
      if (!is_loaded(i)) continue;
      if ((section.sh_flags & SHF_WRITE) != 0) fail("it has mutable data");
      const std::size_t align = std::max<std::size_t>(section.sh_addralign, 1);
      if (align > CodeArena::alignment) fail("a section is aligned too strictly");
      offsets_[i] = size = round_up(size, align);
      size += section.sh_size;
    }
    result_.code_bytes = size;
    stub_offset_ = size = round_up(size, stub_size);
    for (const Elf64_Sym& symbol : symbols_) {
      if (symbol.st_shndx == SHN_UNDEF && symbol.st_name != 0) size += stub_size;
    }
    result_.block = code_arena().allocate(size);
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (!is_loaded(i) || sections_[i].sh_type == SHT_NOBITS) continue;
      std::memcpy(write_at(offsets_[i]),
                  at<std::byte>(sections_[i].sh_offset, sections_[i].sh_size),
                  sections_[i].sh_size);
    }
  }

  [[nodiscard]] std::byte* write_at(std::size_t offset) const {
    return result_.block.writable().data() + offset;
  }
  [[nodiscard]] uint64_t address_at(std::size_t offset) const {
    return reinterpret_cast<uint64_t>(result_.block.executable() + offset);
  }

  /// The jump to an outside function, made at its first use.
  uint64_t stub_for(std::size_t index) {
    if (stubs_[index] != 0) return stubs_[index];
    const std::string_view name = name_of(symbols_[index]);
    const auto function = reinterpret_cast<uint64_t>(resolve_(name));
    if (function == 0) fail("unknown symbol " + std::string(name));
#if defined(__x86_64__)
    constexpr unsigned char jump[] = {0xff, 0x25, 2, 0, 0, 0, 0x0f, 0x0b};  // jmp *[rip+2]; ud2
#else
    constexpr unsigned char jump[] = {0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6};  // ldr x16, #8; br x16
#endif
    std::memcpy(write_at(stub_offset_), jump, sizeof jump);
    std::memcpy(write_at(stub_offset_ + sizeof jump), &function, sizeof function);
    stubs_[index] = address_at(stub_offset_);
    stub_offset_ += stub_size;
    return stubs_[index];
  }

  uint64_t address_of(std::size_t index) {
    const Elf64_Sym& symbol = symbols_[index];
    if (symbol.st_shndx == SHN_UNDEF) return stub_for(index);
    if (symbol.st_shndx >= sections_.size()) fail("a symbol of an unknown kind");
    return address_at(offsets_[symbol.st_shndx] + symbol.st_value);
  }

  void relocate(const Elf64_Shdr& section) {
    const std::size_t count = section.sh_size / sizeof(Elf64_Rela);
    const std::span relocations{at<Elf64_Rela>(section.sh_offset, count), count};
    for (const Elf64_Rela& relocation : relocations) {
      const std::size_t offset = offsets_[section.sh_info] + relocation.r_offset;
      const uint64_t target =
          address_of(ELF64_R_SYM(relocation.r_info)) + static_cast<uint64_t>(relocation.r_addend);
      apply(static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info)), offset, target);
    }
  }

  void apply(uint32_t type, std::size_t offset, uint64_t target) const {
    std::byte* const where = write_at(offset);
    const uint64_t distance = target - address_at(offset);
    if (header_->e_machine == EM_X86_64) {
      if (type == R_X86_64_PC32 || type == R_X86_64_PLT32) return write_word(where, distance);
      if (type == R_X86_64_64) return std::memcpy(where, &target, 8), void();
    }
    if (header_->e_machine == EM_AARCH64) {
      const uint64_t pages = (target >> 12) - (address_at(offset) >> 12);
      switch (type) {
        case R_AARCH64_ABS64:
          return std::memcpy(where, &target, 8), void();
        case R_AARCH64_CALL26:
        case R_AARCH64_JUMP26:
          return insert(where, distance >> 2 & 0x3ffffff, 0);
        case R_AARCH64_ADR_PREL_PG_HI21:
          insert(where, pages & 3, 29);
          return insert(where, pages >> 2 & 0x7ffff, 5);
        case R_AARCH64_ADD_ABS_LO12_NC:
        case R_AARCH64_LDST8_ABS_LO12_NC:
          return insert(where, target & 0xfff, 10);
        case R_AARCH64_LDST16_ABS_LO12_NC:
          return insert(where, (target & 0xfff) >> 1, 10);
        case R_AARCH64_LDST32_ABS_LO12_NC:
          return insert(where, (target & 0xfff) >> 2, 10);
        case R_AARCH64_LDST64_ABS_LO12_NC:
          return insert(where, (target & 0xfff) >> 3, 10);
        case R_AARCH64_LDST128_ABS_LO12_NC:
          return insert(where, (target & 0xfff) >> 4, 10);
        default:
          break;
      }
    }
    fail("relocation type " + std::to_string(type));
  }

  static void write_word(std::byte* where, uint64_t value) {
    const auto word = static_cast<uint32_t>(value);
    std::memcpy(where, &word, sizeof word);
  }
  static void insert(std::byte* where, uint64_t bits, int shift) {
    uint32_t word = 0;
    std::memcpy(&word, where, sizeof word);
    word |= static_cast<uint32_t>(bits << shift);
    std::memcpy(where, &word, sizeof word);
  }

  void export_functions() {
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      const Elf64_Sym& symbol = symbols_[i];
      if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
          ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) {
        continue;
      }
      result_.functions.emplace(name_of(symbol), reinterpret_cast<const void*>(address_of(i)));
    }
  }

  std::span<const std::byte> object_;
  SymbolResolver resolve_;
  const Elf64_Ehdr* header_ = nullptr;
  std::span<const Elf64_Shdr> sections_;
  std::span<const Elf64_Sym> symbols_;
  std::string_view names_;
  std::vector<std::size_t> offsets_;  ///< per section: where it lies in the block
  std::vector<uint64_t> stubs_;       ///< per symbol: its stub's address, or 0
  std::size_t stub_offset_ = 0;
  LoadedObject result_;
};

}  // namespace

LoadedObject load_object(std::span<const std::byte> object, SymbolResolver resolve) {
  return Loader(object, resolve).load();
}

}  // namespace nitinol::cpu
