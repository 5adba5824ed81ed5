// Guards: what must hold at a call, besides its key, for a recording to stand for it.
#pragma once

#include "jit/describe.h"
#include "jit/leaves.h"
#include "tracer/trace.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nitinol::jit {

/// Of one recorded call: the host values and Scalars that it looked at, and which Variables were
/// one and the same. Immutable.
///
/// A Variable argument is an input by position: one trace serves two models of one type. But the
/// function may have captured the very Variable that it was given, and then a trace made with it
/// says nothing about a call with another one, nor the reverse. So a captured Variable must not be
/// among the arguments unless it was; and that a Variable was reached as an argument alone is
/// believed once two recordings agree in which it was another one.
class Guards {
 public:
  Guards(const tracer::Trace& trace, const Leaves& leaves);

  enum class Match : uint8_t {
    no,
    unproven,  ///< if a recording of this call agrees with the one before
    yes,
  };
  [[nodiscard]] Match match(const Leaves& leaves) const;

  /// After an agreeing recording with these leaves.
  [[nodiscard]] Guards widened(const Leaves& leaves) const;
  /// After a disagreeing one: for calls with the Variables of the first recording only.
  [[nodiscard]] Guards bound() const;
  /// Which of these fails for a call with these leaves, which `words` describe, as a sentence.
  [[nodiscard]] std::string difference(const Leaves& leaves, std::span<const Word> words) const;
  /// The Scalars that were looked at.
  [[nodiscard]] const std::vector<tracer::NumberGuard>& numbers() const { return numbers_; }

 private:
  [[nodiscard]] bool is_captured(const Variable& argument) const;
  /// A host value that is no longer what it was, or null.
  [[nodiscard]] const HostValueGuard* changed_host() const;

  std::vector<HostValueGuard> hosts_;
  std::vector<tracer::NumberGuard> numbers_;
  std::vector<uint64_t> captured_;   ///< ids of captured cells, sorted
  std::vector<uint64_t> arguments_;  ///< per Variable leaf: the id it had, or 0: any
  bool is_bound_ = false;
};

}  // namespace nitinol::jit
