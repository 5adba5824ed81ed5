// Average: averages of parameters over steps, which often do better than the parameters themselves.
//
//     nn::Average average(nn::parameters(model), {.decay = 0.999});
//     ...  optimizer.step(); average.update();
//     average.swap(); evaluate(model); average.swap();
#pragma once

#include "core/variable.h"

#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

struct AverageOptions {
  double decay = 1;  ///< share of the average that each update keeps; 1: all count the same
};

/// Averages of Variables: exponential ones, whose memory is 1 / (1 - decay) updates long, or with
/// decay = 1 the mean of all (B. Polyak, 1992; P. Izmailov et al., arXiv:1803.05407). They are held
/// in float32 at least. The first update sets them.
///
/// All state is in Variables: update() inside compile() is part of its Plan, and save() writes it.
///
/// Throws Error(value) for no Variables and unless 0 <= decay <= 1, Error(dtype) for Variables that
/// are not floating.
class Average {
 public:
  explicit Average(std::vector<Variable> parameters, const AverageOptions& options = {});

  /// Takes the present values in.
  void update() const;
  /// Exchanges the parameters' values and the averages; a second call exchanges them back. Averages
  /// of float16 and bfloat16 parameters come back as rounded as those hold them.
  void swap() const;
  /// Sets other Variables, of the same shapes in the same order, such as those of a second model.
  /// Throws Error(value) if their number differs.
  void copy_to(const std::vector<Variable>& others) const;
  /// How many updates there were, a float64 number.
  [[nodiscard]] const Variable& count() const { return count_; }

  /// For named_variables(), save() and load().
  template <class V>
  void fields(V&& visit) {
    visit("count", count_), visit("averages", averages_);
  }
  template <class V>
  void fields(V&& visit) const {
    visit("count", count_), visit("averages", averages_);
  }

 private:
  double decay_;
  std::vector<Variable> parameters_;
  Variable count_;
  std::vector<Variable> averages_;
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
