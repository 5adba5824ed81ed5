// What tools are told: names, lines, and a debugger's list of what is loaded.
#include "backends/cpu/code/code_symbols.h"

#include "backends/cpu/code/debug_object.h"
#include "backends/cpu/code/debugger.h"
#include "tests/in_child.h"

#include <catch2/catch.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace nitinol::code_symbols_test {
namespace {

using cpu::CodeSymbols;
using cpu::DebuggerEntry;

// As a debugger reads it: GDB's manual, "JIT Compilation Interface".
struct ListEntry {
  const ListEntry* next;
  const ListEntry* previous;
  const char* file;
  uint64_t bytes;
};
struct Descriptor {
  uint32_t version, action;
  const ListEntry* relevant;
  const ListEntry* first;
};

const Descriptor& descriptor() {
  const void* const found = ::dlsym(RTLD_DEFAULT, "__jit_debug_descriptor");
  REQUIRE(found != nullptr);
  return *static_cast<const Descriptor*>(found);
}

/// The files in the list, the latest first; checks the links.
std::vector<std::span<const char>> listed() {
  std::vector<std::span<const char>> files;
  const ListEntry* before = nullptr;
  for (const ListEntry* entry = descriptor().first; entry != nullptr; entry = entry->next) {
    CHECK(entry->previous == before);
    files.emplace_back(entry->file, entry->bytes);
    before = entry;
  }
  return files;
}

struct Symbol {
  std::string name;
  uint64_t address, bytes;
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

/// An ELF file, read by what it says of itself.
struct File {
  std::vector<char> bytes;

