// Segments: what the calls of a function that looks at data did between looks, as a trie of steps.
//
// A segment is the ops from one cut to the next: from the call's begin, or a look of host code at
// a value that they made, to the next such look or the call's end. It is found by what it does, not
// by where it stands in the program: operands are numbered relative to it. So the body of a loop is
// found again in each iteration, and what follows a branch is one for both of its sides.
#pragma once

#include "core/fork.h"
#include "core/interpreter.h"
#include "core/place.h"
#include "core/result_check.h"
#include "tracer/result_set.h"
#include "tracer/segments_report.h"
#include "tracer/trace.h"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nitinol::tracer {

/// What an operand of a step is: the segment's result number so and so, its import number so and
/// so (a tensor from outside, in order of first use), or a host number.
using OperandCode = uint32_t;
inline constexpr OperandCode import_bit = 0x80000000U, number_code = 0xffffffffU;
[[nodiscard]] constexpr bool is_import(OperandCode code) {
  return code >= import_bit && code != number_code;
}

/// What of an import a program depends on.
struct Layout {
  Spec spec;
  Strides strides;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// A number that host code gave as an operand.
struct NumberPlace {
  NumberPlace(const Spec& of, uint64_t first) : spec(of), bits(first) {}
  NumberPlace(NumberPlace&& other) noexcept : spec(other.spec), bits(other.bits) {}  // before use
  Spec spec;
  uint64_t bits;  ///< the first value
  /// From the second value on it is no part of what the segment does, but comes with each run.
  std::atomic<bool> is_run_time = false;
};

/// A result of a segment that becomes the value of a Variable whose old value it has imported.
struct NewValue {
  uint32_t result = 0, import = 0;
};

/// Runs what a segment leaves behind: a cut, compiled.
class CutProgram {
 public:
  CutProgram() = default;
  virtual ~CutProgram() = default;
  CutProgram(const CutProgram&) = delete;
  CutProgram& operator=(const CutProgram&) = delete;
  struct Inputs {
    std::span<const Tensor* const> imports;
    std::span<const uint64_t> numbers;
    /// One per Compiled's `replaced`, which it may store over if nobody else sees it, or null; or
    /// none at all.
    std::span<const Tensor* const> lent;
    const ValueOf* value_of;  ///< of the imports, or null
  };
  /// False, with nothing changed, if the ops are to be run one by one.
  [[nodiscard]] virtual bool run(const Inputs& inputs, std::span<Tensor> results) const = 0;
};

/// An end of a segment, with the values that somebody still holds, and uses as far as is known.
struct Cut {
  explicit Cut(ResultSet values) : live(std::move(values)) {}
  ResultSet live;
  uint64_t last_use = 0;
  uint64_t widened = 0;  ///< how many numbers of the function were, when `compiled` was last right
  bool is_being_compiled = false;
  bool is_hopeless = false;  ///< compiling it has failed
  struct Compiled {
    explicit Compiled(ResultSet values) : live(std::move(values)) {}
    ResultSet live;
    std::shared_ptr<const CutProgram> program;
    std::vector<uint32_t> results;   ///< the values that it gives
    std::vector<uint32_t> numbers;   ///< those of the run that it takes
    std::vector<NewValue> replaced;  ///< at the end of the call for which it was made
    std::size_t run_time_numbers = 0;
  };
  std::shared_ptr<const Compiled> compiled;
};

/// One op, after those on the way from the root. All up to `place` is constant.
struct Step {
  const Step* before = nullptr;
  const Op* op = nullptr;
  Attrs attrs;
  boost::container::small_vector<OperandCode, 4> operands;
  std::vector<Layout> imports;  ///< those that it is the first to use
  boost::container::small_vector<NumberPlace, 1> numbers;
  Spec spec;  ///< of the result
  Strides strides;
  int returned = -1;  ///< the operand that is the result, or -1
  CallSite place;

