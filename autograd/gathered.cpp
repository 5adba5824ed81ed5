// The gradient of a slice counts as one that is zero everywhere else. So the sum at an element is
// that of the slices which cover it, in their order, and, if there are others, of a zero: that
// makes +0 of -0, and changes nothing else wherever it comes. The value is cut where slices begin
// and end, each box of it is the sum of what covers it, and the boxes are put together: each
// element is written once.
//
// Example: slices a of [0, 3) and b of [2, 4): a[0:2] + 0, a[2:3] + b[0:1], b[1:2] + 0.
#include "autograd/gathered.h"

#include "eager/ops/ops.h"

#include <algorithm>
#include <utility>

namespace nitinol::autograd {
namespace {

/// Slices may overlap, so that they hold more elements than the value: beyond so many times as many
/// they are added up at once.
constexpr int64_t most_held = 2;

struct Box {
  Dims starts;
  Shape sizes;
};

using Slices = std::vector<const Gathered::Slice*>;

/// What lies in the box, of a slice that covers it.
Tensor cut(const Gathered::Slice& slice, const Box& box) {
  if (slice.gradient.shape() == box.sizes) return slice.gradient;
  Dims from = box.starts;
  for (int i = 0; i < from.size(); ++i) from[i] -= slice.starts[i];
  return window(slice.gradient, from, box.sizes, Dims::filled(from.size(), 1));
}

/// Where the box begins and ends along an axis, and between that where slices do.
std::vector<int64_t> edges(const Slices& slices, const Box& box, int axis) {
  const int64_t begin = box.starts[axis], end = begin + box.sizes[axis];
  std::vector<int64_t> found = {begin, end};
  for (const Gathered::Slice* slice : slices) {
    const int64_t first = slice->starts[axis];
    for (const int64_t edge : {first, first + slice->gradient.shape()[axis]}) {
      if (edge > begin && edge < end) found.push_back(edge);
    }
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

/// Per interval between edges the slices that cover it.
std::vector<Slices> covering(const Slices& slices, const std::vector<int64_t>& edges, int axis) {
  std::vector<Slices> result(edges.size() - 1);
  const auto interval = [&](int64_t edge) {
    return std::ranges::lower_bound(edges, edge) - edges.begin();
  };
  for (const Gathered::Slice* slice : slices) {
    const int64_t begin = std::max(slice->starts[axis], edges.front());
    const int64_t end = std::min(slice->starts[axis] + slice->gradient.shape()[axis], edges.back());
    for (auto i = interval(begin); i < interval(end); ++i)
      result[static_cast<std::size_t>(i)].push_back(slice);
  }
  return result;
}

/// The sum in a box, of `slices` that reach into it, of `arrived` altogether.
Tensor sum_in(const Box& box, const Slices& slices, std::size_t arrived, const Spec& spec) {
  for (int axis = 0; axis < box.sizes.size(); ++axis) {
    const std::vector<int64_t> cuts = edges(slices, box, axis);
    if (cuts.size() == 2) continue;
    const std::vector<Slices> of_parts = covering(slices, cuts, axis);
    std::vector<Tensor> parts;
    for (std::size_t i = 0; i < of_parts.size(); ++i) {
      Box part = box;
      part.starts[axis] = cuts[i];
      part.sizes[axis] = cuts[i + 1] - cuts[i];
      parts.push_back(sum_in(part, of_parts[i], arrived, spec));
    }
    return concat(parts, axis);
  }
  if (slices.empty()) return expand(zeros({}, spec.dtype, spec.device), box.sizes);
  Tensor sum = cut(*slices[0], box);
  for (std::size_t k = 1; k < slices.size(); ++k) sum = sum + cut(*slices[k], box);
  return slices.size() < arrived ? sum + 0.0 : sum;
}

}  // namespace

void Gathered::add(const Tensor& gradient) {
  if (is_empty()) {
    spec_ = gradient.spec();
    elements_ = gradient.size();
    return slices_.push_back({Dims::filled(gradient.rank(), 0), gradient});
  }
  merge();
  slices_[0].gradient = slices_[0].gradient + gradient;
}

void Gathered::add_slice(const Tensor& gradient, const Dims& starts, const Spec& whole) {
  if (gradient.shape() == whole.shape) return add(gradient);
  if (gradient.size() == 0) return add(zeros(whole.shape, whole.dtype, whole.device));
  spec_ = whole;
  const bool is_again = slices_.size() == 1 && slices_[0].starts == starts &&
                        slices_[0].gradient.shape() == gradient.shape();
  if (is_again) {
    slices_[0].gradient = slices_[0].gradient + gradient;
    return;
  }
  slices_.push_back({starts, gradient});
  elements_ += gradient.size();
  if (elements_ > most_held * element_count(spec_.shape)) merge();
}

bool Gathered::is_apart_from(const Dims& starts, const Shape& sizes) const {
  return std::ranges::none_of(slices_, [&](const Slice& slice) {
    const Shape& taken = slice.gradient.shape();
    for (int i = 0; i < sizes.size(); ++i) {
      if (starts[i] >= slice.starts[i] + taken[i] || slice.starts[i] >= starts[i] + sizes[i])
        return false;
    }
    return true;
  });
}

Tensor Gathered::sum() {
  if (is_empty()) return {};
  merge();
  return slices_[0].gradient;
}

/// Makes one slice of all, which is the whole value's.
void Gathered::merge() {
  const Box whole = {Dims::filled(spec_.shape.size(), 0), spec_.shape};
  Tensor sum;
  if (slices_.size() == 1) {
    const auto& [starts, gradient] = slices_[0];
    if (gradient.shape() == spec_.shape) return;
    sum = place(zeros(spec_.shape, spec_.dtype, spec_.device), gradient, starts, gradient.shape(),
                Dims::filled(starts.size(), 1));
  } else {
    Slices all;
    for (const Slice& slice : slices_) all.push_back(&slice);
    sum = sum_in(whole, all, all.size(), spec_);
  }
  slices_.clear();
  slices_.push_back({whole.starts, std::move(sum)});
  elements_ = element_count(spec_.shape);
}

}  // namespace nitinol::autograd
