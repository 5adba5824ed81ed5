// CodeArena: executable memory for all kernels of the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
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

  /// Where the bytes are written; not executable.
  [[nodiscard]] std::span<std::byte> writable() const { return {writable_, size_}; }
  /// Where the same bytes run; not writable.
  [[nodiscard]] const std::byte* executable() const { return executable_; }
  /// Makes what was written visible to instruction fetch. Call it before running the code.
  void publish() const;

 private:
  friend class CodeArena;
  void swap(CodeBlock& other) noexcept {
    std::swap(arena_, other.arena_);
    std::swap(writable_, other.writable_);
    std::swap(executable_, other.executable_);
    std::swap(size_, other.size_);
  }
  CodeArena* arena_ = nullptr;
  std::byte* writable_ = nullptr;
  const std::byte* executable_ = nullptr;
  std::size_t size_ = 0;
};

/// Thread-safe. Memory is never given back to the system, only reused.
class CodeArena {
 public:
  static constexpr std::size_t alignment = 64;

  /// At least `bytes`, aligned. Throws Error(compile) if the system grants no executable memory.
  [[nodiscard]] CodeBlock allocate(std::size_t bytes);
  /// Bytes in blocks that are alive.
  [[nodiscard]] std::size_t in_use() const;

 private:
  friend class CodeBlock;
  struct Chunk {
    std::byte* writable = nullptr;
    const std::byte* executable = nullptr;
    std::size_t size = 0;
    std::map<std::size_t, std::size_t> free;  ///< offset -> bytes; neighbours are merged
  };
  bool take(Chunk& chunk, CodeBlock& block);
  void give_back(const CodeBlock& block);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::size_t in_use_ = 0;
};

/// The process's arena; never destroyed, because kernels may outlive static objects.
[[nodiscard]] CodeArena& code_arena();

}  // namespace nitinol::cpu
