#include "eager/ops/matmul.h"

#include "eager/apply.h"
#include "eager/infer.h"
#include "eager/ops/cast.h"
#include "eager/ops/family.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <algorithm>

namespace nitinol {
namespace {

/// The axes before the last two.
Shape batch_of(const Shape& shape) {
  Shape batch = shape;
  batch.erase(batch.size() - 1);
  batch.erase(batch.size() - 1);
  return batch;
}

[[noreturn]] void throw_inner(const Spec& a, const Spec& b, int64_t expected, int64_t got) {
  throw Error(
      ErrorKind::shape,
      {.where = "matmul",
       .what = fmt::format("inner dimensions of {} and {} differ", describe(a), describe(b)),
       .expected = fmt::format("b.shape[{}] == {}", b.shape.size() > 1 ? -2 : -1, expected),
       .got = fmt::format("{}", got),
       .fix = "Transpose an operand, or check the layer's sizes."});
}

Spec infer_matmul(const Op& op, Inputs inputs, const Attrs&) {
  const Spec& a = inputs[0]->spec();
  const Spec& b = inputs[1]->spec();
  check_dtype(op, *inputs[0]);
  check_dtype(op, *inputs[1]);
  const int m = a.shape.size();
  const int n = b.shape.size();
  if (m < 2 || n < 2 || a.dtype != b.dtype) {
    throw Error(ErrorKind::internal, {.where = "matmul",
                                      .what = "operands are not matrices of one dtype",
                                      .expected = {},
                                      .got = describe(a) + ", " + describe(b),
                                      .fix = {}});
  }
  if (a.shape[m - 1] != b.shape[n - 2]) throw_inner(a, b, a.shape[m - 1], b.shape[n - 2]);
  Spec spec = a;
  spec.shape = broadcast_shapes(op.name, batch_of(a.shape), batch_of(b.shape));
  spec.shape.push_back(a.shape[m - 2]);
  spec.shape.push_back(b.shape[n - 1]);
  spec.is_weak = false;
  spec.device = common_device(op, inputs);
  return spec;
}

/// The operand with its batch axes broadcast to those of `result`.
OperandLayout layout_of(const Tensor& x, const Shape& result) {
  Shape shape = batch_of(result);
  shape.push_back(x.shape()[x.rank() - 2]);
  shape.push_back(x.shape()[x.rank() - 1]);
  const Strides& strides = x.internals().strides;
  Strides broadcast = broadcast_strides(x.shape(), strides, shape);
  for (int i = 1; i <= 2; ++i) broadcast[shape.size() - i] = strides[x.rank() - i];
  return {.dtype = x.dtype(), .shape = shape, .strides = broadcast};
}

Tensor matmul_rule(const GradientCall& c, int k) {
  return k == 0 ? matmul(c.gradient, transpose(c.inputs[1]))
                : matmul(transpose(c.inputs[0]), c.gradient);
}

LibraryCall call_matmul(Inputs inputs, const Attrs&, const Spec& spec) {
  return {
      .kind = LibraryCall::Kind::matmul,
      .operands = {layout_of(*inputs[0], spec.shape),
                   layout_of(*inputs[1], spec.shape),
                   {.dtype = spec.dtype, .shape = spec.shape, .strides = strides_of(spec.shape)}},
      .threads = 0};
}

constexpr auto products = family({
    {.name = "matmul",
     .kind = OpKind::library,
     .arity = 2,
     .accepts = numeric,
     .precision = Precision::low,
     .infer = infer_matmul,
     .call = call_matmul,
     .gradient = {.rule = matmul_rule, .looks_at_inputs = 0b11},
     .summary = "Matrix product; leading axes broadcast."},
});

/// A batch of matrices times one matrix is the product of all their rows with it: one large product
/// instead of several, and a gradient of the matrix without a sum over the batch.
Tensor product_of(const Tensor& a, const Tensor& b) {
  if (a.rank() <= 2 || b.rank() != 2) return apply(products["matmul"], {&a, &b});
  Shape shape = a.shape();
  int64_t rows = 1;
  for (int i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  const Tensor folded = reshape(a, {rows, shape.back()});
  shape[shape.size() - 1] = b.shape()[1];
  return reshape(apply(products["matmul"], {&folded, &b}), shape);
}

void check_rank(const Tensor& x, std::string_view side) {
  if (x.rank() > 0) return;
  throw Error(ErrorKind::shape, {.where = "matmul",
                                 .what = fmt::format("the {} operand is {}", side, describe(x)),
                                 .expected = "at least one dimension",
                                 .got = "none",
                                 .fix = "Multiply by a number with *."});
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_rank(a, "left");
  check_rank(b, "right");
  const int64_t inner = b.shape()[std::max(b.rank() - 2, 0)];
  if (a.shape().back() != inner) throw_inner(a.spec(), b.spec(), a.shape().back(), inner);
  const DType dtype = product_dtype("matmul", a.dtype(), b.dtype());
  const Tensor left = cast(a.rank() == 1 ? unsqueeze(a, 0) : a, dtype);
  const Tensor right = cast(b.rank() == 1 ? unsqueeze(b, 1) : b, dtype);
  Tensor product = product_of(left, right);
  if (b.rank() == 1) product = squeeze(product, -1);
  if (a.rank() == 1) product = squeeze(product, b.rank() == 1 ? -1 : -2);
  return product;
}

std::span<const Op> matmul_ops() {
  return products.ops;
}

}  // namespace nitinol
