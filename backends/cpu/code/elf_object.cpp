// An object may come from a file that was cut short, damaged, or not ours: each number is checked
// before it is used, once, here. What is read of the file, all tables and contents together, is not
// longer than the file: tables that share their bytes would make little files cost much.

#include "backends/cpu/code/elf_object.h"

#include "core/error.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <elf.h>

namespace nitinol::cpu {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t longest_name = 255;

class Reader {
 public:
  explicit Reader(std::span<const std::byte> object) : file_(object) {}

  ElfObject read() {
    read_headers();
    read_sections();
    read_symbols();
    find_unwind();
    for (const Elf64_Shdr& header : headers_) read_relocations(header);
    return std::move(result_);
  }

 private:
  void read_headers() {
    const auto header = list<Elf64_Ehdr>(file_, 1)[0];
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_type != ET_REL) {
      reject_object("it is not a relocatable ELF file of 64 bits");
    }
    if (header.e_machine != this_machine()) {
      reject_object("it is for machine " + std::to_string(header.e_machine));
    }
    if (header.e_shentsize != sizeof(Elf64_Shdr))
      reject_object("its section headers have another size");
    result_.machine = header.e_machine;
    names_of_sections_ = header.e_shstrndx;
    const std::size_t bytes = std::size_t{header.e_shnum} * sizeof(Elf64_Shdr);
    headers_ = list<Elf64_Shdr>(take(header.e_shoff, bytes, "the section headers"), header.e_shnum);
  }

  void read_sections() {
    for (const Elf64_Shdr& header : headers_) {
      ElfSection& section = result_.sections.emplace_back();
      if ((header.sh_flags & SHF_ALLOC) == 0 || header.sh_size == 0) continue;
      if ((header.sh_type != SHT_PROGBITS && header.sh_type != SHT_X86_64_UNWIND) ||
          (header.sh_flags & (SHF_WRITE | SHF_TLS | SHF_COMPRESSED)) != 0) {
        reject_object("a section is neither code nor constants");
      }
      if (header.sh_addralign > 1 && !std::has_single_bit(header.sh_addralign)) {
        reject_object("a section's alignment is not a power of two");
      }
      section.bytes = take(header.sh_offset, header.sh_size, "a section");
      section.align = std::max<std::size_t>(header.sh_addralign, 1);
      section.is_code = (header.sh_flags & SHF_EXECINSTR) != 0;
    }
  }

  void read_symbols() {
    for (std::size_t i = 0; i < headers_.size(); ++i) {
      if (headers_[i].sh_type != SHT_SYMTAB) continue;
      if (table_ != none) reject_object("it has two symbol tables");
      table_ = i;
    }
    if (table_ == none) reject_object("it has no symbol table");
    read_names(headers_[table_].sh_link);
    for (const auto& symbol : table<Elf64_Sym>(headers_[table_], "the symbol table")) {
      result_.symbols.push_back(checked(symbol));
    }
  }

