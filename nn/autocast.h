// Autocast: mixed precision. Parameters stay float32, products are computed in 16 bits.
//
//     auto step = compile([&](const Tensor& x, const Tensor& y) {
//       Tensor loss;
//       {
//         const nn::Autocast scope(bf16);
//         loss = nn::cross_entropy(model(x), y);
//       }
//       optimizer.zero_grad(); loss.backward(); optimizer.step();
//       return loss;
//     });
//
// Products (matmul, convolutions and what is made of them) are computed in the scope's dtype with
// sums in float32; what magnifies errors or has many terms (exp, log, sum, softmax, losses) in
// float32, which its result keeps; normalisations give the dtype of their input; the others do as
// always. docs/training.md has the table. float64 and integers are left alone. The bias of a layer
// is rounded to the dtype of the product that it is added to.
#pragma once

#include "core/autocast.h"

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// While it lives, products of this thread are computed in `dtype`: bfloat16, float16 (whose
/// gradients want a LossScale), or float32, which ends an outer scope. Gradients have the dtype of
/// the values that they belong to, wherever backward() is called: those of parameters are float32.
///
/// A compiled function has a Plan for each dtype that it is called under; a scope inside it is part
/// of its Plan. Throws Error(dtype) for others.
class Autocast {
 public:
  explicit Autocast(DType dtype) : scope_(checked(dtype)) {}

 private:
  static DType checked(DType dtype);
  AutocastScope scope_;
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
