// tests/exports_test.cpp -- Reads the built library as the dynamic linker does: what it exports,
// and what it asks for.
//
// The tests themselves run with another file that shows more (tests/internals); this is about the
// one that users get.

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#ifdef NITINOL_LIBRARY_FILE

namespace {

/// A shared library, from its file.
class Library {
 public:
  explicit Library(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    INFO(path);
    REQUIRE(bytes_.starts_with(ELFMAG));
  }

  /// Mangled names that others can use, sorted.
  [[nodiscard]] std::vector<std::string> exported() const { return symbols(false); }
  /// Those that others have to define, sorted.
  [[nodiscard]] std::vector<std::string> imported() const { return symbols(true); }

  /// Bytes of memory that each thread has because this library is there.
  [[nodiscard]] uint64_t bytes_of_thread() const {
    uint64_t bytes = 0;
    for (const auto& segment : table<Elf64_Phdr>(header().e_phoff, header().e_phnum)) {
      if (segment.p_type == PT_TLS) bytes += segment.p_memsz;
    }
    return bytes;
  }

  [[nodiscard]] std::vector<std::string> needed() const {
    std::vector<std::string> names;
    uint64_t strings = 0;
    for (const auto& entry : dynamic()) {
      if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;  // the first segment begins at 0
    }
    for (const auto& entry : dynamic()) {
      if (entry.d_tag == DT_NEEDED) names.emplace_back(bytes_.data() + strings + entry.d_un.d_val);
    }
    return names;
  }

  [[nodiscard]] bool has_static_tls() const {
    return std::ranges::any_of(dynamic(), [](const Elf64_Dyn& entry) {
      return entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_STATIC_TLS) != 0;
    });
  }

 private:
  [[nodiscard]] std::vector<std::string> symbols(bool are_undefined) const {
    std::vector<std::string> names;
    for (const auto& section : table<Elf64_Shdr>(header().e_shoff, header().e_shnum)) {
      if (section.sh_type != SHT_DYNSYM) continue;
      const auto strings = at<Elf64_Shdr>(header().e_shoff + section.sh_link * sizeof(Elf64_Shdr));
      for (const auto& symbol :
           table<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
        if ((symbol.st_shndx == SHN_UNDEF) != are_undefined) continue;
        names.emplace_back(bytes_.data() + strings.sh_offset + symbol.st_name);
      }
    }
    std::ranges::sort(names);
    return names;
  }

  template <class T>
  [[nodiscard]] T at(uint64_t offset) const {
    T value;
    REQUIRE(offset + sizeof value <= bytes_.size());
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  template <class T>
  [[nodiscard]] std::vector<T> table(uint64_t offset, uint64_t count) const {
    std::vector<T> entries;
    for (uint64_t i = 0; i < count; ++i) entries.push_back(at<T>(offset + i * sizeof(T)));
    return entries;
  }
  [[nodiscard]] Elf64_Ehdr header() const { return at<Elf64_Ehdr>(0); }
  [[nodiscard]] std::vector<Elf64_Dyn> dynamic() const {
    for (const auto& segment : table<Elf64_Phdr>(header().e_phoff, header().e_phnum)) {
      if (segment.p_type != PT_DYNAMIC) continue;
      return table<Elf64_Dyn>(segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn));
    }
    return {};
  }

  std::string bytes_;
};

// Whether a mangled name is of namespace nitinol: a function, method, variable, type information,
// virtual table or static variable. A template of std or fmt over our types is not.
bool is_ours(std::string_view mangled) {
  for (const std::string_view start :
       {"_ZN", "_ZNK", "_ZTIN", "_ZTSN", "_ZTVN", "_ZZN", "_ZZNK", "_ZGVN", "_ZGVZN", "_ZGVZNK"}) {
    if (mangled.starts_with(start) && mangled.substr(start.size()).starts_with("7nitinol")) {
      return true;
    }
  }
  return mangled.starts_with("nitinol_") || mangled == "__jit_debug_register_code" ||
         mangled == "__jit_debug_descriptor";  // debuggers look for these
}

}  // namespace

