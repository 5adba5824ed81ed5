// CodeArena: executable memory for all kernels of the process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace nitinol::cpu {

class CodeArena;

/// Executable bytes, given back to the arena when destroyed.
class CodeBlock {
 public:
  CodeBlock() = default;
  CodeBlock(CodeBlock&& other) noexcept { swap(other); }
  CodeBlock& operator=(CodeBlock other) noexcept {
    swap(other);
    return *this;
  }
  ~CodeBlock();

  /// Where the bytes are written until publish().
  [[nodiscard]] std::span<std::byte> writable() const {
    return {writable_, size_ - static_cast<std::size_t>(writable_ - pages_)};
  }
  /// Where the same bytes run after publish().
  [[nodiscard]] const std::byte* executable() const { return executable_; }
  /// Makes what was written executable. Throws like CodeArena::allocate().
  void publish() const;

 private:
  friend class CodeArena;
  void swap(CodeBlock& other) noexcept {
    std::swap(arena_, other.arena_);
    std::swap(pages_, other.pages_);
    std::swap(forks_, other.forks_);
    std::swap(writable_, other.writable_);
    std::swap(executable_, other.executable_);
    std::swap(size_, other.size_);
  }
  CodeArena* arena_ = nullptr;
  std::byte* pages_ = nullptr;  ///< its pages, for itself
  uint64_t forks_ = 0;          ///< the arena's count when it was made
  std::byte* writable_ = nullptr;
  const std::byte* executable_ = nullptr;
  std::size_t size_ = 0;
};

/// Thread-safe. Memory is never given back to the system, only reused.
class CodeArena {
 public:
  CodeArena();
  static constexpr std::size_t alignment = 64;

  /// At least `bytes`, aligned. Throws Error(unsupported) if the system refuses executable memory,
  /// std::bad_alloc if it has too little.
  [[nodiscard]] CodeBlock allocate(std::size_t bytes);
  /// Bytes in blocks that are alive.
  [[nodiscard]] std::size_t in_use() const;

 private:
  friend class CodeBlock;
  struct Chunk {
    std::byte* writable = nullptr;
    const std::byte* executable = nullptr;
    std::size_t size = 0;
    pid_t process = 0;  ///< that made it
    [[nodiscard]] bool is_shared() const { return writable != executable; }
    [[nodiscard]] bool is_foreign() const;    ///< its free part is another process's to write
    std::map<std::size_t, std::size_t> free;  ///< offset -> bytes; neighbours are merged
  };
  bool take(Chunk& chunk, CodeBlock& block);
  void add_chunk(std::size_t least);
  void give_back(const CodeBlock& block);

  mutable std::mutex mutex_;  ///< no fork happens meanwhile: core/fork.h, NoFork
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::size_t in_use_ = 0;
  std::size_t turn_ = 0;
  std::atomic<uint64_t> forks_ = 0;  ///< changes with each fork
};

/// The process's arena; never destroyed, because kernels may outlive static objects.
[[nodiscard]] CodeArena& code_arena();

}  // namespace nitinol::cpu
