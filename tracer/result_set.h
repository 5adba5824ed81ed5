// Sets of a segment's results.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nitinol::tracer {

/// Some of a segment's results, 64 a word.
class ResultSet {
 public:
  explicit ResultSet(std::size_t count) : others_(count / 64) {}
  [[nodiscard]] bool contains(std::size_t v) const { return (word(v) >> v % 64 & 1U) != 0; }
  void add(std::size_t v) { word(v) |= uint64_t{1} << v % 64; }
  void remove(std::size_t v) { word(v) &= ~(uint64_t{1} << v % 64); }
  void add_if(std::size_t v, bool is_one) { word(v) |= uint64_t{is_one} << v % 64; }
  void clear() {
    first_ = 0;
    std::ranges::fill(others_, 0);
  }
  void keep_only(const ResultSet& other) {
    first_ &= other.first_;
    for (std::size_t i = 0; i < others_.size(); ++i) others_[i] &= other.others_[i];
  }
  void add_all(const ResultSet& other) {
    first_ |= other.first_;
    for (std::size_t i = 0; i < others_.size(); ++i) others_[i] |= other.others_[i];
  }
  [[nodiscard]] bool contains_all(const ResultSet& other) const {
    bool is_all = (other.first_ & ~first_) == 0;
    for (std::size_t i = 0; i < others_.size(); ++i)
      is_all = is_all && (other.others_[i] & ~others_[i]) == 0;
    return is_all;
  }
  [[nodiscard]] bool is_empty() const {
    uint64_t all = first_;
    for (const uint64_t word : others_) all |= word;
    return all == 0;
  }
  friend bool operator==(const ResultSet&, const ResultSet&) = default;

 private:
  [[nodiscard]] uint64_t& word(std::size_t v) { return v < 64 ? first_ : others_[v / 64 - 1]; }
  [[nodiscard]] const uint64_t& word(std::size_t v) const {
    return v < 64 ? first_ : others_[v / 64 - 1];
  }

  uint64_t first_ = 0;
  std::vector<uint64_t> others_;  ///< of more than 63: most have none
};

}  // namespace nitinol::tracer
