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
// | ops (by dtype of their operands: float64 and integers are left alone) | computed in |
// |---|---|
// | matmul and what is made of it (Linear, attention, einsum, recurrent layers), convolutions and their transposes | the scope's dtype, sums in float32 |
// | exp, log, pow, reciprocal and their like, sum, prod, mean, var, norm, softmax, cumsum and their like, losses | float32, which their results keep |
// | layer_norm, batch_norm and their like | float32 inside, rounded to their input's dtype |
// | all others | as without it: operands of two dtypes give the wider one |
//
// A bias that is added to such a product is rounded to its dtype. docs/training.md has the table by
// the op.
#pragma once

#include "core/autocast.h"

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// While it lives, products of this thread are computed in `dtype`: bf16, f16 (whose gradients want
/// a LossScale), or f32, which ends an outer scope. Gradients have the dtype of the values that they
/// belong to, wherever backward() is called: those of parameters are float32.
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
