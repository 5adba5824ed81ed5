#include "eager/ops/compare.h"

#include "eager/apply.h"
#include "eager/elements.h"
#include "eager/ops/define.h"
#include "eager/promotion.h"

#include <array>

namespace nitinol {
namespace {

// clang-format off
constinit const Op eq_op = predicate(binary_op("eq", all_types, [](auto a, auto b) { return a == b; }, "a == b."));
constinit const Op ne_op = predicate(binary_op("ne", all_types, [](auto a, auto b) { return a != b; }, "a != b."));
constinit const Op lt_op = predicate(binary_op("lt", number_types, [](auto a, auto b) { return a < b; }, "a < b."));
constinit const Op le_op = predicate(binary_op("le", number_types, [](auto a, auto b) { return a <= b; }, "a <= b."));
constinit const Op gt_op = predicate(binary_op("gt", number_types, [](auto a, auto b) { return a > b; }, "a > b."));
constinit const Op ge_op = predicate(binary_op("ge", number_types, [](auto a, auto b) { return a >= b; }, "a >= b."));
constinit const Op logical_and_op = binary_op("logical_and", bool_type, [](auto a, auto b) { return a & b; }, "a and b.");
constinit const Op logical_or_op = binary_op("logical_or", bool_type, [](auto a, auto b) { return a | b; }, "a or b.");
constinit const Op logical_xor_op = binary_op("logical_xor", bool_type, [](auto a, auto b) { return a ^ b; }, "Either a or b.");
constinit const Op bitwise_and_op = binary_op("bitwise_and", bit_types, [](auto a, auto b) { return a & b; }, "Bits of both.");
constinit const Op bitwise_or_op = binary_op("bitwise_or", bit_types, [](auto a, auto b) { return a | b; }, "Bits of either.");
constinit const Op bitwise_xor_op = binary_op("bitwise_xor", bit_types, [](auto a, auto b) { return a ^ b; }, "Bits of one but not both.");
constinit const Op left_shift_op = binary_op("left_shift", integer_types, [](auto a, auto b) { return a << b; }, "a shifted left by b.");
constinit const Op right_shift_op = binary_op("right_shift", integer_types, [](auto a, auto b) { return a >> b; }, "a shifted right by b.");
// clang-format on

Spec infer_where(const Op& op, Inputs inputs, const Attrs& attrs) {
  const Tensor& condition = *inputs[0];
  if (condition.dtype() != boolean) {
    throw Error(ErrorKind::dtype, {.where = "where",
                                   .what = "the condition is " + describe(condition),
                                   .expected = "bool",
                                   .got = std::string(name_of(condition.dtype())),
                                   .fix = "Compare it: x != 0."});
  }
  Spec spec = infer_elementwise(op, inputs.subspan(1), attrs);
  spec.shape = broadcast_shapes(op.name, condition.shape(), spec.shape);
  common_device(op, inputs);
  return spec;
}

Tensor where_rule(const GradientCall& c, int k) {
  return k == 1 ? where(c.inputs[0], c.gradient, 0) : where(c.inputs[0], 0, c.gradient);
}

constexpr auto choose = [](auto condition, auto a, auto b) { return select(condition, a, b); };
constinit const Op where_op = {.name = "where",
                               .kind = OpKind::elementwise,
                               .arity = 3,
                               .infer = infer_where,
                               .formula = formula<3, bool>(all_types, choose),
                               .gradient = {.rule = where_rule, .looks_at_inputs = 0b001},
                               .summary = "condition ? a : b."};

bool is_number(const Argument& argument) {
  return argument.tensor() == nullptr || argument.tensor()->spec().is_weak;
}

/// The dtype that holds both sides of a comparison. A number may lie outside the other side's
/// dtype, or between its values: 300 is not 44 for uint8, and 16777217 not 16777216.0 for int32.
DType compared_dtype(const Argument& a, const Argument& b) {
  const DType common = common_dtype({&a, &b});
  if (is_number(a) == is_number(b)) return common;
  const Argument& number = is_number(a) ? a : b;
  const DType other = (is_number(a) ? b : a).tensor()->dtype();
  if (is_floating(common)) return is_floating(other) ? common : f64;
  const bool is_held = number.tensor() == nullptr && fits(common, number.scalar());
  return is_held || common == boolean ? common : i64;
}

Tensor apply_equality(const Op& op, const Argument& a, const Argument& b) {
  return apply_promoted(op, a, b, compared_dtype(a, b));
}

/// Booleans are ordered as 0 and 1.
Tensor apply_order(const Op& op, const Argument& a, const Argument& b) {
  const DType dtype = compared_dtype(a, b);
  return apply_promoted(op, a, b, dtype == boolean ? u8 : dtype);
}

}  // namespace

// clang-format off
Tensor eq(const Argument& a, const Argument& b) { return apply_equality(eq_op, a, b); }
Tensor ne(const Argument& a, const Argument& b) { return apply_equality(ne_op, a, b); }
Tensor lt(const Argument& a, const Argument& b) { return apply_order(lt_op, a, b); }
Tensor le(const Argument& a, const Argument& b) { return apply_order(le_op, a, b); }
Tensor gt(const Argument& a, const Argument& b) { return apply_order(gt_op, a, b); }
Tensor ge(const Argument& a, const Argument& b) { return apply_order(ge_op, a, b); }
Tensor logical_and(const Argument& a, const Argument& b) { return apply_promoted(logical_and_op, a, b, boolean); }
Tensor logical_or(const Argument& a, const Argument& b) { return apply_promoted(logical_or_op, a, b, boolean); }
Tensor logical_xor(const Argument& a, const Argument& b) { return apply_promoted(logical_xor_op, a, b, boolean); }
Tensor bitwise_and(const Argument& a, const Argument& b) { return apply_binary(bitwise_and_op, a, b); }
Tensor bitwise_or(const Argument& a, const Argument& b) { return apply_binary(bitwise_or_op, a, b); }
Tensor bitwise_xor(const Argument& a, const Argument& b) { return apply_binary(bitwise_xor_op, a, b); }
Tensor left_shift(const Argument& a, const Argument& b) { return apply_binary(left_shift_op, a, b); }
Tensor right_shift(const Argument& a, const Argument& b) { return apply_binary(right_shift_op, a, b); }
Tensor operator==(const Argument& a, const Argument& b) { return apply_equality(eq_op, a, b); }
Tensor operator!=(const Argument& a, const Argument& b) { return apply_equality(ne_op, a, b); }
Tensor operator<(const Argument& a, const Argument& b) { return apply_order(lt_op, a, b); }
Tensor operator<=(const Argument& a, const Argument& b) { return apply_order(le_op, a, b); }
Tensor operator>(const Argument& a, const Argument& b) { return apply_order(gt_op, a, b); }
Tensor operator>=(const Argument& a, const Argument& b) { return apply_order(ge_op, a, b); }
Tensor operator&(const Argument& a, const Argument& b) { return apply_binary(bitwise_and_op, a, b); }
Tensor operator|(const Argument& a, const Argument& b) { return apply_binary(bitwise_or_op, a, b); }
Tensor operator^(const Argument& a, const Argument& b) { return apply_binary(bitwise_xor_op, a, b); }
Tensor operator<<(const Argument& a, const Argument& b) { return apply_binary(left_shift_op, a, b); }
Tensor operator>>(const Argument& a, const Argument& b) { return apply_binary(right_shift_op, a, b); }
// clang-format on

Tensor where(const Argument& condition, const Argument& a, const Argument& b) {
  const DType dtype = common_dtype({&a, &b});
  const Promoted chosen(condition, boolean);
  const Promoted x(a, dtype);
  const Promoted y(b, dtype);
  return apply(where_op, {chosen.get(), x.get(), y.get()});
}

std::span<const Op* const> compare_ops() {
  static constexpr auto ops =
      std::to_array<const Op*>({&eq_op, &ne_op, &lt_op, &le_op, &gt_op, &ge_op, &logical_and_op,
                                &logical_or_op, &logical_xor_op, &bitwise_and_op, &bitwise_or_op,
                                &bitwise_xor_op, &left_shift_op, &right_shift_op, &where_op});
  return ops;
}

}  // namespace nitinol
