// Promotion: the dtype in which the operands of an op meet.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/argument.h"

#include <initializer_list>
#include <string_view>

namespace nitinol {

/// promote(a, b) for the function `where`, which the Error names.
[[nodiscard]] DType promote(std::string_view where, DType a, DType b);

/// The dtype in which `where` multiplies the two: promote()'s, or autocast's (core/autocast.h).
[[nodiscard]] DType product_dtype(std::string_view where, DType a, DType b);
/// The dtype in which an op of Precision::full computes operands of this one.
[[nodiscard]] DType full_dtype(DType dtype);
/// A bias that is added to a product: under autocast rounded to its dtype, else itself.
[[nodiscard]] Tensor beside_product(const Tensor& bias, const Tensor& product);

/// x, its f16 or bf16 as f32: what is squared, or has many terms, overflows these or is lost in
/// them.
[[nodiscard]] Tensor widened(const Tensor& x);

/// What was computed from `given` in a wider dtype, in that of `given` if it is floating.
[[nodiscard]] Tensor narrowed(const Tensor& computed, const Tensor& given);

/// The dtype of `where` on `arguments`: that of the tensors by the promotion table (core/dtype.h);
/// weak numbers take it unless they are of a higher kind, then an integer gives i64 and a floating
/// number f32. Numbers alone give bool, i64 or f64.
[[nodiscard]] DType common_dtype(std::string_view where,
                                 std::initializer_list<const Argument*> arguments);

/// An argument as a tensor of a dtype: itself, a cast, or the host number (of `device`, else
/// the default one: see constant).
/// Throws the Error(value) of `where` for an integer number that an integer dtype does not hold.
/// Lives for one op application.
class Promoted {
 public:
  Promoted(std::string_view where, const Argument& argument, DType dtype);
  Promoted(std::string_view where, const Argument& argument, DType dtype, Device device);
  Promoted(const Promoted&) = delete;
  Promoted& operator=(const Promoted&) = delete;
  [[nodiscard]] const Tensor* get() const { return tensor_; }

 private:
  Tensor owned_;
  const Tensor* tensor_;
};

/// Integers as another integer dtype, which is checked for each of them, in compiled functions too.
/// Throws the Error(value) of `where` for one that it does not hold.
[[nodiscard]] Tensor fitted(std::string_view where, const Tensor& x, DType dtype);

/// x, or its integers or booleans as f32. (Of an undefined tensor what is done with it will speak.)
[[nodiscard]] Tensor as_floats(const Tensor& x);
/// The op on both arguments as `dtype`.
[[nodiscard]] Tensor apply_promoted(const Op& op, const Argument& a, const Argument& b,
                                    DType dtype);

/// The dtype of functions that give floats: the common one, or, of integers and booleans, f32 (f64
/// if all are numbers).
[[nodiscard]] DType floating_dtype(std::string_view where,
                                   std::initializer_list<const Argument*> arguments);
/// The op on the arguments in that dtype.
[[nodiscard]] Tensor apply_floating(const Op& op, const Tensor& x);
[[nodiscard]] Tensor apply_floating(const Op& op, const Argument& a, const Argument& b);

/// The number, converted to `dtype` (integers wrap), as a tensor. Weak if `is_weak`. What is made
/// of it and other numbers alone will lie on `device`.
[[nodiscard]] Tensor constant(const Scalar& number, DType dtype, bool is_weak = false,
                              Device device = default_device());

}  // namespace nitinol
