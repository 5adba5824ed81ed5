// Objects that are right, changed in one number: each is refused, and the message says why.
//
// The objects are the seeds of the fuzzer, which the code generator wrote once; their code is never
// run.

#include "backends/cpu/code/elf_loader.h"

#include "core/error.h"
#include "tests/backends/cpu/code/elf_file.h"
#include "tests/seeds.h"

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

using namespace nitinol;
using test::ElfFile;

namespace {

using Bytes = std::vector<uint8_t>;

#if defined(__x86_64__)
const std::string this_machine = "x86_";
#else
const std::string this_machine = "arm_";
#endif

/// One with constants, relocations by a symbol of its own and by fma, which lies outside.
Bytes example() {
  return test::seeds_in("/tests/fuzz/corpus/object", this_machine + "fma").at(0);
}

cpu::LoadedObject load(std::span<const uint8_t> object) {
  return cpu::load_object(std::as_bytes(object));
}

/// Why an object is refused, or "".
std::string refusal(std::span<const uint8_t> object) {
  const std::size_t in_use = cpu::code_arena().in_use();
  std::string what;
  try {
    static_cast<void>(load(object));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::compile);
    const std::string start = "cannot load generated code: ";
    what = error.report().what;
    CHECK(what.starts_with(start));
    what.erase(0, start.size());
  }
  CHECK(cpu::code_arena().in_use() == in_use);
  return what;
}

struct Change {
  std::string reason;
  std::function<void(ElfFile&)> make;
};

/// Makes each change to an object of its own, and expects it to be refused for its reason.
void check_refused(const std::vector<Change>& changes) {
  REQUIRE(refusal(example()).empty());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    ElfFile file(example());
    changes[i].make(file);
    INFO("change " << i);
    CHECK(refusal(file.put_together()) == changes[i].reason);
  }
}

constexpr uint64_t all_ones = ~uint64_t{0};

}  // namespace

TEST_CASE("the seeds of this machine load, from any address", "[cpu][code]") {
  const std::vector<Bytes> seeds = test::seeds_in("/tests/fuzz/corpus/object", this_machine);
  CHECK(!seeds.empty());
  for (const Bytes& seed : seeds) {
    for (std::size_t shift = 0; shift < 8; ++shift) {
      Bytes moved(shift);
      moved.insert(moved.end(), seed.begin(), seed.end());
      const cpu::LoadedObject object = load(std::span(moved).subspan(shift));
      CHECK(object.code_bytes > 0);
      REQUIRE(object.functions.contains("stage0"));
      const auto code = object.functions.at("stage0");
      CHECK(code.data() >= object.block.executable());
      CHECK(code.data() + code.size() <= object.block.executable() + object.code_bytes);
    }
  }
}

TEST_CASE("what is not an object of this machine is refused", "[cpu][code]") {
  CHECK(refusal({}) == "it is too short");
  const Bytes whole = example();
  CHECK(refusal(std::span(whole).first(63)) == "it is too short");
  const std::string other = "it is not a relocatable ELF file of 64 bits";
  check_refused({
      {other, [](ElfFile& f) { f.header.e_ident[0] = 'E'; }},
      {other, [](ElfFile& f) { f.header.e_ident[EI_CLASS] = ELFCLASS32; }},
      {other, [](ElfFile& f) { f.header.e_ident[EI_DATA] = ELFDATA2MSB; }},
      {other, [](ElfFile& f) { f.header.e_type = ET_DYN; }},
      {"it is for machine 243", [](ElfFile& f) { f.header.e_machine = EM_RISCV; }},
      {"its section headers have another size", [](ElfFile& f) { f.header.e_shentsize = 40; }},
      {"it ends before the end of the section headers", [](ElfFile& f) { ++f.header.e_shnum; }},
      {"it ends before the end of the section headers",
       [](ElfFile& f) { f.header.e_shoff = all_ones - 63; }},
      {"it has no symbol table", [](ElfFile& f) { f.header.e_shnum = 0; }},
  });
}

TEST_CASE("an object with a wrong section is refused", "[cpu][code]") {
  const std::string kind = "a section is neither code nor constants";
  const std::string end = "it ends before the end of a section";
  check_refused({
      {kind, [](ElfFile& f) { f.code().sh_type = SHT_NOBITS; }},
      {kind, [](ElfFile& f) { f.code().sh_flags |= SHF_WRITE; }},
      {kind, [](ElfFile& f) { f.code().sh_flags |= SHF_TLS; }},
      {kind, [](ElfFile& f) { f.code().sh_flags |= SHF_COMPRESSED; }},
      {"a section's alignment is not a power of two",
       [](ElfFile& f) { f.code().sh_addralign = 24; }},
      {"a section's alignment is too large", [](ElfFile& f) { f.code().sh_addralign = 128; }},
      {end, [](ElfFile& f) { f.code().sh_offset = f.bytes.size(); }},
      {end, [](ElfFile& f) { f.code().sh_offset = all_ones; }},
      {end, [](ElfFile& f) { f.code().sh_size = all_ones; }},
      {end, [](ElfFile& f) { f.code().sh_size = f.bytes.size() - f.code().sh_offset + 1; }},
      {"its sections lie over each other",
       [](ElfFile& f) {
         f.code().sh_offset = 0;
         f.code().sh_size = f.bytes.size();
       }},
  });
}

