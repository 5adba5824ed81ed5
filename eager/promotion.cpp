#include "eager/promotion.h"

#include "core/autocast.h"
#include "core/error.h"
#include "core/interpreter.h"
#include "eager/all_ops.h"
#include "eager/apply.h"
#include "eager/elements.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace nitinol {
namespace {

enum class Kind : uint8_t { boolean, integer, floating };

Kind kind_of(DType dtype) {
  if (is_floating(dtype)) return Kind::floating;
  return dtype == boolean ? Kind::boolean : Kind::integer;
}

/// f(), whose Errors are those of `where`.
template <class F>
auto named(std::string_view where, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    ErrorReport report = error.report();
    report.where = where;
    throw Error(error.kind(), std::move(report));
  }
}

/// A weak number as another dtype, still weak.
Tensor cast_weak(std::string_view where, const Tensor& number, DType dtype) {
  const bool may_not_fit =
      is_integer(number.dtype()) && is_integer(dtype) && dtype != number.dtype();
  if (may_not_fit) return fitted(where, number, dtype);
  return apply(ops::cast(), {&number}, {dtype, true});
}

/// As Promoted.
Tensor promoted(std::string_view where, const Argument& argument, DType dtype, Device device) {
  if (const Tensor* const tensor = argument.tensor()) {
    if (tensor->dtype() == dtype) return *tensor;
    if (tensor->spec().is_weak) return cast_weak(where, *tensor, dtype);
    return apply(ops::cast(), {tensor}, {dtype, false});
  }
  if (is_integer(dtype) && !fits(dtype, argument.scalar()))
    throw_does_not_fit(where, dtype, argument.scalar());
  return constant(argument.scalar(), dtype, true, device);
}

}  // namespace

DType promote(std::string_view where, DType a, DType b) {
  return named(where, [=] { return promote(a, b); });
}

Tensor fitted(std::string_view where, const Tensor& x, DType dtype) {
  const DType widest = is_unsigned(x.dtype()) ? u64 : i64;
  const Tensor wide =
      x.dtype() == widest ? x : apply(ops::cast(), {&x}, {widest, x.spec().is_weak});
  return named(where, [&] { return apply(ops::check_fits(), {&wide}, {dtype}); });
}

DType common_dtype(std::string_view where, std::initializer_list<const Argument*> arguments) {
  std::optional<DType> strong;
  std::optional<DType> weak;
  const auto joined = [where](const std::optional<DType>& a, DType b) {
    return a ? promote(where, *a, b) : b;
  };
  for (const Argument* argument : arguments) {
    const Tensor* tensor = argument->tensor();
    if (tensor == nullptr)
      weak = joined(weak, argument->scalar().dtype());
    else if (tensor->spec().is_weak)
      weak = joined(weak, tensor->dtype());
    else
      strong = joined(strong, tensor->dtype());
  }
  if (!strong) return weak.value_or(f32);  // an op has at least one operand
  if (!weak || kind_of(*weak) <= kind_of(*strong)) return *strong;
  return kind_of(*weak) == Kind::integer ? i64 : f32;
}

Promoted::Promoted(std::string_view where, const Argument& argument, DType dtype)
    : tensor_(argument.tensor()) {
  if (tensor_ != nullptr && tensor_->dtype() == dtype) return;
  owned_ = promoted(where, argument, dtype, default_device());
  tensor_ = &owned_;
}

Promoted::Promoted(std::string_view where, const Argument& argument, DType dtype, Device device)
    : owned_(promoted(where, argument, dtype, device)), tensor_(&owned_) {}

Scalar::operator Tensor() const {
  return traced_.is_defined() ? traced_ : constant(*this, dtype(), true);
}

void Scalar::note_look(const char* what, const std::source_location& place) const {
  current().read(traced_, {.what = what, .place = place});
}

Tensor apply_promoted(const Op& op, const Argument& a, const Argument& b, DType dtype) {
  const Promoted x(op.name, a, dtype);
  const Promoted y(op.name, b, dtype);
  return apply(op, {x.get(), y.get()});
}

DType floating_dtype(std::string_view where, std::initializer_list<const Argument*> arguments) {
  const DType dtype = common_dtype(where, arguments);
  if (is_floating(dtype)) return dtype;
  for (const Argument* argument : arguments) {
    const bool is_number = argument->tensor() == nullptr || argument->tensor()->spec().is_weak;
    if (!is_number) return f32;
  }
  return f64;
}

DType product_dtype(std::string_view where, DType a, DType b) {
  const DType dtype = promote(where, a, b);
  return is_autocasting() && is_cast_freely(dtype) ? autocast_dtype() : dtype;
}

DType full_dtype(DType dtype) {
  return is_autocasting() && is_cast_freely(dtype) ? f32 : dtype;
}

Tensor beside_product(const Tensor& bias, const Tensor& product) {
  if (!is_autocasting() || !is_cast_freely(bias.dtype()) || !is_cast_freely(product.dtype()))
    return bias;
  return *Promoted("cast", bias, product.dtype()).get();
}

Tensor widened(const Tensor& x) {
  if (!x.is_defined() || (x.dtype() != f16 && x.dtype() != bf16)) return x;
  return *Promoted("cast", x, f32).get();
}

Tensor narrowed(const Tensor& computed, const Tensor& given) {
  if (!is_floating(given.dtype())) return computed;
  return *Promoted("cast", computed, given.dtype()).get();
}

Tensor as_floats(const Tensor& x) {
  if (!x.is_defined() || is_floating(x.dtype())) return x;
  return *Promoted("cast", x, f32).get();
}

Tensor apply_floating(const Op& op, const Tensor& x) {
  if (!x.is_defined() || is_floating(x.dtype())) return apply(op, {&x});
  const Promoted floats(op.name, x, x.spec().is_weak ? f64 : f32);
  return apply(op, {floats.get()});
}

Tensor apply_floating(const Op& op, const Argument& a, const Argument& b) {
  const DType dtype = floating_dtype(op.name, {&a, &b});
  return apply_promoted(op, a, b, op.precision == Precision::full ? full_dtype(dtype) : dtype);
}

Tensor constant(const Scalar& number, DType dtype, bool is_weak, Device device) {
  Tensor tensor = make_number({.dtype = dtype, .shape = {}, .is_weak = is_weak, .device = device},
                              element_of(dtype, number));
  current().created(tensor);
  return tensor;
}

}  // namespace nitinol
