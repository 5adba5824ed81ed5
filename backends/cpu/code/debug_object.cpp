// The file is a program's (ET_EXEC), as its addresses are final. Sections in their order: none,
// .text without bytes, .symtab, .strtab, which has the sections' names too, and then those that are
// there: .eh_frame, the very bytes that were loaded, as they speak of places relative to their own,
// and DWARF 4 of one unit with one line.

#include "backends/cpu/code/debug_object.h"

#include "backends/cpu/code/elf_object.h"
#include "core/round_up.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <string>
#include <string_view>
#include <type_traits>

namespace nitinol::cpu {
namespace {

/// Bytes that values are appended to, without gaps.
class ByteList {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void add(const T& value) { add_bytes(std::as_bytes(std::span(&value, 1))); }
  void add_bytes(std::span<const std::byte> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
  }
  void add_text(std::string_view text) {  // and its end
    add_bytes(std::as_bytes(std::span(text)));
    add(uint8_t{0});
  }
  void add_unsigned(uint64_t number) {  // LEB128
    constexpr uint8_t more = 0x80;
    for (; number >= more; number >>= 7) add(static_cast<uint8_t>(number | more));
    add(static_cast<uint8_t>(number));
  }
  void add_signed(int64_t number) {
    constexpr int64_t sign = 0x40, more = 0x80;
    for (; number < -sign || number >= sign; number >>= 7)
      add(static_cast<uint8_t>(static_cast<uint64_t>(number) | more));
    add(static_cast<uint8_t>(static_cast<uint64_t>(number) & (more - 1)));
  }
  void align(std::size_t unit) { bytes_.resize(round_up(bytes_.size(), unit)); }
  template <class T>
  void put(std::size_t offset, const T& value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() && {
    bytes_.shrink_to_fit();  // they are kept
    return std::move(bytes_);
  }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }

 private:
  std::vector<std::byte> bytes_;
};

uint64_t address_of(std::span<const std::byte> code) {
  return reinterpret_cast<uintptr_t>(code.data());
}
uint64_t end_of(std::span<const std::byte> code) {
  return address_of(code) + code.size();
}

/// From the first function to the end of the last.
struct Extent {
  uint64_t begin = UINT64_MAX, end = 0;
  explicit Extent(const std::vector<CodeSymbol>& functions) {
    for (const CodeSymbol& function : functions) {
      begin = std::min(begin, address_of(function.code));
      end = std::max(end, end_of(function.code));
    }
  }
};

// ---- DWARF. Numbers are those of its version 4, section 7.

/// Fills in the length in front of a unit, when it is known.
class Unit {
 public:
  explicit Unit(ByteList& bytes) : bytes_(bytes), start_(bytes.size()) { bytes.add(uint32_t{0}); }
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;
  ~Unit() { bytes_.put(start_, static_cast<uint32_t>(bytes_.size() - start_ - sizeof(uint32_t))); }

