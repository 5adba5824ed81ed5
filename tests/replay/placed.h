// Placed: the memory of a case, between pages that nobody may touch.
#pragma once

#include "tests/cuda/case.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace nitinol::test {

/// At which end of an operand's memory the forbidden page is. Addresses keep their remainder modulo
/// 64, so up to 63 bytes may lie between; they are looked at afterwards.
enum class Fence : uint8_t { behind, before };

/// Whole pages with a forbidden one on each side.
class FencedPages {
 public:
  FencedPages(std::size_t bytes, std::size_t misalignment_of_start, Fence fence);
  FencedPages(const FencedPages&) = delete;
  FencedPages& operator=(const FencedPages&) = delete;
  ~FencedPages();
  [[nodiscard]] std::byte* start() const { return start_; }
  /// Whether the bytes around are as they were.
  [[nodiscard]] bool is_untouched() const;
  /// Whether the bytes inside are as they were made, too: nothing was written at all.
  [[nodiscard]] bool is_as_made() const;

 private:
  std::byte* pages_;
  std::size_t page_bytes_, bytes_;
  std::byte* start_;
};

class PlacedCase {
 public:
  PlacedCase(const Case& value, Fence fence);
  /// Everything as before the launch; elements that are to be written are poisoned.
  void reset();
  [[nodiscard]] const std::vector<void*>& buffers() const { return buffers_; }
  /// What is not as it should be after the launch, or an empty text. `has_run`: results are there;
  /// else nothing may have been written.
  [[nodiscard]] std::string failure(bool has_run) const;

 private:
  [[nodiscard]] const std::vector<std::byte>& initial(std::size_t k) const { return initial_[k]; }
  const Case& case_;
  std::vector<std::unique_ptr<FencedPages>> pages_;
  std::vector<void*> buffers_;
  std::vector<std::vector<std::byte>> initial_;
};

}  // namespace nitinol::test
