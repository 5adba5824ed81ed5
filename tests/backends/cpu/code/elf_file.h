// ElfFile: an object file taken apart, so that tests can change a number in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <utility>
#include <vector>

namespace nitinol::test {

/// Of a file that is right. Change what is here, then put_together().
struct ElfFile {
  std::vector<uint8_t> bytes;
  Elf64_Ehdr header = {};
  std::vector<Elf64_Shdr> sections;
  std::vector<Elf64_Sym> symbols;
  std::vector<Elf64_Rela> relocations;  ///< of the code

  explicit ElfFile(std::vector<uint8_t> file) : bytes(std::move(file)) {
    header = list<Elf64_Ehdr>(0, sizeof header).at(0);
    sections = list<Elf64_Shdr>(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
    const Elf64_Shdr& table = section(SHT_SYMTAB);
    symbols = list<Elf64_Sym>(table.sh_offset, table.sh_size);
    const Elf64_Shdr& list_of_code = section(SHT_RELA);
    relocations = list<Elf64_Rela>(list_of_code.sh_offset, list_of_code.sh_size);
    places_ = {header.e_shoff, table.sh_offset, list_of_code.sh_offset};
  }

  /// The first section of a type.
  [[nodiscard]] std::size_t section_index(uint32_t type) const {
    return index_of(sections, [&](const Elf64_Shdr& s) { return s.sh_type == type; });
  }
  Elf64_Shdr& section(uint32_t type) { return sections.at(section_index(type)); }
  Elf64_Shdr& code() { return sections.at(section(SHT_RELA).sh_info); }
  /// One that is neither code nor constants nor a table.
  Elf64_Shdr& unused() {
    return sections.at(index_of(sections, [](const Elf64_Shdr& s) {
      return s.sh_type == SHT_PROGBITS && (s.sh_flags & SHF_ALLOC) == 0;
    }));
  }

  /// The function that the file is for.
  Elf64_Sym& exported() {
    return symbols.at(index_of(symbols, [](const Elf64_Sym& s) {
      return ELF64_ST_BIND(s.st_info) == STB_GLOBAL && s.st_shndx != SHN_UNDEF;
    }));
  }
  /// One that is not in the file.
  Elf64_Sym& outside() {
    return symbols.at(index_of(
        symbols, [](const Elf64_Sym& s) { return s.st_name != 0 && s.st_shndx == SHN_UNDEF; }));
  }
  /// What the first relocation is by.
  Elf64_Sym& target() { return symbols.at(ELF64_R_SYM(relocations.at(0).r_info)); }
  uint8_t* name_of(const Elf64_Sym& symbol) {
    return bytes.data() + section(SHT_STRTAB).sh_offset + symbol.st_name;
  }

  [[nodiscard]] std::vector<uint8_t> put_together() const {
    std::vector<uint8_t> file = bytes;
    const auto put = [&](std::size_t place, const auto& items) {
      std::memcpy(file.data() + place, items.data(), items.size() * sizeof items[0]);
    };
    put(0, std::vector{header});
    put(places_.at(0), sections);
    put(places_.at(1), symbols);
    put(places_.at(2), relocations);
    return file;
  }

 private:
  template <class T>
  [[nodiscard]] std::vector<T> list(std::size_t offset, std::size_t size) const {
    std::vector<T> items(size / sizeof(T));
    std::memcpy(items.data(), bytes.data() + offset, items.size() * sizeof(T));
    return items;
  }
  template <class T, class Is>
  static std::size_t index_of(const std::vector<T>& items, const Is& is) {
    std::size_t i = 0;
    while (!is(items.at(i))) ++i;
    return i;
  }
  std::vector<std::size_t> places_;
};

}  // namespace nitinol::test