  Step* next = nullptr;  ///< another one after the same
  std::atomic<Step*> first = nullptr, latest = nullptr;
  // Of the end of a segment, guarded by Segments::mutex:
  uint64_t visits = 0;
  std::optional<ResultSet> used;  ///< results that calls have used after it
  std::vector<std::unique_ptr<Cut>> cuts;
  std::vector<SegmentsReport::Look> looks;
};

/// The trie of one function on so many threads. Steps are followed without a lock, added under one,
/// and live as long as it does.
class Segments {
 public:
  /// For calls on so many threads, whose results are looked through for this.
  explicit Segments(int threads, ResultCheck check = ResultCheck::none)
      : threads_(threads), result_check_(check) {}
  /// In place of one that is outlived. It is kept for twice as many calls: a function that does
  /// more than is ever noted does not note and compile all the time.
  explicit Segments(const Segments* outlived)
      : threads_(outlived->threads_),
        result_check_(outlived->result_check_),
        most_misses_(std::min(2 * outlived->most_misses_, 1 << 20)) {}
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] ResultCheck result_check() const { return result_check_; }
  [[nodiscard]] Step& root() { return root_; }
  /// Whether nothing is added any more, and calls find little of what they do: the next one is
  /// given another trie. One that is full and found is better than an empty one.
  [[nodiscard]] bool is_outlived() const {
    return misses_.load(std::memory_order_relaxed) >= most_misses_;
  }

  /// Adds a step after `before`, or gives null: there are too many like it there, or in all.
  Step* add(Step& before, std::unique_ptr<Step> step);
  /// Makes the step's numbers come with each run.
  void widen(Step& step, std::span<const uint64_t> bits);

  /// What a call that ends a segment at `step` does.
  struct Visit {
    Cut* cut = nullptr;
    std::shared_ptr<const Cut::Compiled> compiled;
    bool compiles = false;  ///< this call makes the program, which is to give `live`
    ResultSet live = ResultSet(0);
  };
  /// `live`: what somebody holds. If the segment ends as host code looks at a value, it becomes
  /// that and what of the others calls have used. `may_compile`: the call can run a program.
  [[nodiscard]] Visit visit(Step& step, ResultSet& live, std::optional<uint32_t> looked_at,
                            bool may_compile);
  /// A call ends a segment at `step` that it has computed, with so many results.
  void explored(Step& step, std::size_t results);
  /// A call uses a result of the segment that has ended at `step`.
  void use(Step& step, uint32_t result);
  /// Host code looks at what the segment up to `step` made; `outcome`: at a bool.
  void look(Step& step, const ReadSite& site, std::optional<bool> outcome);
  /// Null if it has none yet.
  [[nodiscard]] std::shared_ptr<const Cut::Compiled> compiled_of(const Cut& cut) const;
  /// Ends the making of a program; null: there can be none.
  void compiled(Cut& cut, std::shared_ptr<const Cut::Compiled> compiled);
  /// Ends it without saying so.
  void not_compiled(Cut& cut);
  void add_to(SegmentsReport& report) const;

  /// A call has ended that matched and computed so many ops.
  void count(uint64_t matched, uint64_t computed) {
    calls_.fetch_add(1, std::memory_order_relaxed);
    matched_.fetch_add(matched, std::memory_order_relaxed);
    computed_.fetch_add(computed, std::memory_order_relaxed);
    if (!is_full_.load(std::memory_order_relaxed)) return;
    const int before = misses_.load(std::memory_order_relaxed);
    misses_.store(matched < computed ? before + 1 : 0, std::memory_order_relaxed);
  }
  std::atomic<uint64_t> cuts_by_plan = 0;

 private:
  void drop_least_used();
  void note_crowded(const CallSite& place);

  const int threads_;
  const ResultCheck result_check_;
  const int most_misses_ = 4;  ///< calls in a row that found less than half of what they did
  std::atomic<bool> is_full_ = false;  ///< nothing is added any more
  std::atomic<int> misses_ = 0;        ///< of one that is full
  std::atomic<uint64_t> calls_ = 0, matched_ = 0, computed_ = 0;
  Step root_;
  mutable ForkSafeMutex mutex_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<Cut*> compiled_;  ///< those that have a program
  uint64_t clock_ = 0, plans_ = 0, widened_ = 0, crowded_ = 0;
  std::vector<std::pair<CallSite, uint64_t>> crowded_at_;
};

/// The ops on the way to `last` as a trace whose results are the values that are `live`.
/// `compiled` gets which those are, and which numbers come with each run; it says which of them
/// replace imports.
[[nodiscard]] Trace trace_of(const Step& last, const ResultSet& live, Cut::Compiled& compiled);
/// How many numbers on the way to `last` come with each run.
[[nodiscard]] std::size_t run_time_numbers(const Step& last);

}  // namespace nitinol::tracer
