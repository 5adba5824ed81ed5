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

template <class From>
Loops loops_from(ScalarType result) {
  // clang-format off
  switch (result) {
    case ScalarType::pred: return loops_of<Convert<bool>, bool, From>;
    case ScalarType::u8: return loops_of<Convert<uint8_t>, uint8_t, From>;
    case ScalarType::i8: return loops_of<Convert<int8_t>, int8_t, From>;
    case ScalarType::i16: return loops_of<Convert<int16_t>, int16_t, From>;
    case ScalarType::i32: return loops_of<Convert<int32_t>, int32_t, From>;
    case ScalarType::i64: return loops_of<Convert<int64_t>, int64_t, From>;
    case ScalarType::f32: return loops_of<Convert<float>, float, From>;
    case ScalarType::f64: return loops_of<Convert<double>, double, From>;
    case ScalarType::u16: return loops_of<ToOddFloat, float, From>;
    case ScalarType::u32:
    case ScalarType::u64: break;
  }
  // clang-format on
  return {};
}

Loops cast_loops(ScalarType argument, ScalarType result) {
  // clang-format off
  switch (argument) {
    case ScalarType::pred: return loops_from<bool>(result);
    case ScalarType::u8: return loops_from<uint8_t>(result);
    case ScalarType::i8: return loops_from<int8_t>(result);
    case ScalarType::i16: return loops_from<int16_t>(result);
    case ScalarType::i32: return loops_from<int32_t>(result);
    case ScalarType::i64: return loops_from<int64_t>(result);
    case ScalarType::f32: return loops_from<float>(result);
    case ScalarType::f64: return loops_from<double>(result);
    case ScalarType::u16:
    case ScalarType::u32:
    case ScalarType::u64: break;
  }
  // clang-format on
  return {};
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
void fail_fit(const Op&, Inputs inputs, const Attrs& attrs) {
  const TensorData& data = inputs[0]->internals();
  std::vector<int64_t> numbers(static_cast<std::size_t>(element_count(data.spec.shape)));
  HostElements(data).copy_to(reinterpret_cast<std::byte*>(numbers.data()));
  for (const int64_t number : numbers) {
    if (!fits(attr<DType>(attrs, 0), number)) throw_does_not_fit(attr<DType>(attrs, 0), number);
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

/// Whether a T holds the number.
template <class T>
using Fits = decltype([](auto x) { return convert<int64_t>(convert<T>(x)) == x; });

Loops fits_loops(ScalarType, ScalarType result) {
  // clang-format off
  switch (result) {
    case ScalarType::u8: return loops_of<Fits<uint8_t>, bool, int64_t>;
    case ScalarType::i8: return loops_of<Fits<int8_t>, bool, int64_t>;
    case ScalarType::i16: return loops_of<Fits<int16_t>, bool, int64_t>;
    case ScalarType::i32: return loops_of<Fits<int32_t>, bool, int64_t>;
    default: return loops_of<Fits<int64_t>, bool, int64_t>;
  }
  // clang-format on
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
     .accepts = {i64},
     .effect = Effect::may_fail,
     .attr_names = fits_attrs,
     .infer = infer_fits,
     .formula = {.emit = [](std::span<const Expr> x) { return x[0]; }, .loops = cast_loops},
     .check = {.emit =
                   [](std::span<const Expr> x, ScalarType result) {
                     return convert(convert(x[0], result), ScalarType::i64) == x[0];
                   },
               .loops = fits_loops,
               .code = Status::number_out_of_range},
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
