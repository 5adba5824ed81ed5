#include "eager/ops/compare.h"

#include "eager/apply.h"
#include "eager/elements.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"
#include "eager/promotion.h"

#include <limits>

namespace nitinol {
namespace {

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
  spec.device = common_device(op, inputs);
  return spec;
}

Tensor where_rule(const GradientCall& c, int k) {
  return k == 1 ? where(c.inputs[0], c.gradient, 0) : where(c.inputs[0], 0, c.gradient);
}

// clang-format off
constexpr auto comparisons = family({
    predicate(binary_op("eq", all_types, [](auto a, auto b) { return a == b; }, "a == b.")),
    predicate(binary_op("ne", all_types, [](auto a, auto b) { return a != b; }, "a != b.")),
    predicate(binary_op("lt", number_types, [](auto a, auto b) { return a < b; }, "a < b.")),
    predicate(binary_op("le", number_types, [](auto a, auto b) { return a <= b; }, "a <= b.")),
    predicate(binary_op("gt", number_types, [](auto a, auto b) { return a > b; }, "a > b.")),
    predicate(binary_op("ge", number_types, [](auto a, auto b) { return a >= b; }, "a >= b.")),
    binary_op("logical_and", bool_type, [](auto a, auto b) { return a & b; }, "a and b."),
    binary_op("logical_or", bool_type, [](auto a, auto b) { return a | b; }, "a or b."),
    binary_op("logical_xor", bool_type, [](auto a, auto b) { return a ^ b; }, "Either a or b."),
    binary_op("bitwise_and", bit_types, [](auto a, auto b) { return a & b; }, "Bits of both."),
    binary_op("bitwise_or", bit_types, [](auto a, auto b) { return a | b; }, "Bits of either."),
    binary_op("bitwise_xor", bit_types, [](auto a, auto b) { return a ^ b; }, "Bits of one but not both."),
    binary_op("left_shift", integer_types, [](auto a, auto b) { return shift_left(a, b); }, "a shifted left by b."),
    binary_op("right_shift", integer_types, [](auto a, auto b) { return shift_right(a, b); }, "a shifted right by b."),
    {.name = "where",
     .kind = OpKind::elementwise,
     .arity = 3,
     .infer = infer_where,
     .formula = formula<3, bool>(all_types, [](auto condition, auto a, auto b) { return select(condition, a, b); }),
     .gradient = {.rule = where_rule, .looks_at_inputs = 0b001},
     .summary = "condition ? a : b."},
});
// clang-format on

bool is_number(const Argument& argument) {
  return argument.tensor() == nullptr || argument.tensor()->spec().is_weak;
}

DType dtype_of(const Argument& number) {
  return number.tensor() == nullptr ? number.scalar().dtype() : number.tensor()->dtype();
}

/// The dtype that holds both sides of a comparison. A number may lie outside the other side's
/// dtype, or between its values: 300 is not 44 for uint8, and 16777217 not 16777216.0 for int32.
DType compared_dtype(const Op& op, const Argument& a, const Argument& b) {
  const DType common = common_dtype(op.name, {&a, &b});
  if (is_number(a) == is_number(b)) return common;
  const Argument& number = is_number(a) ? a : b;
  const DType other = (is_number(a) ? b : a).tensor()->dtype();
  if (is_floating(common)) return is_floating(other) ? common : f64;
  const bool is_held = number.tensor() == nullptr && fits(common, number.scalar());
  return is_held || common == boolean || common == u64 ? common : i64;
}

/// Integers beside a number of which they hold only a part: of an i64 the negative ones are less
/// than every u64, of a u64 those beyond int64 more than every other integer.
Tensor compare_beside(const Op& op, const Argument& a, const Argument& b, DType dtype) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  const bool is_left = is_number(a), is_less = dtype == u64;
  const Tensor number =
      cast(*Promoted(op.name, is_left ? a : b, is_less ? i64 : u64).get(), is_less ? i64 : u64);
  const Tensor is_outside = is_less ? number < 0 : number > most;
  const Tensor held = cast(is_less ? maximum(number, 0) : minimum(number, most), dtype);
  const Tensor otherwise =
      is_left ? apply_promoted(op, held, b, dtype) : apply_promoted(op, a, held, dtype);
  const bool holds = op.name == "ne" || op.name.starts_with(is_left == is_less ? 'l' : 'g');
  return holds ? otherwise | is_outside : otherwise & !is_outside;
}

