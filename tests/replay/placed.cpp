#include "tests/replay/placed.h"

#include "core/error.h"
#include "core/round_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace nitinol::test {
namespace {

constexpr std::size_t page = 4096;
constexpr std::byte around{0xa5}, poison{0xcb};

}  // namespace

FencedPages::FencedPages(std::size_t bytes, std::size_t misalignment, Fence fence)
    : page_bytes_(round_up(bytes + 128, page) + 2 * page), bytes_(bytes) {
  void* const at =
      ::mmap(nullptr, page_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw Error(ErrorKind::internal, {.where = "replay", .what = "no memory"});
  pages_ = static_cast<std::byte*>(at);
  std::byte* const first = pages_ + page;
  std::byte* const end = pages_ + page_bytes_ - page;
  std::fill(first, end, around);
  if (fence == Fence::before) {
    start_ = first + misalignment;
  } else {
    start_ = end - bytes;
    start_ -= (reinterpret_cast<uintptr_t>(start_) + 64 - misalignment) % 64;
  }
  ::mprotect(pages_, page, PROT_NONE);
  ::mprotect(end, page, PROT_NONE);
}

FencedPages::~FencedPages() {
  ::munmap(pages_, page_bytes_);
}

bool FencedPages::is_untouched() const {
  const auto is_around = [](std::byte b) { return b == around; };
  return std::all_of(pages_ + page, start_, is_around) &&
         std::all_of(start_ + bytes_, pages_ + page_bytes_ - page, is_around);
}

bool FencedPages::is_as_made() const {
  return is_untouched() &&
         std::all_of(start_, start_ + bytes_, [](std::byte b) { return b == around; });
}

PlacedCase::PlacedCase(const Case& value, Fence fence) : case_(value) {
  const std::size_t operands = value.kernel.operands.size();
  pages_.resize(operands);
  buffers_.resize(operands);
  initial_.resize(operands);
  for (std::size_t k = 0; k < operands; ++k) {
    const CaseMemory& memory = value.memory[k];
    const Role role = value.kernel.operands[k].role;
    if (role != Role::input && role != Role::output) continue;
    initial_[k] = memory.before;
    if (memory.same_as >= 0) {
      buffers_[k] = buffers_[static_cast<std::size_t>(memory.same_as)];
      continue;
    }
    const auto start = static_cast<std::size_t>(
        (static_cast<int64_t>(memory.misalignment) - memory.first % 64 + 64) % 64);
    pages_[k] = std::make_unique<FencedPages>(memory.before.size(), start, fence);
    buffers_[k] = pages_[k]->start() + memory.first;
    const bool is_taken = std::ranges::any_of(value.memory, [k](const CaseMemory& other) {
      return other.same_as == static_cast<int32_t>(k);
    });
    if (role != Role::output || is_taken) continue;
    const std::size_t bytes = size_of(value.kernel.operands[k].dtype);
    for_each_element(value, k, [&](int64_t offset) {
      const auto at = static_cast<std::size_t>(memory.first + offset * static_cast<int64_t>(bytes));
      std::fill_n(initial_[k].begin() + static_cast<std::ptrdiff_t>(at), bytes, poison);
    });
  }
}

void PlacedCase::reset() {
  for (std::size_t k = 0; k < pages_.size(); ++k) {
    if (pages_[k]) std::ranges::copy(initial_[k], pages_[k]->start());
  }
}

std::string PlacedCase::failure(bool has_run) const {
  for (std::size_t k = 0; k < pages_.size(); ++k) {
    const CaseMemory& memory = case_.memory[k];
    const Role role = case_.kernel.operands[k].role;
    if (pages_[k] && !pages_[k]->is_untouched())
      return fmt::format("operand {}: something was written beside its memory", k);
    if (buffers_[k] == nullptr) continue;
    const std::byte* const start = static_cast<std::byte*>(buffers_[k]) - memory.first;
    const bool is_result = std::ranges::any_of(case_.memory, [&](const CaseMemory& other) {
      return other.same_as == static_cast<int32_t>(k);
    });
    if (has_run && role == Role::output) {
      if (std::string text = difference(case_, k, start); !text.empty()) return text;
    } else if (pages_[k] && (!has_run || !is_result) &&
               std::memcmp(start, initial_[k].data(), initial_[k].size()) != 0) {
      return fmt::format("operand {}: was written, which should not be", k);
    }
  }
  return {};
}

}  // namespace nitinol::test
