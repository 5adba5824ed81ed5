#include "eager/ops/indexing.h"

#include "core/error.h"
#include "core/interpreter.h"
#include "eager/ops/join.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <utility>

namespace nitinol {
namespace {

int64_t resolve_index(const Spec& spec, int axis, int64_t i) {
  const int64_t size = spec.shape[axis];
  if (i >= -size && i < size) return i < 0 ? i + size : i;
  throw Error(ErrorKind::shape,
              {.where = "index",
               .what = fmt::format("index {} for axis {} of {}", i, axis, describe(spec)),
               .expected = size == 0 ? "no index: the axis is empty"
                                     : fmt::format("{} <= index < {}", -size, size),
               .got = fmt::format("{}", i),
               .fix = "Negative indices count from the end."});
}

/// How many axes the ellipsis stands for.
int axes_left(const Spec& spec, std::span<const Index> indices) {
  int used = 0;
  int ellipses = 0;
  for (const Index& index : indices) {
    if (index.kind == Index::Kind::rest)
      ++ellipses;
    else if (index.kind != Index::Kind::insertion)
      ++used;
  }
  if (used <= spec.shape.size() && ellipses <= 1) return spec.shape.size() - used;
  throw Error(ErrorKind::shape,
              {.where = "at",
               .what = fmt::format("{} indices for {}", used, describe(spec)),
               .expected = fmt::format("at most {}, and one ellipsis", spec.shape.size()),
               .got = fmt::format("{} and {}", used, ellipses),
               .fix = "Check the tensor's rank."});
}

/// The part that slice and reshape would give, with their strides: what most parts are, made short,
/// as nothing watches and the view is known to be possible.
Tensor view_of(const Tensor& base, const Dims& starts, const Dims& steps, const Shape& sizes,
               const Shape& shape) {
  const TensorData& data = base.internals();
  Spec spec = data.spec;
  spec.shape = shape;
  Strides sliced = data.strides, strides = strides_of(shape);
  if (element_count(shape) == 0)
    return make_tensor(spec, shape == sizes ? sliced : strides, data.offset, data.storage);
  int64_t offset = data.offset;
  for (int i = 0; i < sizes.size(); ++i) {
    offset += sliced[i] * starts[i];
    sliced[i] *= steps[i];
  }
  if (shape == sizes) {
    strides = sliced;
  } else if (!is_contiguous(sizes, sliced)) {
    int i = 0;
    for (int j = 0; j < shape.size(); ++j) {
      if (shape[j] == 1) continue;
      while (sizes[i] == 1) ++i;
      strides[j] = sliced[i++];
    }
  }
  return make_tensor(spec, strides, offset, data.storage);
}

}  // namespace

At::At(Tensor base, std::span<const Index> indices)
    : base_(std::move(base)),
      starts_(Dims::filled(base_.rank(), 0)),
      steps_(Dims::filled(base_.rank(), 1)),
      sizes_(base_.shape()) {
  const int left = axes_left(base_.spec(), indices);
  int axis = 0;
  const auto keep_axes = [&](int count) {
    for (int i = 0; i < count; ++i) shape_.push_back(sizes_[axis++]);
  };
  for (const Index& index : indices) {
    switch (index.kind) {
      case Index::Kind::integer:
        starts_[axis] = resolve_index(base_.spec(), axis, index.integer);
        sizes_[axis++] = 1;
        break;
      case Index::Kind::range: {
        const IndexRun run = resolve(index.range, sizes_[axis]);
        starts_[axis] = run.start;
        steps_[axis] = run.step;
        sizes_[axis] = run.count;
        keep_axes(1);
        break;
      }
      case Index::Kind::rest:
        keep_axes(left);
        break;
      case Index::Kind::insertion:
        shape_.push_back(1);
        break;
    }
  }
  keep_axes(base_.rank() - axis);
}

Tensor At::get() const {
  if (!is_watched() && !base_.tracks_gradient() && !base_.spec().is_weak)
    return view_of(base_, starts_, steps_, sizes_, shape_);
  const Tensor part = window(base_, starts_, sizes_, steps_);
  return shape_ == sizes_ ? part : reshape(part, shape_);
}

Tensor At::set(const Argument& value) const {
  const Promoted given(value, base_.dtype(), base_.device());
  if (shape_ == sizes_) return place(base_, *given.get(), starts_, sizes_, steps_);
  // The value broadcasts to the part; the window has size 1 where the part lacks an axis.
  const Tensor piece = reshape(expand(*given.get(), shape_), sizes_);
  return place(base_, piece, starts_, sizes_, steps_);
}

Argument::Argument(const At& part) : owned_(part.get()), tensor_(&owned_) {}

At Tensor::at(std::span<const Index> indices) const {
  return {*this, indices};
}

At Tensor::at(std::initializer_list<Index> indices) const {
  return at(std::span(indices.begin(), indices.size()));
}

At Variable::at(std::initializer_list<Index> indices) const {
  return get().at(indices);
}

Tensor Tensor::operator[](Integer i) const {
  if (rank() == 0) {
    throw Error(ErrorKind::shape, {.where = "index",
                                   .what = "a 0-d tensor has no axis to index",
                                   .expected = "at least one dimension",
                                   .got = describe(*this),
                                   .fix = "Read the number with item()."});
  }
  return at({int64_t{i}});
}

}  // namespace nitinol