Tensor apply_comparison(const Op& op, const Argument& a, const Argument& b, DType dtype) {
  if (is_number(a) == is_number(b) || is_floating(dtype)) return apply_promoted(op, a, b, dtype);
  const Argument& number = is_number(a) ? a : b;
  const bool is_held = number.tensor() == nullptr && fits(dtype, number.scalar());
  if (!is_held && (dtype == u64) != (dtype_of(number) == u64))
    return compare_beside(op, a, b, dtype);
  return apply_promoted(op, a, b, dtype);
}

Tensor apply_equality(const Op& op, const Argument& a, const Argument& b) {
  return apply_comparison(op, a, b, compared_dtype(op, a, b));
}

/// Booleans are ordered as 0 and 1.
Tensor apply_order(const Op& op, const Argument& a, const Argument& b) {
  const DType dtype = compared_dtype(op, a, b);
  return apply_comparison(op, a, b, dtype == boolean ? u8 : dtype);
}

}  // namespace

// clang-format off
Tensor eq(const Argument& a, const Argument& b) { return apply_equality(comparisons["eq"], a, b); }
Tensor ne(const Argument& a, const Argument& b) { return apply_equality(comparisons["ne"], a, b); }
Tensor lt(const Argument& a, const Argument& b) { return apply_order(comparisons["lt"], a, b); }
Tensor le(const Argument& a, const Argument& b) { return apply_order(comparisons["le"], a, b); }
Tensor gt(const Argument& a, const Argument& b) { return apply_order(comparisons["gt"], a, b); }
Tensor ge(const Argument& a, const Argument& b) { return apply_order(comparisons["ge"], a, b); }
Tensor logical_and(const Argument& a, const Argument& b) { return apply_promoted(comparisons["logical_and"], a, b, boolean); }
Tensor logical_or(const Argument& a, const Argument& b) { return apply_promoted(comparisons["logical_or"], a, b, boolean); }
Tensor logical_xor(const Argument& a, const Argument& b) { return apply_promoted(comparisons["logical_xor"], a, b, boolean); }
Tensor bitwise_and(const Argument& a, const Argument& b) { return apply_binary(comparisons["bitwise_and"], a, b); }
Tensor bitwise_or(const Argument& a, const Argument& b) { return apply_binary(comparisons["bitwise_or"], a, b); }
Tensor bitwise_xor(const Argument& a, const Argument& b) { return apply_binary(comparisons["bitwise_xor"], a, b); }
Tensor left_shift(const Argument& a, const Argument& b) { return apply_binary(comparisons["left_shift"], a, b); }
Tensor right_shift(const Argument& a, const Argument& b) { return apply_binary(comparisons["right_shift"], a, b); }
Tensor operator==(const Argument& a, const Argument& b) { return apply_equality(comparisons["eq"], a, b); }
Tensor operator!=(const Argument& a, const Argument& b) { return apply_equality(comparisons["ne"], a, b); }
Tensor operator<(const Argument& a, const Argument& b) { return apply_order(comparisons["lt"], a, b); }
Tensor operator<=(const Argument& a, const Argument& b) { return apply_order(comparisons["le"], a, b); }
Tensor operator>(const Argument& a, const Argument& b) { return apply_order(comparisons["gt"], a, b); }
Tensor operator>=(const Argument& a, const Argument& b) { return apply_order(comparisons["ge"], a, b); }
Tensor operator&(const Argument& a, const Argument& b) { return apply_binary(comparisons["bitwise_and"], a, b); }
Tensor operator|(const Argument& a, const Argument& b) { return apply_binary(comparisons["bitwise_or"], a, b); }
Tensor operator^(const Argument& a, const Argument& b) { return apply_binary(comparisons["bitwise_xor"], a, b); }
Tensor operator<<(const Argument& a, const Argument& b) { return apply_binary(comparisons["left_shift"], a, b); }
Tensor operator>>(const Argument& a, const Argument& b) { return apply_binary(comparisons["right_shift"], a, b); }
// clang-format on

Tensor where(const Argument& condition, const Argument& a, const Argument& b) {
  const DType dtype = common_dtype("where", {&a, &b});
  const Promoted chosen("where", condition, boolean);
  const Promoted x("where", a, dtype);
  const Promoted y("where", b, dtype);
  return apply(comparisons["where"], {chosen.get(), x.get(), y.get()});
}

std::span<const Op> compare_ops() {
  return comparisons.ops;
}

}  // namespace nitinol
