// Drawing random programs from the vocabulary.
#pragma once

#include "tests/fuzz/programs/program.h"

#include <map>
#include <random>
#include <span>

namespace nitinol::fuzz {

/// Draws programs; deterministic in the seed of each. Knows hardly any op: what an op takes it
/// finds out by asking its inference and by running it. Programs of successive seeds begin with one
/// op after another, so that rare ones are drawn as often as others.
class Drawer {
 public:
  /// `is_tiny`: a few steps on tiny tensors, of which there are enough to meet most combinations of
  /// a few ops.
  Drawer(std::span<const Op* const> ops, bool is_tiny);
  [[nodiscard]] Program draw(uint64_t seed);
  /// How often each op has been part of a program.
  [[nodiscard]] const std::map<const Op*, int>& counts() const { return counts_; }

 private:
  class Session;
  bool is_tiny_;
  std::vector<const Op*> all_;
  std::map<OpKind, std::vector<const Op*>> ops_;
  std::map<const Op*, int> counts_;
};

}  // namespace nitinol::fuzz
