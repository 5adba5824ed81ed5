#include "eager/ops/index.h"

#include "eager/apply.h"
#include "eager/host_read.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/infer.h"
#include "eager/ops/view.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace nitinol {
namespace {

[[noreturn]] void throw_index(const Spec& table, int64_t index) {
  const int64_t rows = table.shape[0];
  throw Error(ErrorKind::value,
              {.where = "take",
               .what = fmt::format("index {} for an axis of {}", index, rows),
               .expected = rows == 0 ? "no index: the axis is empty"
                                     : fmt::format("{} <= index < {}", -rows, rows),
               .got = fmt::format("{}", index),
               .fix = "Check the indices; clamp limits them."});
}

Spec infer_take(const Op& op, Inputs inputs, const Attrs&) {
  const Spec& table = inputs[0]->spec();
  const Spec& indices = inputs[1]->spec();
  check_axis(op, 0, table.shape.size());
  if (indices.dtype != i64) {
    throw Error(ErrorKind::dtype, {.where = std::string(op.name),
                                   .what = "the indices are " + describe(indices),
                                   .expected = "int64",
                                   .got = std::string(name_of(indices.dtype)),
                                   .fix = "Cast them: indices.to(i64)."});
  }
  Spec spec = {.dtype = table.dtype,
               .shape = indices.shape,
               .is_weak = false,
               .device = common_device(op, inputs)};
  for (int i = 1; i < table.shape.size(); ++i) spec.shape.push_back(table.shape[i]);
  if (table.shape[0] == 0 && element_count(indices.shape) > 0) throw_index(table, 0);
  return spec;
}

LibraryCall take_call(Inputs inputs, const Attrs&, const Spec& spec) {
  const auto layout = [](const Tensor& x) {
    return OperandLayout{x.dtype(), x.shape(), x.internals().strides};
  };
  return {.kind = LibraryCall::Kind::take,
          .operands = {layout(*inputs[0]),
                       layout(*inputs[1]),
                       {spec.dtype, spec.shape, strides_of(spec.shape)}},
          .threads = 0};
}

/// Names the first index that is out of range.
void fail_take(const Op&, Inputs inputs, const Attrs&) {
  const Spec& table = inputs[0]->spec();
  const TensorData& data = inputs[1]->internals();
  std::vector<int64_t> indices(static_cast<std::size_t>(element_count(data.spec.shape)));
  eager::copy_elements(data, reinterpret_cast<std::byte*>(indices.data()));
  for (const int64_t index : indices) {
    if (index >= table.shape[0] || index < -table.shape[0]) throw_index(table, index);
  }
}

constinit const Op take_op = {.name = "take",
                              .kind = OpKind::index,
                              .arity = 2,
                              .has_checks = true,
                              .infer = infer_take,
                              .call = take_call,
                              .fail = fail_take,
                              .summary = "The rows that indices name."};

void check_indices(std::string_view where, const Tensor& indices) {
  if (is_integer(indices.dtype())) return;
  throw Error(ErrorKind::dtype, {.where = std::string(where),
                                 .what = "the indices are " + describe(indices),
                                 .expected = "integers",
                                 .got = std::string(name_of(indices.dtype())),
                                 .fix = "Cast them: indices.to(i64)."});
}

}  // namespace

Tensor take(const Tensor& x, const Tensor& indices, int64_t axis) {
  check_indices("take", indices);
  const int along = normalize_axis("take", axis, x.rank());
  const Tensor rows_of = cast(indices, i64);
  if (along == 0) return apply(take_op, {&x, &rows_of});
  // The axis goes to the front for the op, and the axes of the indices go to its place.
  Dims front = {along};
  for (int i = 0; i < x.rank(); ++i) {
    if (i != along) front.push_back(i);
  }
  const Tensor table = permute(x, front);
  const Tensor rows = apply(take_op, {&table, &rows_of});
  Dims back;
  for (int i = 0; i < along; ++i) back.push_back(indices.rank() + i);
  for (int i = 0; i < indices.rank(); ++i) back.push_back(i);
  for (int i = along + indices.rank(); i < rows.rank(); ++i) back.push_back(i);
  return permute(rows, back);
}

Tensor one_hot(const Tensor& indices, int64_t classes, DType dtype) {
  check_indices("one_hot", indices);
  if (classes < 0) {
    throw Error(ErrorKind::value, {.where = "one_hot",
                                   .what = "the number of classes",
                                   .expected = "at least 0",
                                   .got = fmt::format("{}", classes),
                                   .fix = "Pass the number of classes."});
  }
  const Tensor columns = arange(classes, i64);
  return cast(unsqueeze(cast(indices, i64), -1) == columns, dtype);
}

std::span<const Op* const> index_ops() {
  static constexpr auto ops = std::to_array<const Op*>({&take_op});
  return ops;
}

}  // namespace nitinol
