// Hash: words mixed one after another. Equal sequences give equal hashes within a process; none is
// kept beyond it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace nitinol {

class Hash {
 public:
  template <class T>
  void add(T word) {
    state_ = (std::rotl(state_, 23) ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15U;
  }
  template <class List>
  void add_all(const List& words) {
    for (const auto& word : words) add(word);
  }
  [[nodiscard]] std::size_t result() const { return state_ ^ state_ >> 32; }

 private:
  uint64_t state_ = 0;
};

}  // namespace nitinol
