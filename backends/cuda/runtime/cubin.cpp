// What a cubin says of its functions: sections .text.<name>, whose header has the number of
// registers in the upper byte of sh_info, and .nv.info, a list of attributes. (NVIDIA documents
// neither; both as cuobjdump --dump-resource-usage shows them.)

#include "backends/cuda/runtime/compiler.h"
#include "core/error.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <optional>
#include <string_view>

namespace nitinol::cuda {
namespace {

/// Attributes of .nv.info with a symbol and a number: format 4, codes.
constexpr uint8_t sized_value = 4, frame_size = 0x11, min_stack_size = 0x12;
/// cubins of recent NVRTC say that they are of class 64 and of another version of the ABI, in which
/// registers stand in .nv.info too.
constexpr uint8_t register_count = 0x2f;

class CubinReader {
 public:
  explicit CubinReader(std::span<const std::byte> bytes) : bytes_(bytes) {
    header_ = at<Elf64_Ehdr>(0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != ELFCLASS64)
      fail();
    for (uint64_t i = 0; i < header_.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header_.e_shoff + i * header_.e_shentsize));
  }

  [[nodiscard]] std::vector<Resources> read() const {
    std::vector<Resources> list;
    for (const Elf64_Shdr& section : sections_) {
      constexpr std::string_view prefix = ".text.";
      const std::string_view name = name_of(section);
      if (!name.starts_with(prefix)) continue;
      list.push_back({.function = std::string(name.substr(prefix.size())),
                      .registers = static_cast<int>(section.sh_info >> 24),
                      .stack_bytes = 0,
                      .code_bytes = static_cast<int64_t>(section.sh_size)});
    }
    for (const Elf64_Shdr& section : sections_) {
      constexpr std::string_view prefix = ".nv.shared.";
      const std::string_view name = name_of(section);
      if (!name.starts_with(prefix)) continue;
      const auto found = std::ranges::find(list, name.substr(prefix.size()), &Resources::function);
      if (found != list.end()) found->shared_bytes = static_cast<int64_t>(section.sh_size);
    }
    for (const Elf64_Shdr& section : sections_) {
      if (name_of(section) == ".nv.info") read_info(section, list);
    }
    return list;
  }

 private:
  [[noreturn]] static void fail() {
    throw Error(ErrorKind::compile, {.where = "cubin", .what = "this is no cubin"});
  }
  template <class T>
  [[nodiscard]] T at(uint64_t offset) const {
    T value;
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof value) fail();
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  [[nodiscard]] std::string_view text_at(uint32_t table, uint64_t offset) const {
    if (table >= sections_.size()) fail();
    const Elf64_Shdr& strings = sections_[table];
    if (offset >= strings.sh_size || strings.sh_offset > bytes_.size() ||
        strings.sh_size > bytes_.size() - strings.sh_offset)
      fail();
    const auto* const first =
        reinterpret_cast<const char*>(bytes_.data() + strings.sh_offset + offset);
    return {first, ::strnlen(first, strings.sh_size - offset)};
  }
  [[nodiscard]] std::string_view name_of(const Elf64_Shdr& section) const {
    return text_at(header_.e_shstrndx, section.sh_name);
  }
  [[nodiscard]] std::string_view symbol(uint32_t number) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      const auto symbol = at<Elf64_Sym>(section.sh_offset + number * sizeof(Elf64_Sym));
      return text_at(section.sh_link, symbol.st_name);
    }
    return {};
  }

  void read_info(const Elf64_Shdr& section, std::vector<Resources>& list) const {
    for (uint64_t i = section.sh_offset; i + 4 <= section.sh_offset + section.sh_size;) {
      const auto format = at<uint8_t>(i), code = at<uint8_t>(i + 1);
      const auto bytes = at<uint16_t>(i + 2);
      if (format == sized_value && bytes == 8) {
        const std::string_view name = symbol(at<uint32_t>(i + 4));
        const auto found = std::ranges::find(list, name, &Resources::function);
        const auto number = at<uint32_t>(i + 8);
        if (found != list.end() && (code == frame_size || code == min_stack_size))
          found->stack_bytes = std::max<int64_t>(found->stack_bytes, number);
        if (found != list.end() && code == register_count)
          found->registers = static_cast<int>(number);
      }
      i += format == sized_value ? 4 + uint64_t{bytes} : 4;
    }
  }

  std::span<const std::byte> bytes_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace

std::vector<Resources> resources_of(std::span<const std::byte> cubin) {
  return CubinReader(cubin).read();
}

}  // namespace nitinol::cuda
