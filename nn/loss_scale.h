// LossScale: gradients of float16 that neither vanish nor overflow.
//
//     nn::LossScale scale;
//     scale(loss).backward();
//     const Tensor is_finite = scale.unscale(nn::parameters(model));
//     nn::clip_gradient_norm(nn::parameters(model), 1);  // if at all: here they are what they were
//     optimizer.step(is_finite);
#pragma once

#include "core/function_ref.h"
#include "core/integer.h"
#include "core/variable.h"
#include "dist/group.h"

#include <source_location>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

struct LossScaleOptions {
  double initial = 65536;  ///< what the first loss is multiplied by
  double growth = 2;       ///< what the scale is multiplied by after `interval` finite steps
  double backoff = 0.5;    ///< what it is multiplied by after one that is not
  Integer interval = 2000;
};

/// A number that the loss is multiplied by, so that small gradients do not round to 0 in float16,
/// and that adapts itself: it is halved when a gradient overflows, and doubled when none has for a
/// while (P. Micikevicius et al., "Mixed precision training", 2018). It lives in Variables and
/// nothing is read on the host, so that a compiled step stays one Plan.
class LossScale {
 public:
  /// Throws Error(value) unless initial > 0, growth >= 1, 0 < backoff <= 1, all finite, and
  /// interval >= 1.
  explicit LossScale(const LossScaleOptions& options = {});

  /// The loss as backward() should get it, float32 or wider.
  [[nodiscard]] Tensor operator()(const Tensor& loss) const;

  /// Divides the gradients of all parameters by the scale and adapts it. Returns whether all of
  /// them are finite, a boolean, for Optimizer::step(). Of several optimizers, give the parameters
  /// of all at once. Throws Error(value) if none has a gradient.
  [[nodiscard]] Tensor unscale(const std::vector<Variable>& parameters) const;
  /// The same of gradients of which each member of a group has a part: whether those of all are
  /// finite. All members call it. Averaged gradients are the same on all, and need it not.
  [[nodiscard]] Tensor unscale(const std::vector<Variable>& parameters, const dist::Group& group,
                               std::source_location place = std::source_location::current()) const;

  /// The scale now, a float32 number.
  [[nodiscard]] Tensor value() const { return scale_; }

  /// For named_variables(), save() and load().
  template <class V>
  void fields(V&& visit) {
    visit("scale", scale_);
    visit("finite_steps", finite_steps_);
  }
  template <class V>
  void fields(V&& visit) const {
    visit("scale", scale_);
    visit("finite_steps", finite_steps_);
  }

 private:
  /// `joined`: whether those of all ranks are finite, of whether this one's are.
  [[nodiscard]] Tensor unscale(const std::vector<Variable>& parameters,
                               FunctionRef<Tensor(const Tensor&)> joined) const;

  LossScaleOptions options_;
  Variable scale_;         ///< float32
  Variable finite_steps_;  ///< int64: since the scale has changed
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
