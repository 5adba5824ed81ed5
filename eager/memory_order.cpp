// An image between two convolutions lies channels last, a matrix that is transposed lies column
// after column. An elementwise op that gave a row-major result would go through it across, for
// eight times as long, and what reads the result in the old order would transpose it back.
//
// Instead the op is applied to views of its operands, whose axes are in the order of memory, and a
// view of the result is returned. Views and op are recorded, so that a Plan does what eager does,
// and all passes and the memory plan still see row-major results. Two views that undo each other
// are dropped by simplify.
//
// apply() does it between inference and the interpreter. So the tape and the reductions of its
// rules see the logical shapes, and no bit depends on how an operand lies in memory.
#include "eager/memory_order.h"

#include "core/interpreter.h"
#include "eager/all_ops.h"

#include <algorithm>
#include <array>

namespace nitinol::eager {
namespace {

/// Operands of an elementwise op, at most.
constexpr std::size_t most_operands = 4;
/// Smaller matrices are row-major: the views take longer than they save. (Images of any size lie as
/// convolutions want them.)
constexpr int64_t smallest_matrix = 256;

Dims permuted(const Dims& dims, const Dims& axes) {
  Dims result = dims;
  for (int i = 0; i < dims.size(); ++i) result[i] = dims[axes[i]];
  return result;
}

/// True if elements lie without gaps where axes are visited in this order.
bool lies_in(const Dims& order, const TensorData& data) {
  return is_contiguous(permuted(data.spec.shape, order), permuted(data.strides, order));
}

/// Axes by their strides; equal ones, of axes of size 1, as they come.
Dims order_of(const Strides& strides) {
  Dims order = strides;
  for (int i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  return order;
}

Tensor view(const Op& op, const Tensor& x, const Dims& attr) {
  const Tensor* const input = &x;
  const Attrs attrs = {attr};
  return current().run(op, {&input, 1}, attrs, op.infer(op, {&input, 1}, attrs));
}

/// The operand with its axes, those it is broadcast along too, in this order.
Tensor operand_view(const Tensor& x, const Dims& order) {
  if (x.rank() == 0) return x;
  Shape shape = x.shape();
  while (shape.size() < order.size()) shape.insert(0, 1);
  const Tensor whole = x.rank() == order.size() ? x : view(ops::reshape(), x, shape);
  return view(ops::permute(), whole, order);
}

/// memory_order() of an op whose operands are not all row-major. Those with gaps have no say, nor
/// have those whose last axis is the last in memory, too, as that of a transformer's heads: row by
/// row they are visited as fast, and what comes after has row-major operands.
[[gnu::noinline]] Dims common_order(Inputs inputs, const Shape& shape) {
  const auto is_whole = [&shape](const Tensor* input) { return input->shape() == shape; };
  Dims common;
  for (const Tensor* input : inputs) {
    const TensorData& data = input->internals();
    if (!is_whole(input) || is_contiguous(shape, data.strides)) continue;
    const Dims order = order_of(data.strides);
    if (order.back() == order.size() - 1 || !lies_in(order, data)) continue;
    if (common.empty()) common = order;
    if (!lies_in(common, data)) return {};
  }
  if (common.empty()) return {};
  // Row-major operands may lie in both orders: a matrix of one column.
  const bool has_other = std::ranges::any_of(inputs, [&](const Tensor* input) {
    const TensorData& data = input->internals();
    return is_whole(input) && is_contiguous(shape, data.strides) && !lies_in(common, data);
  });
  return has_other ? Dims() : common;
}

}  // namespace

Dims memory_order(const Op& op, Inputs inputs, const Spec& spec) {
  if (op.kind != OpKind::elementwise || op.is_row_major || spec.shape.size() < 2 ||
      inputs.size() > most_operands)
    return {};
  const auto is_row_major = [&spec](const Tensor* input) {
    const TensorData& data = input->internals();
    return data.spec.shape != spec.shape || is_contiguous(spec.shape, data.strides);
  };
  if (std::ranges::all_of(inputs, is_row_major)) return {};
  if (spec.shape.size() == 2 && element_count(spec.shape) < smallest_matrix) return {};
  return common_order(inputs, spec.shape);
}

Tensor run_in_order(const Dims& order, const Op& op, Inputs inputs, const Attrs& attrs,
                    const Spec& spec) {
  std::array<Tensor, most_operands> views;
  std::array<const Tensor*, most_operands> pointers = {};
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    views[k] = operand_view(*inputs[k], order);
    pointers[k] = &views[k];
  }
  Spec in_order = spec;
  in_order.shape = permuted(spec.shape, order);
  Dims back = order;
  for (int i = 0; i < order.size(); ++i) back[order[i]] = i;
  return view(ops::permute(), current().run(op, {pointers.data(), inputs.size()}, attrs, in_order),
              back);
}

}  // namespace nitinol::eager