  void read_names(std::size_t section) {
    if (section >= headers_.size() || headers_[section].sh_type != SHT_STRTAB) {
      reject_object("the symbol table has no names");
    }
    const Elf64_Shdr& header = headers_[section];
    const auto bytes = take(header.sh_offset, header.sh_size, "the names");
    names_ = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// LLVM keeps the names of sections with the others; elsewhere they are not looked for, as
  /// only tools miss something then.
  void find_unwind() {
    if (headers_[table_].sh_link != names_of_sections_) return;
    for (std::size_t i = 0; i < headers_.size(); ++i)
      result_.sections[i].is_unwind = name_at(headers_[i].sh_name) == ".eh_frame";
  }

  [[nodiscard]] std::string_view name_at(std::size_t offset) const {
    if (offset >= names_.size()) reject_object("a name is not among the names");
    const std::string_view text = names_.substr(offset, longest_name + 1);
    const std::size_t end = text.find('\0');
    if (end == std::string_view::npos) reject_object("a name has no end");
    return text.substr(0, end);
  }

  [[nodiscard]] ElfSymbol checked(const Elf64_Sym& from) const {
    ElfSymbol symbol = {.name = name_at(from.st_name)};
    const auto type = ELF64_ST_TYPE(from.st_info);
    const bool is_usable =
        type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC || type == STT_SECTION;
    if (from.st_shndx == SHN_UNDEF) {
      if (is_usable && !symbol.name.empty()) symbol.place = ElfSymbol::Place::outside;
      return symbol;
    }
    if (from.st_shndx >= SHN_LORESERVE) return symbol;  // absolute, common: a file's name is
    if (from.st_shndx >= headers_.size()) reject_object("a symbol's section does not exist");
    const ElfSection& section = result_.sections[from.st_shndx];
    if (!is_usable || section.bytes.empty()) return symbol;
    if (!fits(from.st_value, from.st_size, section.bytes.size())) {
      reject_object("a symbol ends beyond its section");
    }
    symbol.place = ElfSymbol::Place::section;
    symbol.section = from.st_shndx;
    symbol.offset = from.st_value;
    symbol.bytes = from.st_size;
    symbol.is_function = type == STT_FUNC && ELF64_ST_BIND(from.st_info) == STB_GLOBAL &&
                         section.is_code && symbol.bytes != 0;
    return symbol;
  }

  void read_relocations(const Elf64_Shdr& header) {
    if (header.sh_type != SHT_RELA && header.sh_type != SHT_REL) return;
    if (header.sh_info >= headers_.size()) reject_object("relocations of no section");
    ElfSection& section = result_.sections[header.sh_info];
    if (section.bytes.empty()) return;
    if (header.sh_type == SHT_REL) reject_object("its relocations have no addends");
    if (header.sh_link != table_) reject_object("relocations by another symbol table");
    for (const auto& from : table<Elf64_Rela>(header, "the relocations")) {
      if (from.r_offset >= section.bytes.size()) reject_object("a relocation beyond its section");
      if (ELF64_R_SYM(from.r_info) >= result_.symbols.size()) {
        reject_object("a relocation by a symbol that does not exist");
      }
      section.relocations.push_back({.type = static_cast<uint32_t>(ELF64_R_TYPE(from.r_info)),
                                     .offset = from.r_offset,
                                     .symbol = ELF64_R_SYM(from.r_info),
                                     .addend = from.r_addend});
    }
  }

  /// Whether `size` bytes at `offset` lie within `whole` bytes.
  static bool fits(uint64_t offset, uint64_t size, uint64_t whole) {
    return offset <= whole && size <= whole - offset;
  }

  /// Bytes of the file, which nothing else is read from.
  std::span<const std::byte> take(uint64_t offset, uint64_t size, const char* what) {
    if (!fits(offset, size, file_.size())) {
      reject_object(std::string("it ends before the end of ") + what);
    }
    taken_ += size;
    if (taken_ > file_.size()) reject_object("its sections lie over each other");
    return file_.subspan(offset, size);
  }

  template <class T>
  std::vector<T> table(const Elf64_Shdr& header, const char* what) {
    if (header.sh_entsize != sizeof(T) || header.sh_size % sizeof(T) != 0) {
      reject_object(std::string("entries of another size in ") + what);
    }
    return list<T>(take(header.sh_offset, header.sh_size, what), header.sh_size / sizeof(T));
  }

  /// Copies, as they may lie at any address.
  template <class T>
  static std::vector<T> list(std::span<const std::byte> bytes, std::size_t count) {
    if (bytes.size() < count * sizeof(T)) reject_object("it is too short");
    std::vector<T> items(count);
    if (count != 0) std::memcpy(items.data(), bytes.data(), count * sizeof(T));
    return items;
  }

  static constexpr std::size_t none = ~std::size_t{0};

  std::span<const std::byte> file_;
  uint64_t taken_ = 0;  ///< by tables and contents
  std::vector<Elf64_Shdr> headers_;
  std::size_t table_ = none;  ///< the section of symbols
  std::string_view names_;
  std::size_t names_of_sections_ = none;
  ElfObject result_;
};

}  // namespace

uint16_t this_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#else
  return EM_AARCH64;
#endif
}

ElfObject read_elf(std::span<const std::byte> object) {
  return Reader(object).read();
}

void reject_object(const std::string& reason) {
  throw Error(ErrorKind::compile, {.where = "compile",
                                   .what = "cannot load generated code: " + reason,
                                   .fix = "This is a bug in Nitinol; please report it."});
}

}  // namespace nitinol::cpu
