// Functions of one tensor, applied to each element.
//
// One entry is the whole operation. The formula is written once, over any scalar type: with a Num
// it is the eager loop, with Expr it emits the instructions that compiled kernels are made of.
#include "eager/ops/unary.h"

#include "eager/apply.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"

namespace nitinol {
namespace {

Tensor gelu_slope(const Tensor& x);

constexpr auto gelu_tanh_gradient = [](const Tensor& x, const Tensor& g) {
  const Tensor s = sigmoid((x + x * x * x * 0.044715) * 1.5957691216057308);
  const Tensor slope = (x * x * 0.134145 + 1) * 1.5957691216057308;
  return g * (s + x * (s * (1 - s) * slope));
};

// clang-format off
constexpr auto unaries_in_full = std::to_array<std::string_view>({"rsqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "tan", "softplus"});
constexpr auto unaries = family<unaries_in_full>({
    by_input(unary_op("abs", number_types, [](auto x) { return abs(x); }, "|x|."),
        [](auto& x, auto& g) { return g * sign(x); }),
    with_rule(unary_op("neg", number_types, [](auto x) { return -x; }, "-x."),
        [](const GradientCall& c, int) { return -c.gradient; }),
    without_gradient(unary_op("sign", number_types,
        [](auto x) { return sign(x); }, "-1, 0 or 1.")),
    by_input(unary_op("square", number_types, [](auto x) { return x * x; }, "x * x."),
        [](auto& x, auto& g) { return g * (x * 2); }),
    without_gradient(unary_op("floor", floating_types, [](auto x) { return floor(x); }, "Largest integral value <= x.")),
    without_gradient(unary_op("ceil", floating_types, [](auto x) { return ceil(x); }, "Smallest integral value >= x.")),
    without_gradient(unary_op("round", floating_types, [](auto x) { return round_even(x); }, "To the nearest integral value, ties to even.")),
    without_gradient(unary_op("trunc", floating_types, [](auto x) { return trunc(x); }, "Towards zero.")),
    // Written so that NaN, which fails the comparison, stays, and -0 becomes 0.
    by_result(unary_op("relu", number_types, [](auto x) { return select(x <= 0, 0, x); }, "max(x, 0)."),
        [](auto& y, auto& g) { return where(y > 0, g, 0); }),

    by_result(unary_op("sqrt", floating_types, [](auto x) { return sqrt(x); }, "Square root."),
        [](auto& y, auto& g) { return g / (y * 2); }),
    by_result(unary_op("rsqrt", floating_types, [](auto x) { return 1 / sqrt(x); }, "1 / sqrt(x)."),
        [](auto& y, auto& g) { return g * (y * y * y * -0.5); }),
    by_result(unary_op("reciprocal", floating_types, [](auto x) { return 1 / x; }, "1 / x."),
        [](auto& y, auto& g) { return -g * (y * y); }),
    with_rule(unary_op("exp", floating_types, [](auto x) { return exp(x); }, "e^x."),
        [](const GradientCall& c, int) { return c.gradient * c.result; }, 0, true),
    by_result(unary_op("exp2", floating_types, [](auto x) { return exp2(x); }, "2^x."),
        [](auto& y, auto& g) { return g * (y * 0.69314718055994531); }),
    by_result(unary_op("expm1", floating_types, [](auto x) { return expm1(x); }, "e^x - 1."),
        [](auto& y, auto& g) { return g * (y + 1); }),
    with_rule(unary_op("log", floating_types, [](auto x) { return log(x); }, "Natural logarithm."),
        [](const GradientCall& c, int) { return c.gradient / c.inputs[0]; }, 0b1),
    by_input(unary_op("log1p", floating_types, [](auto x) { return log1p(x); }, "ln(1 + x)."),
        [](auto& x, auto& g) { return g / (x + 1); }),
    by_input(unary_op("log2", floating_types, [](auto x) { return log2(x); }, "Logarithm to base 2."),
        [](auto& x, auto& g) { return g / (x * 0.69314718055994531); }),
    by_input(unary_op("log10", floating_types, [](auto x) { return log10(x); }, "Logarithm to base 10."),
        [](auto& x, auto& g) { return g / (x * 2.3025850929940457); }),
    by_input(unary_op("sin", floating_types, [](auto x) { return sin(x); }, "Sine."),
        [](auto& x, auto& g) { return g * cos(x); }),
    by_input(unary_op("cos", floating_types, [](auto x) { return cos(x); }, "Cosine."),
        [](auto& x, auto& g) { return -g * sin(x); }),
    by_result(unary_op("tan", floating_types, [](auto x) { return tan(x); }, "Tangent."),
        [](auto& y, auto& g) { return g * (y * y + 1); }),
    by_result(unary_op("tanh", floating_types, [](auto x) { return tanh(x); }, "Hyperbolic tangent."),
        [](auto& y, auto& g) { return g * (1 - y * y); }),
    by_input(unary_op("erf", floating_types, [](auto x) { return erf(x); }, "The error function."),
        [](auto& x, auto& g) { return g * (exp(-x * x) * 1.1283791670955126); }),
    by_result(unary_op("sigmoid", floating_types,
        [](auto x) { return sigmoid(x); }, "1 / (1 + e^-x)."),
        [](auto& y, auto& g) { return g * (y * (1 - y)); }),
    by_input(unary_op("gelu", floating_types,
        [](auto x) { return gelu(x); }, "x (1 + erf(x / sqrt 2)) / 2."),
        [](auto& x, auto& g) { return g * gelu_slope(x); }),
    by_input(unary_op("gelu_slope", floating_types,
        [](auto x) { return gelu_slope(x); }, "The derivative of gelu."),
        [](auto& x, auto& g) {
          return g * ((2 - x * x) * (exp(x * x * -0.5) * 0.3989422804014327));
        }),
    by_input(unary_op("gelu_tanh", floating_types,
        [](auto x) { return gelu_tanh(x); },
        "x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2."),
        gelu_tanh_gradient),
    by_input(unary_op("silu", floating_types,
        [](auto x) { return silu(x); }, "x sigmoid(x)."),
        [](auto& x, auto& g) {
          const Tensor s = sigmoid(x);
          return g * (s * (x * (1 - s) + 1));
        }),
    // exp never overflows: its argument is at most 0.
    by_input(unary_op("softplus", floating_types,
        [](auto x) { return select(x <= 0, 0, x) + log1p(exp(-abs(x))); }, "ln(1 + e^x)."),
        [](auto& x, auto& g) { return g * sigmoid(x); }),

    predicate(unary_op("isnan", floating_types, [](auto x) { return isnan(x); }, "Whether x is NaN.")),
    predicate(unary_op("isinf", floating_types,
        [](auto x) { return isinf(x); }, "Whether x is +inf or -inf.")),
    predicate(unary_op("isfinite", floating_types,
        [](auto x) { return isfinite(x); }, "Whether x is neither infinite nor NaN.")),
    unary_op("logical_not", bool_type, [](auto x) { return !x; }, "Whether x is false."),
    unary_op("bitwise_not", bit_types, [](auto x) { return ~x; }, "All bits flipped."),
});
// clang-format on

Tensor gelu_slope(const Tensor& x) {
  return apply(unaries["gelu_slope"], {&x});
}

bool is_boolean(const Tensor& x) {
  return x.is_defined() && x.dtype() == boolean;
}

bool is_whole(const Tensor& x) {
  return x.is_defined() && !is_floating(x.dtype());
}

/// Integers and booleans are integral already.
Tensor rounded(const Op& op, const Tensor& x) {
  return is_whole(x) ? x : apply(op, {&x});
}

/// A condition that holds for all integers and booleans, or for none.
Tensor of_finite(const Op& op, const Tensor& x, bool of_whole) {
  if (!is_whole(x)) return apply(op, {&x});
  return full(x.shape(), of_whole, boolean, x.device());
}

}  // namespace

// clang-format off
Tensor abs(const Tensor& x) { return is_boolean(x) ? x : apply(unaries["abs"], {&x}); }
Tensor neg(const Tensor& x) { return apply(unaries["neg"], {&x}); }
Tensor sign(const Tensor& x) { return apply(unaries["sign"], {&x}); }
Tensor square(const Tensor& x) { return apply(unaries["square"], {&x}); }
Tensor floor(const Tensor& x) { return rounded(unaries["floor"], x); }
Tensor ceil(const Tensor& x) { return rounded(unaries["ceil"], x); }
Tensor round(const Tensor& x) { return rounded(unaries["round"], x); }
Tensor trunc(const Tensor& x) { return rounded(unaries["trunc"], x); }
Tensor relu(const Tensor& x) { return apply(unaries["relu"], {&x}); }
Tensor sqrt(const Tensor& x) { return apply_floating(unaries["sqrt"], x); }
Tensor rsqrt(const Tensor& x) { return apply_floating(unaries["rsqrt"], x); }
Tensor reciprocal(const Tensor& x) { return apply_floating(unaries["reciprocal"], x); }
Tensor exp(const Tensor& x) { return apply_floating(unaries["exp"], x); }
Tensor exp2(const Tensor& x) { return apply_floating(unaries["exp2"], x); }
Tensor expm1(const Tensor& x) { return apply_floating(unaries["expm1"], x); }
Tensor log(const Tensor& x) { return apply_floating(unaries["log"], x); }
Tensor log1p(const Tensor& x) { return apply_floating(unaries["log1p"], x); }
Tensor log2(const Tensor& x) { return apply_floating(unaries["log2"], x); }
Tensor log10(const Tensor& x) { return apply_floating(unaries["log10"], x); }
Tensor sin(const Tensor& x) { return apply_floating(unaries["sin"], x); }
Tensor cos(const Tensor& x) { return apply_floating(unaries["cos"], x); }
Tensor tan(const Tensor& x) { return apply_floating(unaries["tan"], x); }
Tensor tanh(const Tensor& x) { return apply_floating(unaries["tanh"], x); }
Tensor erf(const Tensor& x) { return apply_floating(unaries["erf"], x); }
Tensor sigmoid(const Tensor& x) { return apply_floating(unaries["sigmoid"], x); }
Tensor gelu(const Tensor& x) { return apply_floating(unaries["gelu"], x); }
Tensor gelu_tanh(const Tensor& x) { return apply_floating(unaries["gelu_tanh"], x); }
Tensor silu(const Tensor& x) { return apply_floating(unaries["silu"], x); }
Tensor softplus(const Tensor& x) { return apply_floating(unaries["softplus"], x); }
Tensor isnan(const Tensor& x) { return of_finite(unaries["isnan"], x, false); }
Tensor isinf(const Tensor& x) { return of_finite(unaries["isinf"], x, false); }
Tensor isfinite(const Tensor& x) { return of_finite(unaries["isfinite"], x, true); }
Tensor bitwise_not(const Tensor& x) { return apply(unaries["bitwise_not"], {&x}); }
Tensor operator-(const Tensor& x) { return apply(unaries["neg"], {&x}); }
Tensor operator!(const Tensor& x) { return logical_not(x); }
Tensor operator~(const Tensor& x) { return apply(unaries["bitwise_not"], {&x}); }
// clang-format on

Tensor logical_not(const Tensor& x) {
  const Tensor condition = cast(x, boolean);
  return apply(unaries["logical_not"], {&condition});
}

std::span<const Op> unary_ops() {
  return unaries.ops;
}

}  // namespace nitinol
