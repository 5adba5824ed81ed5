// Tensor::backward(): gradients gather in Variables.
#include "autograd/sweep.h"
#include "core/error.h"
#include "eager/ops/ops.h"

namespace nitinol {

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
  if (!tracks_gradient()) {
    throw Error(ErrorKind::value,
                {.where = "backward",
                 .what = "nothing that this tensor was computed from tracks gradients",
                 .expected = "a tensor computed from a parameter() outside NoGradients",
                 .got = describe(*this),
                 .fix = "Make what is to be learned with parameter(initial)."});
  }
  if (seed.shape() != shape()) {
    throw Error(ErrorKind::shape, {.where = "backward",
                                   .what = "the seed weights each element",
                                   .expected = describe(*this),
                                   .got = describe(seed),
                                   .fix = "Give the seed the tensor's shape."});
  }
  autograd::Sweep sweep({});
  sweep.add(internals().gradient, autograd::reduced_to(seed, spec()));
  sweep.run();
  const autograd::EnabledScope off(false);
  for (const auto& [variable, gradient] : sweep.variables()) variable.add_grad(gradient);
}

}  // namespace nitinol
