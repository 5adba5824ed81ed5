#include "eager/row_view.h"

#include <algorithm>
#include <utility>

namespace nitinol::eager {
namespace {

/// Distance in memory; of what is there again and again the longest, since only other loops walk.
uint64_t distance(int64_t stride) {
  const auto size = static_cast<uint64_t>(stride < 0 ? -stride : stride);
  return size - 1;
}

/// Whether joining a value with itself changes nothing.
bool is_idempotent(Combine combine) {
  return combine != Combine::add && combine != Combine::multiply;
}

void sort_by_distance(RowView& view, int first, int last) {
  for (int i = first + 1; i < last; ++i) {
    for (int k = i; k > first && distance(view.strides[k - 1]) < distance(view.strides[k]); --k) {
      std::swap(view.shape[k - 1], view.shape[k]);
      std::swap(view.strides[k - 1], view.strides[k]);
      std::swap(view.results[k - 1], view.results[k]);
    }
  }
}

}  // namespace

RowView rows_first(const Tensor& x, const Dims& axes) {
  const TensorData& data = x.internals();
  RowView view;
  for (const bool is_reduced : {false, true}) {
    for (int i = 0; i < x.rank(); ++i) {
      const bool in_axes = std::ranges::find(axes, i) != axes.end();
      if (data.spec.shape[i] == 1 || in_axes != is_reduced) continue;
      view.shape.push_back(data.spec.shape[i]);
      view.strides.push_back(data.strides[i]);
      if (!is_reduced) ++view.rows;
    }
  }
  view.results = Dims::filled(view.shape.size(), 0);
  int64_t results = 1;
  for (int i = view.rows - 1; i >= 0; --i) {
    view.results[i] = results;
    results *= view.shape[i];
  }
  return view;
}

bool reduced_dims_merge(const RowView& view) {
  return walks_as_one(view.shape, view.strides, static_cast<std::size_t>(view.rows));
}

bool lies_along(const RowView& view) {
  if (view.rows == 0 || view.rows == view.shape.size()) return true;
  return distance(view.strides.back()) < distance(view.strides[view.rows - 1]);
}

void follow_memory(RowView& view, Combine combine) {
  for (int i = view.shape.size() - 1; i >= view.rows && is_idempotent(combine); --i) {
    if (view.strides[i] != 0) continue;
    view.shape.erase(i);
    view.strides.erase(i);
    view.results.erase(i);
  }
  sort_by_distance(view, 0, view.rows);
  sort_by_distance(view, view.rows, view.shape.size());
}

}  // namespace nitinol::eager