TEST_CASE("the library exports names of its own and no others", "[tree][exports]") {
  const std::vector<std::string> exported = Library(NITINOL_LIBRARY_FILE).exported();
  for (const std::string& name : exported) {
    if (!is_ours(name)) FAIL_CHECK("exported, but not of namespace nitinol: " + name);
  }
  // 559 on 22 November 2026; it was 1,518, with 281 of fmt, std and nlohmann, before names were
  // hidden. More than that many new functions at once are rather a header that should be internal.
  CHECK(exported.size() > 500);
  CHECK(exported.size() < 1400);  // 1,140 on 27 November: layers and optimizers have several each
}

TEST_CASE("what users throw, catch and derive from is exported, what is internal is not",
          "[tree][exports]") {
  const std::vector<std::string> list = Library(NITINOL_LIBRARY_FILE).exported();
  const std::set<std::string> exported(list.begin(), list.end());
  CHECK(exported.contains("_ZTIN7nitinol5ErrorE"));
  CHECK(exported.contains("_ZTVN7nitinol5ErrorE"));
  CHECK(exported.contains("_ZTIN7nitinol2nn9OptimizerE"));
  CHECK(exported.contains("_ZTIN7nitinol11InterpreterE"));
  for (const std::string& name : list) {
    for (const std::string_view internal : {"_ZN7nitinol3cpu", "_ZN7nitinol4host"}) {
      if (name.starts_with(internal)) FAIL_CHECK("internal, but exported: " + name);
    }
  }
  CHECK_FALSE(exported.contains("_ZN7nitinol3jit8simplifyENS_5GraphE"));
  CHECK(exported.contains("__jit_debug_register_code"));
  CHECK(exported.contains("__jit_debug_descriptor"));
}

TEST_CASE("the library can be opened by a program that does not link it", "[tree][exports]") {
  // Its variables of threads are at fixed places (initial-exec), for which glibc keeps a reserve:
  // 512 bytes unless told otherwise (glibc.rtld.optional_static_tls), and some for libraries of its
  // own.
  const Library library(NITINOL_LIBRARY_FILE);
  INFO("static: " << library.has_static_tls());
  CHECK(library.bytes_of_thread() <= 640);
}

TEST_CASE("the library opens LLVM at the first need, not before", "[tree][exports]") {
  for (const std::string& name : Library(NITINOL_LIBRARY_FILE).needed()) {
    CHECK_FALSE(name.starts_with("libLLVM"));
    CHECK_FALSE(name.starts_with("libnitinol_llvm"));
  }
}

#  ifdef NITINOL_PLUGIN_FILE
TEST_CASE("the plugin exports its entry, asks for the library, and shows no LLVM",
          "[tree][exports]") {
  const Library plugin(NITINOL_PLUGIN_FILE);
  CHECK(plugin.exported() == std::vector<std::string>{"nitinol_llvm_plugin"});
  const std::vector<std::string> needed = plugin.needed();
  CHECK(std::ranges::any_of(
      needed, [](const std::string& name) { return name.starts_with("libnitinol.so"); }));
  CHECK(plugin.bytes_of_thread() <= 64);  // of glibc's reserve, which the library uses too
}

// backends/cpu/jit/reserve.cpp: LLVM ends the process where an allocation fails, and its static
// objects must outlive everything.
TEST_CASE("the plugin allocates and registers destructors by its own functions only",
          "[tree][exports]") {
  for (const std::string& name : Library(NITINOL_PLUGIN_FILE).imported()) {
    INFO(name);
    // Member functions of std::string, which allocate, lie in libstdc++ unless instantiated here.
    CHECK_FALSE(name.starts_with("_ZNSt7__cxx1112basic_stringI"));
    CHECK(name != "strdup");
    CHECK(name != "__cxa_atexit");
  }
}
#  endif

#endif
