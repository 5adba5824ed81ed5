#include "eager/index_checks.h"

#include "core/error.h"
#include "core/tensor.h"
#include "eager/all_ops.h"
#include "eager/apply.h"
#include "eager/host_read.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

namespace nitinol {

void throw_index(const Op& op, int64_t rows, int64_t index) {
  throw Error(ErrorKind::value,
              {.where = std::string(op.name),
               .what = fmt::format("index {} for an axis of {}", index, rows),
               .expected = rows == 0 ? "no index: the axis is empty"
                                     : fmt::format("{} <= index < {}", -rows, rows),
               .got = fmt::format("{}", index),
               .fix = "Check the indices; clamp limits them."});
}

void check_i64(const Op& op, const Spec& indices) {
  if (indices.dtype == i64) return;
  throw Error(ErrorKind::dtype, {.where = std::string(op.name),
                                 .what = "the indices are " + describe(indices),
                                 .expected = "int64",
                                 .got = std::string(name_of(indices.dtype)),
                                 .fix = "Cast them: indices.to(i64)."});
}

void fail_index(const Op& op, const Tensor& indices, int64_t rows) {
  const TensorData& data = indices.internals();
  const HostElements elements(data);
  std::vector<int64_t> room;
  const std::span<const int64_t> list = elements.all(room);
  const auto is_outside = [&](int64_t index) { return (index >= rows) | (index < -rows); };
  if (has_any(list, is_outside)) throw_index(op, rows, *std::ranges::find_if(list, is_outside));
}

Tensor as_indices(std::string_view where, const Tensor& indices) {
  check_indices(where, indices);
  if (indices.dtype() == i64 && !indices.spec().is_weak) return indices;
  if (indices.dtype() == u64) return fitted(where, indices, i64);
  return apply(ops::cast(), {&indices}, {i64, false});
}

void check_indices(std::string_view where, const Tensor& indices) {
  if (is_integer(indices.dtype())) return;
  throw Error(ErrorKind::dtype, {.where = std::string(where),
                                 .what = "the indices are " + describe(indices),
                                 .expected = "integers",
                                 .got = std::string(name_of(indices.dtype())),
                                 .fix = "Cast them: indices.to(i64)."});
}

}  // namespace nitinol
