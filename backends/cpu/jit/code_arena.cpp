// Executable memory in a few large mappings.
//
// One mapping per kernel exhausts vm.max_map_count in long runs, and switching pages between
// writable and executable stops other threads that run code on the same page. So each chunk of
// 16 MB is one memory file mapped twice, once writable and once executable, and blocks are cut
// from it, first fit. A system that forbids executable memory files gets one mapping that is both.

#include "backends/cpu/jit/code_arena.h"

#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <sys/mman.h>
#include <unistd.h>

namespace nitinol::cpu {
namespace {

constexpr std::size_t chunk_size = std::size_t{16} << 20;

struct Mapping {
  void* writable = nullptr;
  void* executable = nullptr;
};

Mapping map_twice(std::size_t size) {
  const int file = memfd_create("nitinol-code", MFD_CLOEXEC);
  if (file < 0) return {};
  Mapping mapping;
  if (ftruncate(file, static_cast<off_t>(size)) == 0) {
    void* const writable = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void* const executable = mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    if (writable != MAP_FAILED && executable != MAP_FAILED) {
      mapping = {writable, executable};
    } else {
      if (writable != MAP_FAILED) munmap(writable, size);
      if (executable != MAP_FAILED) munmap(executable, size);
    }
  }
  close(file);
  return mapping;
}

Mapping map_once(std::size_t size) {
  void* const both =
      mmap(nullptr, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (both == MAP_FAILED) return {};
  return {both, both};
}

}  // namespace

CodeBlock::~CodeBlock() {
  if (arena_ != nullptr) arena_->give_back(*this);
}

void CodeBlock::publish() const {
  auto* const first = reinterpret_cast<char*>(const_cast<std::byte*>(executable_));
  __builtin___clear_cache(first, first + size_);
}

bool CodeArena::take(Chunk& chunk, CodeBlock& block) {
  const auto fit = std::ranges::find_if(
      chunk.free, [&](const auto& range) { return range.second >= block.size_; });
  if (fit == chunk.free.end()) return false;
  const auto [offset, size] = *fit;
  chunk.free.erase(fit);
  if (size > block.size_) chunk.free.emplace(offset + block.size_, size - block.size_);
  block.arena_ = this;
  block.writable_ = chunk.writable + offset;
  block.executable_ = chunk.executable + offset;
  in_use_ += block.size_;
  return true;
}

CodeBlock CodeArena::allocate(std::size_t bytes) {
  CodeBlock block;
  block.size_ = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  const std::lock_guard lock(mutex_);
  for (const auto& chunk : chunks_) {
    if (take(*chunk, block)) return block;
  }
  const std::size_t size = (block.size_ + chunk_size - 1) / chunk_size * chunk_size;
  Mapping mapping = map_twice(size);
  if (mapping.writable == nullptr) mapping = map_once(size);
  if (mapping.writable == nullptr) {
    throw Error(ErrorKind::compile, {.where = "compile",
                                     .what = "the system grants no executable memory",
                                     .got = std::strerror(errno),
                                     .fix = "Set NITINOL_COMPILE=0 to run without it."});
  }
  auto chunk = std::make_unique<Chunk>();
  chunk->writable = static_cast<std::byte*>(mapping.writable);
  chunk->executable = static_cast<const std::byte*>(mapping.executable);
  chunk->size = size;
  chunk->free.emplace(0, size);
  chunks_.push_back(std::move(chunk));
  take(*chunks_.back(), block);
  return block;
}

void CodeArena::give_back(const CodeBlock& block) {
  const std::lock_guard lock(mutex_);
  for (const auto& chunk : chunks_) {
    if (block.writable_ < chunk->writable || block.writable_ >= chunk->writable + chunk->size) {
      continue;
    }
    auto& free = chunk->free;
    auto here =
        free.emplace(static_cast<std::size_t>(block.writable_ - chunk->writable), block.size_)
            .first;
    const auto next = std::next(here);
    if (next != free.end() && here->first + here->second == next->first) {
      here->second += next->second;
      free.erase(next);
    }
    if (here != free.begin()) {
      const auto before = std::prev(here);
      if (before->first + before->second == here->first) {
        before->second += here->second;
        free.erase(here);
      }
    }
    in_use_ -= block.size_;
    return;
  }
}

std::size_t CodeArena::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

CodeArena& code_arena() {
  static CodeArena* const arena = new CodeArena;
  return *arena;
}

}  // namespace nitinol::cpu
