#include "backends/host/fences.h"

#include "backends/host/allocator.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/round_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>
#include <sys/mman.h>

namespace nitinol::host {
namespace {

constexpr std::byte untouched{0xA7};

/// In the line before the data.
struct FencedBlock : Storage {
  std::byte* pages;
  std::size_t mapped;  ///< bytes from `pages`, with the page without access
};
static_assert(sizeof(FencedBlock) <= line);

void release_fenced(Storage* storage) noexcept {
  const auto* const block = static_cast<FencedBlock*>(storage);
  const auto* const data = static_cast<const std::byte*>(block->data);
  const std::byte* const end = data + block->bytes;
  const std::byte* const fence = data + round_up(block->bytes, line);
  if (std::any_of(end, fence, [](std::byte byte) { return byte != untouched; })) {
    std::fputs(
        fmt::format("nitinol: memory of {} bytes was written to behind its end\n", block->bytes)
            .c_str(),
        stderr);
    std::abort();
  }
  munmap(block->pages, block->mapped);
}

}  // namespace

bool has_fences() {
  static constexpr std::array<std::string_view, 2> values = {"0", "1"};
  static const bool wanted = environment_choice("NITINOL_FENCES", values) == 1;
  return wanted;
}

StorageHandle allocate_fenced(std::size_t bytes) {
  const std::size_t size = round_up(bytes, line), inside = round_up(line + size, page);
  void* const memory =
      mmap(nullptr, inside + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, inside, PROT_READ | PROT_WRITE) != 0) {
    throw Error(ErrorKind::value, {.where = "allocate",
                                   .what = fmt::format("{} bytes between fences", bytes),
                                   .got = "no memory, or more mappings than vm.max_map_count",
                                   .fix = "Unset NITINOL_FENCES."});
  }
  auto* const pages = static_cast<std::byte*>(memory);
  std::byte* const data = pages + inside - size;
  std::fill(data + bytes, data + size, untouched);
  auto* const block = new (data - line) FencedBlock;
  block->pages = pages;
  block->mapped = inside + page;
  block->references.store(1, std::memory_order_relaxed);
  block->data = data;
  block->bytes = bytes;
  block->release = release_fenced;
  return adopt<Storage>(block);
}

}  // namespace nitinol::host
