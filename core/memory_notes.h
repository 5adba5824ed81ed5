// Memory notes: which operation made each block of memory that lives, while somebody wants to know
// (jit/memory_snapshot.h).
//
// While nobody does, that costs nothing but the look at core/observed.h that ops, runs of a
// Program's steps and assignments of Variables have anyway or make out of line. A block is noted
// when an op or a step has made it, by who did; it is noticed when it goes by its `release`, which
// is replaced meanwhile.
#pragma once

#include "core/device.h"
#include "core/observed.h"
#include "core/op.h"
#include "core/place.h"
#include "core/profiling.h"
#include "core/tensor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::memory_notes {

/// Whether blocks are noted.
[[nodiscard]] inline bool is_on() {
  return (observed::by.load(std::memory_order_relaxed) & observed::by_memory) != 0;
}

/// begin() and end() count; blocks are noted in between. Those that live at the end stay noted.
void begin();
void end() noexcept;

/// A number that grows with each block that is noted.
[[nodiscard]] uint64_t number_now() noexcept;
/// What an op has given. What was noted from number `since` on was made for it, as by the steps of
/// a composite op.
void note(const Op& op, std::span<const Tensor> results, uint64_t since) noexcept;
/// What was made for a run of a Program's steps: by step number `step`, or for all of them.
void note_step(const std::shared_ptr<const profiling::Steps>& steps, std::size_t step,
               Storage& block) noexcept;
void note_temporaries(const std::shared_ptr<const profiling::Steps>& steps,
                      Storage& block) noexcept;
/// What was copied from the program's own memory.
void note_copied(const Tensor& tensor) noexcept;
/// A Variable has got another value. Either may be undefined.
void note_assigned(const Tensor& before, const Tensor& now) noexcept;

/// What blocks have in common: what made them, and where.
struct Maker {
  std::string name;
  std::vector<CallSite> places;
  std::size_t bytes = 0, blocks = 0;  ///< living
  std::size_t at_peak = 0;            ///< bytes that lived when most did
  uint64_t made = 0;                  ///< blocks in all
};
struct Block {
  std::size_t bytes = 0;
  Device device;
  uint32_t maker = 0;  ///< of Content::makers
  int64_t made_ns = 0;
  int holders = 0;  ///< Variables whose value or gradient it is
};
/// What living blocks of a maker have together.
struct Share {
  uint32_t maker = 0;  ///< of Content::makers
  std::size_t bytes = 0;
};
/// The most that lived from this time to that of the next point, and of which makers that was: of
/// those that had most.
struct Point {
  int64_t time_ns = 0;
  std::size_t bytes = 0;
  std::vector<Share> shares;
};
struct Content {
  std::vector<Maker> makers;
  std::vector<Block> blocks;
  std::vector<Point> points;
  std::size_t bytes = 0, peak = 0;
  int64_t begin_ns = 0, peak_ns = 0, now_ns = 0;
};
/// All that is noted now.
[[nodiscard]] Content content();

}  // namespace nitinol::memory_notes