  template <class T>
  [[nodiscard]] T at(uint64_t offset) const {
    REQUIRE(offset + sizeof(T) <= bytes.size());
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
  [[nodiscard]] Elf64_Shdr header(std::size_t section) const {
    const auto file = at<Elf64_Ehdr>(0);
    REQUIRE(section < file.e_shnum);
    return at<Elf64_Shdr>(file.e_shoff + section * sizeof(Elf64_Shdr));
  }
  [[nodiscard]] std::string text(uint64_t offset) const {
    REQUIRE(offset < bytes.size());
    return {bytes.data() + offset};
  }
  [[nodiscard]] std::optional<Elf64_Shdr> section(const std::string& name) const {
    const auto file = at<Elf64_Ehdr>(0);
    const uint64_t names = header(file.e_shstrndx).sh_offset;
    for (std::size_t i = 0; i < file.e_shnum; ++i) {
      if (text(names + header(i).sh_name) == name) return header(i);
    }
    return std::nullopt;
  }
  [[nodiscard]] std::vector<Symbol> symbols() const {
    const Elf64_Shdr table = section(".symtab").value();
    std::vector<Symbol> found;
    for (uint64_t i = table.sh_info; i < table.sh_size / table.sh_entsize; ++i) {
      const auto symbol = at<Elf64_Sym>(table.sh_offset + i * table.sh_entsize);
      CHECK(ELF64_ST_TYPE(symbol.st_info) == STT_FUNC);
      found.push_back({text(header(table.sh_link).sh_offset + symbol.st_name), symbol.st_value,
                       symbol.st_size});
    }
    return found;
  }
};

File file_of(const CodeSymbols& symbols) {
  const std::vector<std::byte> object = cpu::debug_object(symbols);
  File file;
  file.bytes.resize(object.size());
  std::memcpy(file.bytes.data(), object.data(), object.size());
  return file;
}

std::array<std::byte, 300> memory = {};

CodeSymbols two_functions() {
  const std::span<const std::byte> code = memory;
  return {.functions = {{"nitinol::kernel::a", code.first(100)},
                        {"nitinol::kernel::b", code.subspan(128, 72)}},
          .unwind = code.subspan(220, 40),
          .line = cpu::SourceLine{"model.cpp", 123456}};
}

uint64_t address(std::size_t offset) {
  return reinterpret_cast<uintptr_t>(memory.data() + offset);
}

}  // namespace

TEST_CASE("functions of kernels are called by their operations", "[cpu][code][tools]") {
  CHECK(cpu::symbol_name("mul_add", 0, 1) == "nitinol::kernel::mul_add");
  CHECK(cpu::symbol_name("exp_sum", 1, 2) == "nitinol::kernel::exp_sum::stage1");
  CHECK(cpu::symbol_name("", 0, 1) == "nitinol::kernel::unnamed");
}

TEST_CASE("a place is a line of a file, or none", "[cpu][code][tools]") {
  const auto line = cpu::source_line("/a b/x:y.cpp:42");
  REQUIRE(line);
  CHECK(line->file == "/a b/x:y.cpp");
  CHECK(line->line == 42);
  for (const char* const none : {"", ":", ":3", "main + 0x1f", "a.cpp:", "a.cpp:0", "a.cpp:-1",
                                 "a.cpp:1x", "a.cpp:99999999999", "a.cpp"})
    CHECK_FALSE(cpu::source_line(none));
}

TEST_CASE("a debugger's file has functions, their lines and how to leave them",
          "[cpu][code][tools]") {
  std::memset(memory.data() + 220, 7, 40);
  const File file = file_of(two_functions());
  CHECK(file.symbols() == std::vector<Symbol>{{"nitinol::kernel::a", address(0), 100},
                                              {"nitinol::kernel::b", address(128), 72}});
  const auto code = file.section(".text");
  REQUIRE(code);
  CHECK(code->sh_type == SHT_NOBITS);
  CHECK(code->sh_addr == address(0));
  CHECK(code->sh_size == 200);
  const auto unwind = file.section(".eh_frame");
  REQUIRE(unwind);
  CHECK(unwind->sh_addr == address(220));
  REQUIRE(unwind->sh_size == 40);
  CHECK(std::memcmp(file.bytes.data() + unwind->sh_offset, memory.data() + 220, 40) == 0);
  for (const char* const name : {".debug_info", ".debug_abbrev", ".debug_line"})
    CHECK(file.section(name));
}

TEST_CASE("a debugger's file says nothing of what is not known", "[cpu][code][tools]") {
  CodeSymbols symbols = two_functions();
  symbols.unwind = {};
  symbols.line.reset();
  const File file = file_of(symbols);
  CHECK(file.symbols().size() == 2);
  CHECK_FALSE(file.section(".eh_frame"));
  CHECK_FALSE(file.section(".debug_line"));
}

TEST_CASE("a debugger's list has what lives", "[cpu][code][tools]") {
  CHECK(descriptor().version == 1);
  CHECK(::dlsym(RTLD_DEFAULT, "__jit_debug_register_code") != nullptr);
  const std::size_t before = listed().size();
  CHECK(DebuggerEntry::count() == before);
  std::array<std::optional<DebuggerEntry>, 3> entries;
  for (auto& entry : entries) entry.emplace(two_functions());
  REQUIRE(listed().size() == before + 3);
  const auto middle = listed()[1];
  CHECK(std::string(middle.data(), SELFMAG) == ELFMAG);
  entries[1].reset();
  for (const auto& file : listed()) CHECK(file.data() != middle.data());
  CHECK(listed().size() == before + 2);
  DebuggerEntry moved = std::move(*entries[2]);
  entries[2].reset();
  CHECK(listed().size() == before + 2);
  moved = {};
  entries[0].reset();
  CHECK(listed().size() == before);
  CHECK(descriptor().relevant == nullptr);
  CHECK(descriptor().action == 0);
}

TEST_CASE("threads and children of forks have a whole list", "[cpu][code][tools][threads]") {
  const std::size_t before = listed().size();
  const DebuggerEntry kept(two_functions());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([] {
      for (int i = 0; i < 4000; ++i) {
        const DebuggerEntry first(two_functions());
        DebuggerEntry second(two_functions());
        second = {};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(listed().size() == before + 1);
#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not follow threads into a fork
  CHECK(test::in_child([&] {
          const DebuggerEntry own(two_functions());
          return listed().size() == before + 2 ? 0 : 1;
        }) == 0);
#endif
}

}  // namespace nitinol::code_symbols_test
