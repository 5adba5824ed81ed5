#include "eager/ops/arithmetic.h"

#include "eager/apply.h"
#include "eager/ops/define.h"
#include "eager/promotion.h"

#include <array>

namespace nitinol {
namespace {

constinit const Op add_op = binary_op(
    "add", number_types, [](auto a, auto b) { return a + b; }, "a + b.");
constinit const Op mul_op = binary_op(
    "mul", number_types, [](auto a, auto b) { return a * b; }, "a * b.");

Tensor apply_binary(const Op& op, const Argument& a, const Argument& b) {
  const DType dtype = common_dtype({&a, &b});
  const Promoted x(a, dtype);
  const Promoted y(b, dtype);
  return apply(op, {x.get(), y.get()});
}

}  // namespace

Tensor add(const Argument& a, const Argument& b) {
  return apply_binary(add_op, a, b);
}
Tensor mul(const Argument& a, const Argument& b) {
  return apply_binary(mul_op, a, b);
}
Tensor operator+(const Argument& a, const Argument& b) {
  return apply_binary(add_op, a, b);
}
Tensor operator*(const Argument& a, const Argument& b) {
  return apply_binary(mul_op, a, b);
}

std::span<const Op* const> arithmetic_ops() {
  static constexpr std::array<const Op*, 2> ops = {&add_op, &mul_op};
  return ops;
}

}  // namespace nitinol
