// Sampling: which samples make which batch of which pass, a function of a seed.
#pragma once

#include "core/integer.h"
#include "core/variable.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// The samples of a pass, in order, by their numbers: equally many in all. `pass` counts from 0.
using Sampler = std::function<std::vector<int64_t>(uint64_t pass)>;

/// Draws `count` samples of each pass with replacement, as often as the weights say: for classes of
/// unequal size. The same seed gives the same samples. Throws Error(value) for no weights, for one
/// that is negative or not finite, for none above 0, and for a count below 1.
[[nodiscard]] Sampler weighted(std::vector<double> weights, Integer count, uint64_t seed = 0);

/// The part of all samples that one of several processes sees: those at number, number + of, … in
/// the order of the pass, which all draw alike. Where they do not come out even, the first ones are
/// seen twice; a loader that drops_last leaves the last ones out. So all have as many batches.
struct Shard {
  Integer number = 0, of = 1;
};

struct SamplingOptions {
  Integer batch = 32;
  bool is_shuffled = true;
  bool drops_last = false;
  uint64_t seed = 0;
  Sampler sampler = {};
  Shard shard = {};
};

/// Which samples make which batch, and how far that has come. The place is a Variable, so that
/// save() keeps it and load() sets it: the next pass then goes on from there. Copies share it.
class Sampling {
 public:
  /// Throws Error(value) for options that make no sense. `samples`: -1 if nobody knows how many.
  Sampling(int64_t samples, SamplingOptions options);

  struct Place {
    uint64_t pass = 0;
    int64_t batch = 0;
  };
  /// The next batch.
  [[nodiscard]] Place place() const;
  /// Where a pass begins: a new one at its first batch, unless load() has set another place.
  [[nodiscard]] Place begin();
  /// The samples of a pass, an i64 list; undefined: all, in their order.
  [[nodiscard]] Tensor order(uint64_t pass) const;
  /// Batches of a pass. Throws Error(value) if nobody knows how many samples there are.
  [[nodiscard]] int64_t batches() const;
  /// Samples of batch `i` of a pass: [first, second) of its order.
  [[nodiscard]] std::pair<int64_t, int64_t> range(int64_t i) const;
  /// Leaves out what is left of the pass: the next batch is the first of a new one.
  void end_pass();
  /// Says which batch comes next.
  void reached(const Place& place);

  [[nodiscard]] const SamplingOptions& options() const { return options_; }

  template <class V>
  void fields(V&& visit) {
    visit("place", place_);
  }
  template <class V>
  void fields(V&& visit) const {
    visit("place", place_);
  }

 private:
  [[nodiscard]] int64_t samples_of_pass() const;

  int64_t samples_;
  SamplingOptions options_;
  int64_t drawn_ = 0;  ///< samples of a pass of all shards
  Variable place_;     ///< i64 [2]: pass, batch
  /// What place_ was set to here; another value comes from elsewhere.
  std::shared_ptr<Tensor> written_;
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
