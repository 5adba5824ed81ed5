// Convolutions and pooling work on [n, h, w, c] in memory, because that is fastest; what users see
// is a view of it, [n, c, h, w]. Results of elementwise ops are row-major, so a relu between two
// convolutions would transpose the image, and the second convolution transpose it back.
//
// Instead the op is applied to the views [n, h, w, c] of its operands, and a view of the result is
// returned. Views and op are recorded, so that a Plan does what eager does, and all passes and the
// memory plan still see row-major results. Two views that undo each other are dropped by simplify.
//
// apply() does it between inference and the interpreter. So the tape and the reductions of its
// rules see the logical shapes, and no bit depends on how an operand lies in memory.
#include "eager/channels_last.h"

#include "core/interpreter.h"
#include "eager/all_ops.h"
#include "eager/apply.h"

#include <array>

namespace nitinol {
namespace {

/// Operands of an elementwise op, at most.
constexpr std::size_t most_operands = 4;

Dims to_last() {
  return {0, 2, 3, 1};
}
Dims to_first() {
  return {0, 3, 1, 2};
}

Dims permuted(const Dims& dims, const Dims& axes) {
  Dims result = dims;
  for (int i = 0; i < dims.size(); ++i) result[i] = dims[static_cast<int>(axes[i])];
  return result;
}

/// True if all images of the full shape fit the channels-last order, and one fits no other.
bool is_for_channels_last(Inputs inputs, const Shape& shape) {
  const Shape last = permuted(shape, to_last());
  bool is_found = false;
  for (const Tensor* input : inputs) {
    const TensorData& data = input->internals();
    if (data.spec.shape != shape) continue;
    const bool fits = is_contiguous(last, permuted(data.strides, to_last()));
    const bool is_row_major = is_contiguous(shape, data.strides);
    if (is_row_major && !fits) return false;
    is_found |= fits && !is_row_major;
  }
  return is_found;
}

Tensor view(const Op& op, const Tensor& x, const Dims& attr) {
  const Tensor* const input = &x;
  const Attrs attrs = {attr};
  return current().run(op, {&input, 1}, attrs, op.infer(op, {&input, 1}, attrs));
}

/// The operand with its axes, those it is broadcast along too, in channels-last order.
Tensor operand_view(const Tensor& x) {
  if (x.rank() == 0) return x;
  Shape shape = x.shape();
  while (shape.size() < 4) shape.insert(0, 1);
  return view(ops::permute(), x.rank() == 4 ? x : view(ops::reshape(), x, shape), to_last());
}

}  // namespace

bool eager::keeps_channels_last(const Op& op, Inputs inputs, const Spec& spec) {
  return spec.shape.size() == 4 && op.kind == OpKind::elementwise && !op.is_row_major &&
         inputs.size() <= most_operands && is_for_channels_last(inputs, spec.shape);
}

Tensor eager::run_channels_last(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  std::array<Tensor, most_operands> views;
  std::array<const Tensor*, most_operands> pointers = {};
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    views[k] = operand_view(*inputs[k]);
    pointers[k] = &views[k];
  }
  Spec last = spec;
  last.shape = permuted(spec.shape, to_last());
  return view(ops::permute(), current().run(op, {pointers.data(), inputs.size()}, attrs, last),
              to_first());
}

Tensor channels_last(const Tensor& x) {
  return apply(ops::permute(), {&x}, {to_last()});
}

Tensor channels_first(const Tensor& x) {
  return apply(ops::permute(), {&x}, {to_first()});
}

}  // namespace nitinol
