// tests/internals/reveal.cpp -- Makes the hidden names of an object file visible: reveal <file.o>
//
// The library exports what the public headers declare and hides the rest, which is what the tests
// are about. Compiling it a second time with everything visible takes minutes; whether a name is
// hidden is two bits in the object file's table of symbols. They become "protected": others may
// refer to the name, and inside all stays bound as it is in the library that users get.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace {

constexpr unsigned char visibility_mask = 3;

// Compilers add hidden names of their own (DW.ref.*, __x86.*), which must stay so.
bool is_ours(std::string_view mangled) {
  return mangled.find("7nitinol") != std::string_view::npos;
}

template <class T>
T* at(std::string& file, uint64_t offset, uint64_t count = 1) {
  const bool is_inside = offset <= file.size() && count <= (file.size() - offset) / sizeof(T);
  return is_inside ? reinterpret_cast<T*>(file.data() + offset) : nullptr;
}

// The number of names revealed, or -1 if this is no object file of 64 bits.
int reveal(std::string& file) {
  if (file.size() < sizeof(Elf64_Ehdr) || !file.starts_with(ELFMAG) ||
      file[EI_CLASS] != ELFCLASS64) {
    return -1;
  }
  const auto* const header = at<Elf64_Ehdr>(file, 0);
  const auto* const sections = at<Elf64_Shdr>(file, header->e_shoff, header->e_shnum);
  if (sections == nullptr) return -1;
  int revealed = 0;
  // In a file of many sections the header has no room for their number; the first section has.
  const std::size_t count = header->e_shnum != 0 ? header->e_shnum : sections[0].sh_size;
  if (at<Elf64_Shdr>(file, header->e_shoff, count) == nullptr) return -1;
  for (std::size_t s = 0; s < count; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const std::size_t symbol_count = sections[s].sh_size / sizeof(Elf64_Sym);
    auto* const symbols = at<Elf64_Sym>(file, sections[s].sh_offset, symbol_count);
    if (symbols == nullptr || sections[s].sh_link >= count) return -1;
    const uint64_t names = sections[sections[s].sh_link].sh_offset;
    for (std::size_t i = 0; i < symbol_count; ++i) {
      Elf64_Sym& symbol = symbols[i];
      const char* const name = at<char>(file, names + symbol.st_name);
      if (ELF64_ST_VISIBILITY(symbol.st_other) != STV_HIDDEN || name == nullptr) continue;
      if (!is_ours(name)) continue;
      symbol.st_other =
          static_cast<unsigned char>((symbol.st_other & ~visibility_mask) | STV_PROTECTED);
      ++revealed;
    }
  }
  return revealed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: reveal <file.o>\n");
    return 1;
  }
  std::ifstream in(argv[1], std::ios::binary);
  std::string file((std::istreambuf_iterator<char>(in)), {});
  if (const int revealed = reveal(file); revealed <= 0) {
    std::fprintf(stderr, "%s: %s\n", argv[1],
                 revealed < 0 ? "not an object file of 64 bits" : "hides nothing");
    return 1;
  }
  std::ofstream out(argv[1], std::ios::binary);
  out.write(file.data(), static_cast<std::streamsize>(file.size()));
  return out.flush() ? 0 : 1;
}