TEST_CASE("an object with wrong symbols is refused", "[cpu][code]") {
  const std::string beyond = "a symbol ends beyond its section";
  check_refused({
      {"it has two symbol tables", [](ElfFile& f) { f.unused().sh_type = SHT_SYMTAB; }},
      {"it has no symbol table", [](ElfFile& f) { f.section(SHT_SYMTAB).sh_type = SHT_DYNSYM; }},
      {"the symbol table has no names", [](ElfFile& f) { f.section(SHT_SYMTAB).sh_link = 0; }},
      {"the symbol table has no names",
       [](ElfFile& f) { f.section(SHT_SYMTAB).sh_link = f.header.e_shnum; }},
      {"it ends before the end of the names",
       [](ElfFile& f) { f.section(SHT_STRTAB).sh_size = all_ones; }},
      {"it ends before the end of the symbol table",
       [](ElfFile& f) { f.section(SHT_SYMTAB).sh_size = 24 * f.bytes.size(); }},
      {"entries of another size in the symbol table",
       [](ElfFile& f) { f.section(SHT_SYMTAB).sh_size -= 1; }},
      {"entries of another size in the symbol table",
       [](ElfFile& f) { f.section(SHT_SYMTAB).sh_entsize = 0; }},
      {"a name is not among the names",
       [](ElfFile& f) {
         f.outside().st_name = static_cast<uint32_t>(f.section(SHT_STRTAB).sh_size);
       }},
      {"a name has no end",
       [](ElfFile& f) {
         auto& names = f.section(SHT_STRTAB);
         names.sh_size = f.outside().st_name + std::size_t{3};  // the name is "fma"
         for (Elf64_Sym& s : f.symbols) s.st_name = s.st_name < names.sh_size ? s.st_name : 0;
       }},
      {"a symbol's section does not exist",
       [](ElfFile& f) { f.exported().st_shndx = f.header.e_shnum; }},
      {"a symbol's section does not exist",
       [](ElfFile& f) { f.exported().st_shndx = SHN_LORESERVE - 1; }},
      {beyond, [](ElfFile& f) { f.exported().st_size += f.code().sh_size; }},
      {beyond, [](ElfFile& f) { f.exported().st_value = f.code().sh_size + 1; }},
      {beyond, [](ElfFile& f) { f.exported().st_value = all_ones; }},
      {beyond, [](ElfFile& f) { f.exported().st_size = all_ones; }},
      {"it has two functions stage0", [](ElfFile& f) { f.symbols.at(1) = f.exported(); }},
      {"it asks for an unknown function fmb", [](ElfFile& f) { f.name_of(f.outside())[2] = 'b'; }},
  });
}

TEST_CASE("an object with wrong relocations is refused", "[cpu][code]") {
  const std::string kind = "a relocation by a symbol of an unknown kind";
  const std::string beyond = "a relocation beyond its section";
  check_refused({
      {kind, [](ElfFile& f) { f.target().st_shndx = SHN_ABS; }},
      {kind, [](ElfFile& f) { f.target().st_shndx = SHN_COMMON; }},
      {kind, [](ElfFile& f) { f.target().st_shndx = SHN_XINDEX; }},
      {kind, [](ElfFile& f) { f.target().st_info = ELF64_ST_INFO(STB_LOCAL, STT_TLS); }},
      {kind,
       [](ElfFile& f) { f.target().st_shndx = static_cast<uint16_t>(f.section_index(SHT_RELA)); }},
      {kind, [](ElfFile& f) { f.relocations[0].r_info &= 0xffffffff; }},
      {"relocations of no section",
       [](ElfFile& f) { f.section(SHT_RELA).sh_info = f.header.e_shnum; }},
      {"relocations by another symbol table", [](ElfFile& f) { f.section(SHT_RELA).sh_link = 0; }},
      {"its relocations have no addends",
       [](ElfFile& f) { f.section(SHT_RELA).sh_type = SHT_REL; }},
      {"it ends before the end of the relocations",
       [](ElfFile& f) { f.section(SHT_RELA).sh_offset = all_ones; }},
      {"entries of another size in the relocations",
       [](ElfFile& f) { f.section(SHT_RELA).sh_entsize = 16; }},
      {beyond, [](ElfFile& f) { f.relocations[0].r_offset = f.code().sh_size; }},
      {beyond, [](ElfFile& f) { f.relocations[0].r_offset = all_ones; }},
      {"a relocation ends beyond its section",
       [](ElfFile& f) { f.relocations[0].r_offset = f.code().sh_size - 3; }},
      {"a relocation by a symbol that does not exist",
       [](ElfFile& f) { f.relocations[0].r_info |= uint64_t{f.symbols.size()} << 32; }},
      {"it has a relocation of type 65535", [](ElfFile& f) { f.relocations[0].r_info |= 0xffff; }},
      {"a target is too far away",
       [](ElfFile& f) { f.relocations[0].r_addend = int64_t{1} << 40; }},
  });
}

TEST_CASE("an object whose function is none has none", "[cpu][code]") {
  const auto functions_after = [](const std::function<void(ElfFile&)>& change) {
    ElfFile file(example());
    change(file);
    return load(file.put_together()).functions.size();
  };
  CHECK(functions_after([](ElfFile&) {}) == 1);
  CHECK(functions_after([](ElfFile& f) { f.exported().st_size = 0; }) == 0);
  CHECK(functions_after([](ElfFile& f) { f.code().sh_flags &= ~uint64_t{SHF_EXECINSTR}; }) == 0);
  CHECK(functions_after(
            [](ElfFile& f) { f.exported().st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC); }) == 0);
  CHECK(functions_after(
            [](ElfFile& f) { f.exported().st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT); }) == 0);
}
