// check_gradients: do the gradients of a function agree with finite differences?
#pragma once

#include "autograd/custom.h"
#include "core/tensor.h"

#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// How check_gradients() compares.
struct GradientCheck {
  int order = 1;            ///< 2: the gradients' own gradients too
  double step = 1e-5;       ///< relative to elements larger than 1
  double tolerance = 1e-6;  ///< of |difference|, relative to derivatives larger than 1
};

namespace autograd {

void check_gradients(const TensorFunction& f, const std::vector<Tensor>& inputs,
                     const GradientCheck& options);

}  // namespace autograd

/// Compares the gradients of f(argument) by each element of its floating tensors with central
/// differences, in float64: floating tensors are cast. Results are weighted by fixed numbers and
/// summed, so all of them are checked. f must be smooth around the argument, and a function of it
/// alone (no random numbers). Throws Error(value) that names the first element that differs.
/// Takes two calls of f per element: for tests, with small tensors.
template <class F, class A>
void check_gradients(const F& f, const A& argument, const GradientCheck& options = {}) {
  autograd::check_gradients(
      [&](const std::vector<Tensor>& tensors) {
        return autograd::tensors_in(f(autograd::with_tensors(A(argument), tensors)));
      },
      autograd::tensors_in(argument), options);
}

}  // namespace nitinol

#pragma GCC visibility pop
