// What explain() tells of the segments of a function that looks at data (tracer/segments.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// Totals are of all calls so far, and of all signatures.
struct SegmentsReport {
  /// A look of host code at a value, and how often it came.
  struct Look {
    std::string what;            ///< "bool(tensor)"
    std::string place;           ///< "file:line", or empty
    const void* site = nullptr;  ///< what tells it from others of a segment
    uint32_t line = 0;
    uint64_t count = 0;
    uint64_t true_count = 0;  ///< of those that gave a bool
    bool is_bool = false;
  };
  /// The ops from one look to the next, whichever calls did them.
  struct Segment {
    std::size_t ops = 0;
    uint64_t visits = 0;      ///< how often it came
    std::size_t plans = 0;    ///< one for each set of values that was needed after it
    std::string first, last;  ///< where its first and last op were applied, or empty
    std::vector<Look> looks;  ///< that ended it
  };
  std::vector<Segment> segments;  ///< the most visited ones first
  uint64_t calls = 0;
  uint64_t matched = 0;   ///< ops that earlier calls had done, left to a Plan
  uint64_t computed = 0;  ///< ops that were computed at once, or one by one
  uint64_t cuts = 0, cuts_by_plan = 0;
  uint64_t plans = 0;             ///< made so far
  uint64_t run_time_numbers = 0;  ///< numbers of host code that come with each run
  uint64_t crowded = 0;  ///< how often a place had had so many sizes that ops were not noted
  std::vector<std::pair<std::string, uint64_t>> crowded_at;  ///< the first such places: how often
};

}  // namespace nitinol

#pragma GCC visibility pop
