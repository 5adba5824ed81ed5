// Generator: a stream of counter-based random numbers (Philox 4x32-10).
#pragma once

#include "core/variable.h"

#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol {

/// A stream of random numbers, {key, counter} as an i64[2] Variable: copies share it, compiled
/// functions see it as state like any other Variable, and a call that throws leaves it where it
/// was. An op that draws n numbers takes the counters [counter, counter + n), fixed in program
/// order when the op is issued.
class Generator {
 public:
  /// Its state lies on `device`, and so does what is drawn. Each device draws the same numbers.
  explicit Generator(uint64_t seed, Device device = default_device());

  /// Starts the stream of `seed` from its beginning.
  void manual_seed(uint64_t seed) const;
  /// {key, counter} before, advancing the counter by `count`.
  [[nodiscard]] Tensor draw(int64_t count) const;
  /// {key, counter}.
  [[nodiscard]] const Variable& state() const { return state_; }
  /// Where it lies.
  [[nodiscard]] Device device() const { return state_.device(); }

 private:
  Variable state_;
};

/// The process's default generator of a device, seeded with 0 at its first use.
[[nodiscard]] const Generator& default_generator(Device device = default_device());

}  // namespace nitinol

#pragma GCC visibility pop
