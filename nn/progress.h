// Progress: how far a loop is, how fast, and how long it will still take.
//
//     nn::Progress progress({.name = "train", .steps = 900, .items = 64, .unit = "images"});
//     for (int64_t i = 0; i < 900; ++i) progress.step(fmt::format("loss {:.4f}", …));
//
// On a terminal one line changes in place; in a file or pipe there are a few plain lines:
//
//     train     300/900  loss 0.2461  61,240 images/s  0:09 left
#pragma once

#include "core/integer.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// Whether the line changes in place.
enum class ProgressStyle : uint8_t {
  automatic,  ///< if the stream is a terminal
  in_place,
  lines,
  on_terminal,  ///< in place on a terminal; else nothing is written
  none,         ///< nothing is written
};

struct ProgressOptions {
  std::string name = {};       ///< begins the line
  Integer steps = 1;           ///< in all
  Integer items = 1;           ///< in a step: what the throughput counts
  std::string unit = "steps";  ///< of items, as in "61,240 images/s"
  std::FILE* stream = stdout;
  ProgressStyle style = ProgressStyle::automatic;
  Integer lines = 4;  ///< at most so many, where the line does not change in place
};

/// How far a loop is, how fast, and how long it will take. Lines that are not the last are left out
/// when they would come too often (ten in a second), so that step() costs little in a fast loop.
class Progress {
 public:
  /// Begins to measure. Throws Error(value) for steps, items or lines below 1 and for no stream.
  explicit Progress(ProgressOptions options);

  /// Says that one more step is done. `remark` is shown as it is: a loss, an accuracy. Steps beyond
  /// the last are not shown.
  void step(const std::string& remark = {});

  /// Whether step() would write now; to leave out work for the remark, such as reading the loss.
  [[nodiscard]] bool is_due() const;

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::string text(const std::string& remark) const;

  ProgressOptions options_;
  bool is_in_place_, is_silent_;
  int64_t done_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = {};  ///< when a line was written last
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
