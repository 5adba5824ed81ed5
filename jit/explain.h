// Explanation: what happened to the calls of a compiled function and why, as data and as text.
#pragma once

#include "jit/plan.h"
#include "tracer/segments_report.h"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// How a signature's calls run at present.
enum class Tier : uint8_t {
  recorded,  ///< eagerly, noting what happens; compiled when the next recorded call agrees
  traced,    ///< by a Plan, without running the host code
  deferred,  ///< as written, with what lies between looks at data by Plans;
             ///< SignatureReport::reason says why not by one
  eager,     ///< as written; SignatureReport::reason says why
};

/// One combination of shapes, dtypes, layouts and fixed arguments.
struct SignatureReport {
  std::string signature;  ///< "float32[1000], Scalar"
  Tier tier = Tier::recorded;
  uint64_t calls = 0, recorded_calls = 0, plan_calls = 0, deferred_calls = 0, eager_calls = 0;
  /// Of the eager calls those that `reason` does not explain: why, and how many.
  std::vector<std::pair<std::string, uint64_t>> eager_because;
  std::string cause;   ///< why it was recorded: the first difference from the signature used before
  std::string reason;  ///< tier deferred or eager: what prevents one Plan
  std::string place;   ///< file:line of that, if known
  /// Tier deferred: the times of two calls, one after the other, when they were last compared; 0 if
  /// never.
  double segments_s = 0, eager_s = 0;
  double compile_s = 0;
  jit::PlanReport plan;  ///< tier traced
  /// If results track gradients and backward() has come through: the Plan that computed them.
  std::optional<jit::PlanReport> backward;
  std::string graph;  ///< tier traced: the graph after the passes, as text
};

/// Whether JSON has what the machine needs at least for each step, "bound_s"
/// (jit::PlanReport::bounds()): to know that, the machine is measured once.
enum class Bounds : uint8_t { left_out, measured };

/// What a page of to_html() has.
struct PageOptions {
  bool code = true;  ///< of each kernel the generated code, which takes about 20 ms to write
};

/// Everything about one compiled function.
struct Explanation {
  std::string name;
  uint64_t calls = 0, recorded_calls = 0, plan_calls = 0, deferred_calls = 0, eager_calls = 0;
  uint64_t failed_checks = 0;  ///< Plan runs discarded because a check inside a kernel failed
  std::vector<SignatureReport> signatures;
  std::optional<SegmentsReport> segments;  ///< if calls have run in segments
  std::vector<std::string> remarks;        ///< advice: a fixed argument that keeps changing, …

  /// The same as one JSON object, with the text of each kernel.
  [[nodiscard]] std::string to_json(Bounds bounds = Bounds::left_out) const;
  /// The same as a page of its own, which loads nothing and runs no script: the steps as a graph
  /// with bytes on its edges, of each the lines it comes from, its kernel, its code and what the
  /// machine needs for it at least, and memory over the steps.
  [[nodiscard]] std::string to_html(const PageOptions& options = {}) const;
  /// Writes to_html() to a file. Throws Error(io) if that cannot be written.
  void save_html(const std::string& path, const PageOptions& options = {}) const;
};

/// A page of text, as explain() is meant to be read.
[[nodiscard]] std::string to_string(const Explanation& explanation);
std::ostream& operator<<(std::ostream& stream, const Explanation& explanation);
/// "compiled".
[[nodiscard]] std::string_view name_of(Tier tier);

}  // namespace nitinol

#pragma GCC visibility pop