 private:
  ByteList& bytes_;
  std::size_t start_;
};

constexpr uint16_t dwarf_version = 4;
constexpr uint8_t unit_code = 1, function_code = 2;

ByteList abbreviations() {
  constexpr uint8_t form_address = 0x01, form_data8 = 0x07, form_text = 0x08, form_offset = 0x17,
                    form_flag = 0x19, form_data2 = 0x05;
  constexpr uint8_t name = 0x03, lines = 0x10, low = 0x11, high = 0x12, language = 0x13,
                    external = 0x3f, tag_unit = 0x11, tag_function = 0x2e;
  ByteList out;
  for (const uint8_t byte :
       {unit_code, tag_unit, uint8_t{1}, name, form_text, language, form_data2, lines, form_offset,
        low, form_address, high, form_data8, uint8_t{0}, uint8_t{0}})
    out.add(byte);
  for (const uint8_t byte :
       {function_code, tag_function, uint8_t{0}, name, form_text, external, form_flag, low,
        form_address, high, form_data8, uint8_t{0}, uint8_t{0}, uint8_t{0}})
    out.add(byte);
  return out;
}

ByteList information(const CodeSymbols& symbols, const Extent& extent) {
  constexpr uint16_t language_c = 0x000c;  // names are as they are, not taken apart
  ByteList out;
  {
    const Unit unit(out);
    out.add(dwarf_version);
    out.add(uint32_t{0});  // of the abbreviations
    out.add(uint8_t{sizeof(void*)});
    out.add_unsigned(unit_code);
    out.add_text(symbols.line->file);
    out.add(language_c);
    out.add(uint32_t{0});  // of the lines
    out.add(extent.begin);
    out.add(extent.end - extent.begin);
    for (const CodeSymbol& function : symbols.functions) {
      out.add_unsigned(function_code);
      out.add_text(function.name);
      out.add(address_of(function.code));
      out.add(uint64_t{function.code.size()});
    }
    out.add(uint8_t{0});  // no more children
  }
  return out;
}

/// Each function is a sequence of one line.
ByteList lines(const CodeSymbols& symbols) {
  constexpr uint8_t copy = 1, advance_pc = 2, advance_line = 3, extended = 0, end_sequence = 1,
                    set_address = 2;
  // How many arguments each of the standard instructions has.
  constexpr uint8_t arguments[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
  ByteList out;
  {
    const Unit unit(out);
    out.add(dwarf_version);
    {
      const Unit header(out);
      // Bytes of an instruction, operations in one, lines are statements, and no special ones used.
      for (const int byte : {1, 1, 1, 0, 1}) out.add(static_cast<uint8_t>(byte));
      out.add(static_cast<uint8_t>(std::size(arguments) + 1));
      for (const uint8_t count : arguments) out.add(count);
      out.add(uint8_t{0});  // folders
      out.add_text(symbols.line->file);
      for (int number = 0; number < 3; ++number) out.add_unsigned(0);  // folder, time, size
      out.add(uint8_t{0});
    }
    for (const CodeSymbol& function : symbols.functions) {
      out.add(extended);
      out.add_unsigned(1 + sizeof(uint64_t));
      out.add(set_address);
      out.add(address_of(function.code));
      out.add(advance_line);
      out.add_signed(int64_t{symbols.line->line} - 1);
      out.add(copy);
      out.add(advance_pc);
      out.add_unsigned(function.code.size());
      out.add(extended);
      out.add_unsigned(1);
      out.add(end_sequence);
    }
  }
  return out;
}

// ---- the file

class Writer {
 public:
  explicit Writer(const CodeSymbols& symbols) : symbols_(symbols), extent_(symbols.functions) {
    constexpr std::size_t usual = 1024;
    file_.reserve(usual);
    file_.add(Elf64_Ehdr{});
    headers_.push_back({});
    names_.add(uint8_t{0});
  }

  std::vector<std::byte> write() && {
    Elf64_Shdr& code = add_header(".text", SHT_NOBITS);
    code.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    code.sh_addr = extent_.begin;
    code.sh_size = extent_.end - extent_.begin;
    write_symbols();
    const std::size_t names_header = headers_.size();
    add_header(".strtab", SHT_STRTAB);
    if (!symbols_.unwind.empty()) {
      add(".eh_frame", symbols_.unwind);
      headers_.back().sh_flags = SHF_ALLOC;
      headers_.back().sh_addr = address_of(symbols_.unwind);
    }
    if (symbols_.line) {
      add(".debug_abbrev", abbreviations().bytes());
      add(".debug_info", information(symbols_, extent_).bytes());
      add(".debug_line", lines(symbols_).bytes());
    }
    headers_[names_header].sh_offset = file_.size();
    headers_[names_header].sh_size = names_.size();
    file_.add_bytes(names_.bytes());
    write_headers(names_header);
    return std::move(file_).take();
  }

 private:
  uint32_t name(std::string_view text) {
    const std::size_t offset = names_.size();
    names_.add_text(text);
    return static_cast<uint32_t>(offset);
  }

  /// Of a section whose bytes, if it has any, come next.
  Elf64_Shdr& add_header(const char* title, uint32_t type) {
    file_.align(alignof(uint64_t));
    Elf64_Shdr& header = headers_.emplace_back();
    header.sh_name = name(title);
    header.sh_type = type;
    header.sh_offset = file_.size();
    header.sh_addralign = 1;
    return header;
  }

  void add(const char* title, std::span<const std::byte> bytes, uint32_t type = SHT_PROGBITS) {
    add_header(title, type).sh_size = bytes.size();
    file_.add_bytes(bytes);
  }

  void write_symbols() {
    ByteList table;
    table.add(Elf64_Sym{});
    for (const CodeSymbol& function : symbols_.functions) {
      table.add(Elf64_Sym{.st_name = name(function.name),
                          .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                          .st_other = STV_DEFAULT,
                          .st_shndx = 1,
                          .st_value = address_of(function.code),
                          .st_size = function.code.size()});
    }
    add(".symtab", table.bytes(), SHT_SYMTAB);
    headers_.back().sh_entsize = sizeof(Elf64_Sym);
    headers_.back().sh_info = 1;                                       // the first global one
    headers_.back().sh_link = static_cast<uint32_t>(headers_.size());  // the next section
  }

  void write_headers(std::size_t names_header) {
    file_.align(alignof(uint64_t));
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = this_machine();
    header.e_version = EV_CURRENT;
    header.e_shoff = file_.size();
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(headers_.size());
    header.e_shstrndx = static_cast<uint16_t>(names_header);
    file_.put(0, header);
    for (const Elf64_Shdr& section : headers_) file_.add(section);
  }

  const CodeSymbols& symbols_;
  Extent extent_;
  ByteList file_, names_;
  std::vector<Elf64_Shdr> headers_;
};

}  // namespace

std::vector<std::byte> debug_object(const CodeSymbols& symbols) {
  return Writer(symbols).write();
}

}  // namespace nitinol::cpu
