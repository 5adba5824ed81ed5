// Limits: what this machine can do at most, measured: memory bandwidth and multiply-adds.
#pragma once

#include "bench/row.h"

#include <optional>
#include <string>
#include <vector>

namespace nitinol::bench {

/// One limit at one thread count.
struct Limit {
  std::string name;                  ///< "triad", "triad-nt", "fma-f32", "triad.n1e5"
  std::vector<double> samples = {};  ///< seconds of a pass
  double amount = 0;                 ///< bytes moved or operations done in a pass
  double footprint = 0;              ///< bytes of the arrays; 0 for fma
  [[nodiscard]] double rate() const;
};

/// The limits of this process, with what follows from them for a piece of work.
class Limits {
 public:
  /// Of a device, which copies so many bytes in a second, read and written.
  explicit Limits(double copy_rate);
  /// Measures with `threads` threads; takes about two seconds.
  Limits(int threads, bool is_quick);
  /// The least time for `work`: multiply-adds at the peak rate, or bytes at the bandwidth of the
  /// smallest measured arrays that are not smaller than the work's. Nothing if it has neither.
  [[nodiscard]] std::optional<double> bound(const Work& work) const;
  [[nodiscard]] std::vector<Row> rows(int threads) const;

 private:
  std::vector<Limit> limits_;
};

}  // namespace nitinol::bench
