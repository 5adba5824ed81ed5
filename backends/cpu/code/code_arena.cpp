// Executable memory in a few large mappings.
//
// One mapping per kernel exhausts vm.max_map_count in long runs, so blocks are cut from chunks of
// 16 MB, first fit. The memory is private, so that a fork copies it, and never writable and
// executable at once: a block has its pages for itself, which are writable until publish().
//
// Systems that let no page become executable later (PR_SET_MDWE, SELinux, systemd's
// MemoryDenyWriteExecute) mostly allow a memory file that is mapped twice, once for each. Such a
// chunk stays shared with the children of a fork: they do not write to it, and the parent never
// again to what was in use at the time.

#include "backends/cpu/code/code_arena.h"

#include "core/error.h"
#include "core/log.h"
#include "core/round_up.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace nitinol::cpu {
namespace {

constexpr std::size_t chunk_size = std::size_t{16} << 20;

struct Mapping {
  void* writable = nullptr;
  void* executable = nullptr;
};

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

/// Memory whose pages change between writable and executable; executable now.
Mapping map_private(std::size_t size) {
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  if (mprotect(memory, size, PROT_READ | PROT_EXEC) != 0) {
    munmap(memory, size);
    return {};
  }
  return {memory, memory};
}

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

/// By errno: too little memory, or a system that refuses it for good.
[[noreturn]] void fail() {
  if (errno == ENOMEM) throw std::bad_alloc();
  const std::string reason = std::strerror(errno);
  static std::atomic<bool> is_known = false;
  if (!is_known.exchange(true)) {
    log(LogLevel::warning,
        "the system grants no executable memory, so fused kernels are interpreted, which is "
        "slow: " +
            reason);
  }
  throw Error(ErrorKind::unsupported, {.where = "compile",
                                       .what = "the system grants no executable memory",
                                       .expected = {},
                                       .got = reason,
                                       .fix = "Set NITINOL_COMPILE=0 to run without it."});
}

}  // namespace

CodeBlock::~CodeBlock() {
  if (arena_ != nullptr) arena_->give_back(*this);
}

void CodeBlock::publish() const {
  if (writable_ == executable_ && mprotect(pages_, size_, PROT_READ | PROT_EXEC) != 0) fail();
  auto* const first = reinterpret_cast<char*>(const_cast<std::byte*>(executable_));
  __builtin___clear_cache(first, first + writable().size());
}

CodeArena::CodeArena() {
  // Before and after, because blocks are made until the fork itself.
  constexpr auto count = [] { ++code_arena().forks_; };
  pthread_atfork(count, count, count);
}

bool CodeArena::Chunk::is_foreign() const {
  return is_shared() && process != getpid();
}

bool CodeArena::take(Chunk& chunk, CodeBlock& block) {
  if (chunk.is_foreign()) return false;
  const auto fit = std::ranges::find_if(
      chunk.free, [&](const auto& range) { return range.second >= block.size_; });
  if (fit == chunk.free.end()) return false;
  const auto [offset, size] = *fit;
  std::byte* const pages = chunk.writable + offset;
  if (!chunk.is_shared() && mprotect(pages, block.size_, PROT_READ | PROT_WRITE) != 0) fail();
  if (size > block.size_) chunk.free.emplace(offset + block.size_, size - block.size_);
  chunk.free.erase(offset);
  block.arena_ = this;
  block.pages_ = pages;
  block.forks_ = forks_;
  block.writable_ = pages;
  block.executable_ = chunk.executable + offset;
  in_use_ += block.size_;
  return true;
}

void CodeArena::add_chunk(std::size_t least) {
  const std::size_t size = round_up(least, chunk_size);
  Mapping mapping = map_private(size);
  if (mapping.writable == nullptr) mapping = map_twice(size);
  if (mapping.writable == nullptr) fail();
  auto chunk = std::make_unique<Chunk>();
  chunk->writable = static_cast<std::byte*>(mapping.writable);
  chunk->executable = static_cast<const std::byte*>(mapping.executable);
  chunk->size = size;
  chunk->process = getpid();
  chunk->free.emplace(0, size);
  chunks_.push_back(std::move(chunk));
}

CodeBlock CodeArena::allocate(std::size_t bytes) {
  CodeBlock block;
  bytes = round_up(std::max<std::size_t>(bytes, 1), alignment);
  block.size_ = round_up(bytes, page_size());
  const std::lock_guard lock(mutex_);
  const auto has_room = [&](const auto& chunk) { return take(*chunk, block); };
  if (std::ranges::none_of(chunks_, has_room)) {
    add_chunk(block.size_);
    take(*chunks_.back(), block);
  }
  // Not all at the beginnings of pages, which share the same lines of the instruction cache.
  const std::size_t shift = turn_++ * alignment % (block.size_ - bytes + alignment);
  block.writable_ += shift;
  block.executable_ += shift;
  return block;
}

void CodeArena::give_back(const CodeBlock& block) {
  const std::lock_guard lock(mutex_);
  in_use_ -= block.size_;
  const auto at = std::ranges::find_if(chunks_, [&](const auto& chunk) {
    return block.pages_ >= chunk->writable && block.pages_ < chunk->writable + chunk->size;
  });
  Chunk& chunk = **at;
  if (chunk.is_shared() && block.forks_ != forks_) return;  // a child may run it
  auto& free = chunk.free;
  const auto offset = static_cast<std::size_t>(block.pages_ - chunk.writable);
  const auto here = free.emplace(offset, block.size_).first;
  const auto next = std::next(here);
  if (next != free.end() && here->first + here->second == next->first) {
    here->second += next->second;
    free.erase(next);
  }
  if (here == free.begin()) return;
  const auto before = std::prev(here);
  if (before->first + before->second == here->first) {
    before->second += here->second;
    free.erase(here);
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
