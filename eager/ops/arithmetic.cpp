// Arithmetic of two or three tensors, element by element.
//
// Operands are promoted here, so that a formula sees one type; interpreters see casts as ops of
// their own.
#include "eager/ops/arithmetic.h"

#include "core/fork.h"
#include "core/host_access.h"
#include "core/variable.h"
#include "core/word.h"
#include "eager/all_ops.h"
#include "eager/apply.h"
#include "eager/elements.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <vector>

namespace nitinol {
namespace {

// ---- gradient rules

Tensor add_rule(const GradientCall& c, int) {
  return c.gradient;
}
Tensor sub_rule(const GradientCall& c, int k) {
  return k == 0 ? c.gradient : -c.gradient;
}
Tensor mul_rule(const GradientCall& c, int k) {
  return c.gradient * c.inputs[k == 0 ? 1 : 0];
}
Tensor div_rule(const GradientCall& c, int k) {
  const Tensor& a = c.inputs[0];
  const Tensor& b = c.inputs[1];
  return k == 0 ? c.gradient / b : -c.gradient * (a / (b * b));
}
Tensor remainder_rule(const GradientCall& c, int k) {
  return k == 0 ? c.gradient : -c.gradient * floor_divide(c.inputs[0], c.inputs[1]);
}
Tensor fmod_rule(const GradientCall& c, int k) {
  return k == 0 ? c.gradient : -c.gradient * trunc(c.inputs[0] / c.inputs[1]);
}
/// 0 where the formula is 0 * inf: a^0 by a, and 0^b by b.
Tensor pow_rule(const GradientCall& c, int k) {
  const Tensor& a = c.inputs[0];
  const Tensor& b = c.inputs[1];
  if (k == 0) return c.gradient * (b * pow(a, where(b == 0, 0, b - 1)));
  return where((a == 0) & (b >= 0), 0, c.gradient * (c.result * log(a)));
}
/// Equal operands share the gradient.
Tensor extreme(const GradientCall& c, const Tensor& is_chosen) {
  return where(is_chosen, c.gradient, where(c.inputs[0] == c.inputs[1], c.gradient * 0.5, 0));
}
Tensor maximum_rule(const GradientCall& c, int k) {
  const auto other = static_cast<std::size_t>(1 - k);
  return extreme(c, c.inputs[static_cast<std::size_t>(k)] > c.inputs[other]);
}
Tensor minimum_rule(const GradientCall& c, int k) {
  const auto other = static_cast<std::size_t>(1 - k);
  return extreme(c, c.inputs[static_cast<std::size_t>(k)] < c.inputs[other]);
}
Tensor copysign_rule(const GradientCall& c, int k) {
  if (k == 1) return {};
  return c.gradient * (sign(c.inputs[0]) * copysign(1, c.inputs[1]));
}
/// minimum(maximum(x, low), high); at a bound the gradient goes to x.
Tensor clamp_rule(const GradientCall& c, int k) {
  const Tensor& x = c.inputs[0];
  const Tensor& low = c.inputs[1];
  const Tensor& high = c.inputs[2];
  if (k == 0) return where((x >= low) & (x <= high), c.gradient, 0);
  if (k == 1) return where((x < low) & (low <= high), c.gradient, 0);
  return where((x > high) | (low > high), c.gradient, 0);
}
Tensor fma_rule(const GradientCall& c, int k) {
  return k == 2 ? c.gradient : c.gradient * c.inputs[k == 0 ? 1 : 0];
}

// ---- the check of integer divisors

[[noreturn]] void throw_division_by_zero(std::string_view where) {
  throw Error(ErrorKind::value, {.where = std::string(where),
                                 .what = "integer division by zero",
                                 .expected = "divisors other than 0",
                                 .got = "0",
                                 .fix = "Replace the zeros, or divide floating-point numbers."});
}

[[noreturn]] void throw_negative_exponent() {
  throw Error(ErrorKind::value, {.where = "pow",
                                 .what = "an integer to the power of a negative integer",
                                 .expected = "exponents of 0 or more",
                                 .got = "a negative one",
                                 .fix = "Give floating-point numbers, for example x.to(f32)."});
}

using ops::Checker;

/// The texts of Checker::others and those after it.
struct CheckTexts {
  ForkSafeMutex mutex;
  std::vector<ops::CheckText> all;
};
CheckTexts& check_texts() {
  static CheckTexts& texts = *new CheckTexts;
  return texts;
}

/// Of a number that is none, as in a graph that was parsed, nothing.
std::optional<ops::CheckText> text_of(Checker checker) {
  const int64_t number = static_cast<int64_t>(checker) - static_cast<int64_t>(Checker::others);
  CheckTexts& texts = check_texts();
  const std::lock_guard lock(texts.mutex);
  if (number < 0 || number >= static_cast<int64_t>(texts.all.size())) return {};
  return texts.all[static_cast<std::size_t>(number)];
}

[[noreturn]] void throw_zero(const Tensor& x, Checker checker) {
  if (const std::optional<ops::CheckText> text = text_of(checker)) {
    throw Error(ErrorKind::value, {.where = text->where,
                                   .what = text->what,
                                   .expected = text->expected,
                                   .got = "others",
                                   .fix = text->fix});
  }
  switch (checker) {
    case Checker::floor_divide:
      throw_division_by_zero("floor_divide");
    case Checker::remainder:
      throw_division_by_zero("remainder");
    case Checker::mask:
      throw Error(ErrorKind::value,
                  {.where = "masked_scatter",
                   .what = "the mask chooses more or fewer elements than there are values",
                   .expected = "as many",
                   .got = "another number",
                   .fix = "count_nonzero(mask) says how many; one value is for all."});
    case Checker::fmod:
      throw_division_by_zero("fmod");
    case Checker::pow:
      throw_negative_exponent();
    case Checker::check_nonzero:
    case Checker::others:
      break;
  }
  throw Error(ErrorKind::value, {.where = "check_nonzero",
                                 .what = fmt::format("an element of {} is 0", describe(x)),
                                 .expected = "elements other than 0",
                                 .got = "0",
                                 .fix = "x == 0 shows where."});
}

constexpr std::array<std::string_view, 1> check_attrs = {"checker"};

Spec infer_check_nonzero(const Op& op, Inputs inputs, const Attrs&) {
  check_dtype(op, *inputs[0]);
  return inputs[0]->spec();
}

/// Of a number or a bool.
constexpr auto is_nonzero = [](auto x) {
  if constexpr (std::is_same_v<Element<decltype(x)>, bool>)
    return x;
  else
    return x != 0;
};
/// A failed Plan runs to its end before it is discarded, and must not divide by zero on the way:
/// that would be a signal.
constexpr auto nonzero = [](auto x) {
  if constexpr (std::is_same_v<Element<decltype(x)>, bool>)
    return x | !x;
  else
    return select(x != 0, x, 1);
};

constexpr auto power = [](auto a, auto b) { return pow(a, b); };
constexpr auto power_at = []<double y>(auto a) { return math::pow_at<y>(a); };
constexpr auto integer_power = [](auto a, auto b) { return integer_pow(a, b); };
constexpr auto integer_power_at = []<double y>(auto a) { return math::integer_pow_at<y>(a); };
constexpr auto other_power = [](auto a, auto b) { return math::pow_of_others(a, b); };

/// Whether one of the integers or bools is 0.
bool has_zero(const Tensor& x) {
  const HostElements elements(x.internals());
  return with_word(size_of(x.dtype()), [&]<class Word>(Word) {
    std::vector<Word> room;
    return has_any(elements.all(room), [](Word element) { return element == 0; });
  });
}

void fail_check_nonzero(const Op&, Inputs inputs, const Attrs& attrs) {
  if (!has_zero(*inputs[0])) return;
  throw_zero(*inputs[0], static_cast<Checker>(attr<int64_t>(attrs, 0)));
}

// clang-format off
constexpr auto arithmetic_in_full = std::to_array<std::string_view>({"pow"});
constexpr auto arithmetic = family<arithmetic_in_full>({
    with_rule(binary_op("add", number_types, [](auto a, auto b) { return a + b; }, "a + b."), add_rule),
    with_rule(binary_op("sub", number_types, [](auto a, auto b) { return a - b; }, "a - b."), sub_rule),
    with_rule(binary_op("mul", number_types, [](auto a, auto b) { return a * b; }, "a * b."), mul_rule, 0b11),
    with_rule_at_once<div_rule>(binary_op("div", floating_types, [](auto a, auto b) { return a / b; }, "a / b.")),
    // Integer divisors have passed check_nonzero.
    without_gradient(binary_op("floor_divide", number_types,
        [](auto a, auto b) { return floor_divide(a, b); }, "a / b rounded towards minus infinity.")),
    with_rule_at_once<remainder_rule>(binary_op("remainder", number_types,
        [](auto a, auto b) { return remainder(a, b); }, "a - floor_divide(a, b) * b.")),
    with_rule_at_once<fmod_rule>(binary_op("fmod", number_types,
        [](auto a, auto b) { return fmod(a, b); }, "a - trunc(a / b) * b.")),
    with_loops_at<math::simple_exponents>(
        with_rule_at_once<pow_rule, true>(binary_op("pow", floating_types, power, "a to the power of b.")), floating_types, power_at, other_power),
    with_loops_at<math::simple_integer_exponents>(
        binary_op("integer_pow", integer_types, integer_power, "a to the power of b, modulo 2^bits."), integer_types, integer_power_at, integer_power),
    with_rule_at_once<maximum_rule>(binary_op("maximum", number_types, [](auto a, auto b) { return maximum(a, b); }, "The larger one.")),
    with_rule_at_once<minimum_rule>(binary_op("minimum", number_types, [](auto a, auto b) { return minimum(a, b); }, "The smaller one.")),
    with_rule(binary_op("copysign", floating_types,
        [](auto a, auto b) { return copysign(a, b); }, "|a| with the sign of b."), copysign_rule, 0b11),
    with_rule_at_once<clamp_rule>(ternary_op("clamp", number_types,
        [](auto x, auto low, auto high) { return minimum(maximum(x, low), high); }, "x limited to [low, high].")),
    with_rule(ternary_op("fma", floating_types,
        [](auto a, auto b, auto c) { return fma(a, b, c); }, "a * b + c rounded once."), fma_rule, 0b11),
    {.name = "check_nonzero",
     .kind = OpKind::index,
     .accepts = bitwise,
     .effect = Effect::may_fail,
     .attr_names = check_attrs,
     .infer = infer_check_nonzero,
     .formula = formula<1>(bit_types, nonzero),
     .check = check<1>(bit_types, Status::division_by_zero, is_nonzero),
     .checked_input = 0,
     .fail = fail_check_nonzero,
     .summary = "The same integers or bools; fails if one is 0."},
});
// clang-format on

Tensor apply_check_nonzero(const Tensor& x, Checker checker) {
  return apply(arithmetic["check_nonzero"], {&x}, {static_cast<int64_t>(checker)});
}

Tensor apply_ternary(const Op& op, const Argument& a, const Argument& b, const Argument& c,
                     DType dtype) {
  const Promoted x(op.name, a, dtype);
  const Promoted y(op.name, b, dtype);
  const Promoted z(op.name, c, dtype);
  return apply(op, {x.get(), y.get(), z.get()});
}

/// floor_divide, remainder or fmod. A host number is checked here and now.
Tensor divide_integers(const Op& op, const Argument& a, const Argument& b, Checker checker) {
  const DType dtype = common_dtype(op.name, {&a, &b});
  if (!is_integer(dtype)) return apply_promoted(op, a, b, dtype);
  const Promoted x(op.name, a, dtype);
  const Promoted y(op.name, b, dtype);
  if (b.tensor() == nullptr) {
    if (element_of(dtype, b.scalar()) == 0) throw_division_by_zero(op.name);
    return apply(op, {x.get(), y.get()});
  }
  const Tensor checked = apply_check_nonzero(*y.get(), checker);
  return apply(op, {x.get(), &checked});
}

/// Throws Error(value) for a negative one. A host number is checked here and now.
void check_exponents(const Argument& exponents) {
  const Tensor* const tensor = exponents.tensor();
  if (tensor == nullptr) {
    if (exponents.scalar().to_double() < 0) throw_negative_exponent();
  } else if (is_integer(tensor->dtype()) && !is_unsigned(tensor->dtype())) {
    apply_check_nonzero(*tensor >= 0, Checker::pow);
  }
}

bool is_boolean(const Argument& x) {
  const Tensor* const tensor = x.tensor();
  if (tensor == nullptr) return x.scalar().dtype() == boolean;
  return tensor->is_defined() && tensor->dtype() == boolean;
}

/// A function of numbers; of two booleans the `condition`.
Tensor of_numbers(const Op& op, Tensor (*condition)(const Argument&, const Argument&),
                  const Argument& a, const Argument& b) {
  return is_boolean(a) && is_boolean(b) ? condition(a, b) : apply_binary(op, a, b);
}

}  // namespace

// clang-format off
Tensor add(const Argument& a, const Argument& b) { return of_numbers(arithmetic["add"], logical_or, a, b); }
Tensor sub(const Argument& a, const Argument& b) { return apply_binary(arithmetic["sub"], a, b); }
Tensor mul(const Argument& a, const Argument& b) { return of_numbers(arithmetic["mul"], logical_and, a, b); }
Tensor div(const Argument& a, const Argument& b) { return apply_floating(arithmetic["div"], a, b); }
Tensor floor_divide(const Argument& a, const Argument& b) { return divide_integers(arithmetic["floor_divide"], a, b, Checker::floor_divide); }
Tensor remainder(const Argument& a, const Argument& b) { return divide_integers(arithmetic["remainder"], a, b, Checker::remainder); }
Tensor fmod(const Argument& a, const Argument& b) { return divide_integers(arithmetic["fmod"], a, b, Checker::fmod); }
Tensor maximum(const Argument& a, const Argument& b) { return of_numbers(arithmetic["maximum"], logical_or, a, b); }
Tensor minimum(const Argument& a, const Argument& b) { return of_numbers(arithmetic["minimum"], logical_and, a, b); }
Tensor copysign(const Argument& a, const Argument& b) { return apply_floating(arithmetic["copysign"], a, b); }
Tensor operator+(const Argument& a, const Argument& b) { return of_numbers(arithmetic["add"], logical_or, a, b); }
Tensor operator-(const Argument& a, const Argument& b) { return apply_binary(arithmetic["sub"], a, b); }
Tensor operator*(const Argument& a, const Argument& b) { return of_numbers(arithmetic["mul"], logical_and, a, b); }
Tensor operator/(const Argument& a, const Argument& b) { return apply_floating(arithmetic["div"], a, b); }
Tensor operator%(const Argument& a, const Argument& b) { return divide_integers(arithmetic["remainder"], a, b, Checker::remainder); }
// clang-format on

Tensor pow(const Argument& a, const Argument& b) {
  const DType dtype = common_dtype("pow", {&a, &b});
  if (!is_integer(dtype)) return apply_promoted(arithmetic["pow"], a, b, full_dtype(dtype));
  const Promoted base("pow", a, dtype), exponent("pow", b, dtype);
  check_exponents(b);
  return apply(arithmetic["integer_pow"], {base.get(), exponent.get()});
}

Tensor check_nonzero(const Tensor& x) {
  return apply_check_nonzero(x, Checker::check_nonzero);
}

Tensor clamp(const Argument& x, const Argument& low, const Argument& high) {
  return apply_ternary(arithmetic["clamp"], x, low, high, common_dtype("clamp", {&x, &low, &high}));
}

Tensor fma(const Argument& a, const Argument& b, const Argument& c) {
  return apply_ternary(arithmetic["fma"], a, b, c, floating_dtype("fma", {&a, &b, &c}));
}

// ---- assignment: the name stands for the new value

Tensor& Tensor::operator+=(const Argument& other) {
  return *this = *this + other;
}
Tensor& Tensor::operator-=(const Argument& other) {
  return *this = *this - other;
}
Tensor& Tensor::operator*=(const Argument& other) {
  return *this = *this * other;
}
Tensor& Tensor::operator/=(const Argument& other) {
  return *this = *this / other;
}

const Variable& Variable::operator+=(const Argument& other) const {
  update([&](const Tensor& value) { return value + other; });
  return *this;
}
const Variable& Variable::operator-=(const Argument& other) const {
  update([&](const Tensor& value) { return value - other; });
  return *this;
}
const Variable& Variable::operator*=(const Argument& other) const {
  update([&](const Tensor& value) { return value * other; });
  return *this;
}

const Op& ops::add() {
  return arithmetic["add"];
}
int64_t ops::checker_of(const CheckText& text) {
  CheckTexts& texts = check_texts();
  const std::lock_guard lock(texts.mutex);
  const auto found = std::ranges::find(texts.all, text);
  const auto number = found - texts.all.begin();
  if (found == texts.all.end()) texts.all.push_back(text);
  return static_cast<int64_t>(Checker::others) + number;
}

const Op& ops::check_nonzero() {
  return arithmetic["check_nonzero"];
}

std::span<const Op> arithmetic_ops() {
  return arithmetic.ops;
}

}  // namespace nitinol
