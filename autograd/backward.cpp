// Tensor::backward(): gradients gather in Variables.
#include "autograd/sweep.h"
#include "core/error.h"
#include "core/log.h"
#include "core/place.h"
#include "core/profiling.h"
#include "eager/ops/ops.h"

#include <fmt/format.h>

#include <atomic>

namespace nitinol {
namespace {

/// No Variable is known whose gradient would be zeros; more likely a parameter() was forgotten.
void warn_untracked() {
  static std::atomic<bool> has_warned = false;
  if (has_warned.exchange(true)) return;
  std::string place = given_place();
  if (place.empty()) place = describe_users_call();
  log(LogLevel::warning,
      fmt::format("backward{}: nothing that the tensor was computed from tracks gradients, so none "
                  "are added; what is to be learned is made with parameter(initial), and used "
                  "outside NoGradients",
                  place.empty() ? "" : " at " + place));
}

}  // namespace

void Tensor::backward() const {
  if (size() != 1) {
    throw Error(ErrorKind::shape, {.where = "backward",
                                   .what = "the gradient of a tensor of several elements",
                                   .expected = "one element, such as a loss, or a seed",
                                   .got = describe(*this),
                                   .fix = "Reduce it first (sum, mean), or call backward(seed)."});
  }
  backward(ones(shape(), dtype(), device()));
}

void Tensor::backward(const Tensor& seed) const {
  if (!is_floating(dtype())) {
    throw Error(ErrorKind::dtype, {.where = "backward",
                                   .what = "the gradient of what is not floating",
                                   .expected = "a floating tensor, such as a loss",
                                   .got = describe(*this),
                                   .fix = "Compute the loss in a floating dtype."});
  }
  if (seed.shape() != shape()) {
    throw Error(ErrorKind::shape, {.where = "backward",
                                   .what = "the seed weights each element",
                                   .expected = describe(*this),
                                   .got = describe(seed),
                                   .fix = "Give the seed the tensor's shape."});
  }
  if (!tracks_gradient()) return warn_untracked();
  const profiling::Span span(EventKind::backward, "backward()");
  autograd::Sweep sweep({});
  sweep.add(internals().gradient, autograd::reduced_to(seed, spec()));
  sweep.run();
  const autograd::EnabledScope off(false);
  for (const auto& [variable, gradient] : sweep.variables()) variable.add_grad(gradient);
}

}  // namespace nitinol
