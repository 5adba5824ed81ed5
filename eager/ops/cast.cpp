#include "eager/ops/cast.h"

#include "eager/all_ops.h"
#include "eager/apply.h"
#include "eager/elements.h"
#include "eager/host_read.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"

#include <array>

namespace nitinol {
namespace {

constexpr auto identity = [](auto x) { return x; };

consteval Op stored_row_major(Op op) {
  op.is_row_major = true;
  return op;
}

/// The identity with its result converted: what a cast does between compute types.
template <class To>
struct Convert {
  template <class X>
  constexpr auto operator()(X x) const {
    return convert<To>(x);
  }
};

/// What is stored as 16 bits.
struct ToOddFloat {
  template <class X>
  constexpr auto operator()(X x) const {
    return to_odd_float(x);
  }
};

Loops cast_loops(ScalarType argument, DType result) {
  return with_type(argument, [&]<class From>(From) -> Loops {
    if (rounds_to_odd(argument, result)) return loops_of<ToOddFloat, float, From>;
    return with_type(compute_type(result),
                     []<class To>(To) -> Loops { return loops_of<Convert<To>, To, From>; });
  });
}

constexpr std::array<std::string_view, 2> cast_attrs = {"dtype", "weak"};

Spec infer_cast(const Op&, Inputs inputs, const Attrs& attrs) {
  Spec spec = inputs[0]->spec();
  spec.dtype = attr<DType>(attrs, 0);
  spec.is_weak = attr<bool>(attrs, 1);
  return spec;
}

Tensor same_gradient(const GradientCall& c, int) {
  return c.gradient;
}

constexpr std::array<std::string_view, 1> fits_attrs = {"dtype"};

/// Names the first number that the dtype does not hold.
void fail_fit(const Op& op, Inputs inputs, const Attrs& attrs) {
  const TensorData& data = inputs[0]->internals();
  const HostElements elements(data);
  std::vector<uint64_t> room;
  for (const uint64_t& bits : elements.all(room)) {
    const Scalar number = number_at(data.spec.dtype, &bits);
    if (!fits(attr<DType>(attrs, 0), number))
      throw_does_not_fit(op.name, attr<DType>(attrs, 0), number);
  }
}

Spec infer_fits(const Op& op, Inputs inputs, const Attrs& attrs) {
  check_dtype(op, *inputs[0]);
  Spec spec = inputs[0]->spec();
  spec.dtype = attr<DType>(attrs, 0);
  if (is_integer(spec.dtype)) return spec;
  throw Error(ErrorKind::dtype, {.where = std::string(op.name),
                                 .what = "a dtype that rounds instead of refusing",
                                 .expected = "an integer dtype",
                                 .got = std::string(name_of(spec.dtype)),
                                 .fix = "Use cast."});
}

/// Whether x, an i64 or u64, is the number that it is as another integer type.
template <class X, class Y>
constexpr auto is_same_number(X x, Y converted, X back) {
  return (back == x) & ((converted < 0) == (x < 0));
}

/// Whether a To holds the number.
template <class From, class To>
struct Fits {
  template <class X>
  constexpr auto operator()(X x) const {
    const auto converted = convert<To>(x);
    return is_same_number(x, converted, convert<From>(converted));
  }
};

Loops fits_loops(ScalarType argument, DType result) {
  return with_type(compute_type(result), [&]<class To>(To) -> Loops {
    Loops loops;
    if constexpr (native::Int<To>) {
      loops = argument == ScalarType::u64 ? loops_of<Fits<uint64_t, To>, bool, uint64_t>
                                          : loops_of<Fits<int64_t, To>, bool, int64_t>;
    }
    return loops;
  });
}

constexpr auto casts = family({
    // The conversion is what happens to every formula's result (core/formula.h), so the formula
    // itself is the identity.
    {.name = "cast",
     .kind = OpKind::elementwise,
     .attr_names = cast_attrs,
     .infer = infer_cast,
     .formula = {.emit = [](std::span<const Expr> x) { return x[0]; }, .loops = cast_loops},
     .gradient = {.rule = same_gradient},
     .summary = "Each element as another dtype."},
    stored_row_major(
        with_rule(unary_op("copy", all_types, identity, "The same elements."), same_gradient)),
    // What a run-time number passes on its way to narrower integers: a host number is looked at
    // when it meets them, this one whenever the Plan runs.
    {.name = "check_fits",
     .kind = OpKind::index,
     .accepts = {i64, u64},
     .effect = Effect::may_fail,
     .attr_names = fits_attrs,
     .infer = infer_fits,
     .formula = {.emit = [](std::span<const Expr> x) { return x[0]; }, .loops = cast_loops},
     .check = {.emit =
                   [](std::span<const Expr> x, ScalarType result) {
                     const Expr converted = convert(x[0], result);
                     return is_same_number(x[0], converted, convert(converted, x[0].type));
                   },
               .loops = fits_loops,
               .code = Status::number_out_of_range},
     .checked_input = 0,
     .fail = fail_fit,
     .summary = "Integers as a narrower dtype; fails if one does not fit."},
});

}  // namespace

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype && !x.spec().is_weak) return x;
  return apply(casts["cast"], {&x}, {dtype, false});
}

Tensor copy(const Tensor& x) {
  return apply(casts["copy"], {&x});
}

Tensor row_major(const Tensor& x) {
  const TensorData& data = x.internals();
  return is_contiguous(data.spec.shape, data.strides) ? x : copy(x);
}

Tensor Tensor::to(DType dtype) const {
  return cast(*this, dtype);
}

const Op& ops::cast() {
  return casts["cast"];
}

const Op& ops::check_fits() {
  return casts["check_fits"];
}

const Op& ops::copy() {
  return casts["copy"];
}

std::span<const Op> cast_ops() {
  return casts.ops;
}

}  // namespace nitinol
