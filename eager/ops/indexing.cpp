#include "eager/ops/indexing.h"

#include "core/error.h"
#include "core/interpreter.h"
#include "eager/index_checks.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/index.h"
#include "eager/ops/join.h"
#include "eager/ops/masks.h"
#include "eager/ops/rearrange.h"
#include "eager/ops/trailing_axes.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

[[noreturn, gnu::noinline]] void throw_bounds(const Spec& spec, int axis, int64_t i) {
  const int64_t size = spec.shape[axis];
  throw Error(ErrorKind::shape,
              {.where = "index",
               .what = fmt::format("index {} for axis {} of {}", i, axis, describe(spec)),
               .expected = size == 0 ? "no index: the axis is empty"
                                     : fmt::format("{} <= index < {}", -size, size),
               .got = fmt::format("{}", i),
               .fix = "Negative indices count from the end."});
}

int64_t resolve_index(const Spec& spec, int axis, int64_t i) {
  const int64_t size = spec.shape[axis];
  if (i >= -size && i < size) [[likely]]
    return i < 0 ? i + size : i;
  throw_bounds(spec, axis, i);
}

/// How many axes an index stands for.
int axes_of(const Index& index) {
  const bool is_mask = index.kind == Index::Kind::tensor && index.tensor->dtype() == boolean;
  return is_mask ? index.tensor->rank() : 1;
}

/// Throws Error(shape) unless a mask has the sizes of the axes that it stands for.
void check_choice(const Tensor& tensor, const Spec& spec, int axis) {
  if (tensor.dtype() != boolean) return check_indices("at", tensor);
  bool fits = true;
  for (int i = 0; fits && i < tensor.rank(); ++i) fits = tensor.shape()[i] == spec.shape[axis + i];
  if (fits) return;
  throw Error(ErrorKind::shape,
              {.where = "at",
               .what = fmt::format("a mask of {} from axis {} of {} on", to_string(tensor.shape()),
                                   axis, describe(spec)),
               .expected = "the sizes of these axes",
               .got = to_string(tensor.shape()),
               .fix = "where(mask, a, b) broadcasts."});
}

/// How many axes the ellipsis stands for.
int axes_left(const Spec& spec, std::span<const Index> indices) {
  int used = 0;
  int ellipses = 0;
  for (const Index& index : indices) {
    if (index.kind == Index::Kind::rest)
      ++ellipses;
    else if (index.kind != Index::Kind::insertion)
      used += axes_of(index);
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

/// What kinds of indices there are.
struct Kinds {
  int taken = 0, ranges = 0, inserted = 0, rests = 0, tensors = 0;
};

Kinds kinds_of(std::span<const Index> indices) {
  Kinds kinds;
  for (const Index& index : indices) {
    kinds.taken += index.kind == Index::Kind::integer ? 1 : 0;
    kinds.ranges += index.kind == Index::Kind::range ? 1 : 0;
    kinds.inserted += index.kind == Index::Kind::insertion ? 1 : 0;
    kinds.rests += index.kind == Index::Kind::rest ? 1 : 0;
    kinds.tensors += index.kind == Index::Kind::tensor ? 1 : 0;
  }
  return kinds;
}

/// Makes of a whole tensor, `to`, its part. `left`: how many axes the ellipsis stands for.
void narrow(const TensorData& from, std::span<const Index> indices, int left, TensorData& to) {
  to.spec.shape = {};
  to.strides = {};
  int axis = 0;
  const auto keep = [&](int64_t size, int64_t stride) {
    to.spec.shape.push_back(size);
    to.strides.push_back(stride);
  };
  const auto keep_axes = [&](int end) {
    for (; axis < end; ++axis) keep(from.spec.shape[axis], from.strides[axis]);
  };
  for (const Index& index : indices) {
    if (index.kind == Index::Kind::integer) {
      to.offset += resolve_index(from.spec, axis, index.integer) * from.strides[axis];
      ++axis;
    } else if (index.kind == Index::Kind::range) {
      const IndexRun run = resolve(index.range, from.spec.shape[axis]);
      to.offset += run.start * from.strides[axis];
      keep(run.count, run.step * from.strides[axis]);
      ++axis;
    } else if (index.kind == Index::Kind::rest) {
      keep_axes(axis + left);
    } else {
      keep(1, 1);
    }
  }
  keep_axes(from.spec.shape.size());
}

}  // namespace

Tensor At::part_of(const Tensor& x, std::span<const Index> indices) {
  const TensorData& data = x.internals();
  const Kinds kinds = kinds_of(indices);
  const int left = data.spec.shape.size() - kinds.taken - kinds.ranges;
  // Where as many axes come as go, reshape may find the sizes unchanged.
  const bool is_reshaped = kinds.taken != kinds.inserted;
  const bool is_usual =
      kinds.tensors == 0 && left >= 0 && kinds.rests <= 1 && (is_reshaped || kinds.taken == 0);
  if (!is_usual || is_watched() || x.tracks_gradient() || data.spec.is_weak)
    return At(x, indices).get();
  // Written where it stays: copies of what has just been written in pieces take longer than all.
  Tensor part = make_tensor(data.spec, data.strides, data.offset, data.storage);
  TensorData& to = part.internals();
  narrow(data, indices, left, to);
  int64_t count = 1;
  for (int axis = to.spec.shape.size() - 1; axis >= 0; --axis) {
    if (is_reshaped && to.spec.shape[axis] == 1) to.strides[axis] = count;  // as reshape's
    count *= to.spec.shape[axis];
  }
  return count > 0 ? part : At(x, indices).get();
}

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
      case Index::Kind::tensor:
        check_choice(*index.tensor, base_.spec(), axis);
        if (axes_of(index) == 0) {  // a 0-d mask: all or nothing of a new axis
          chosen_.push_back({reshape(*index.tensor, {1}), shape_.size()});
          shape_.push_back(1);
          break;
        }
        chosen_.push_back({*index.tensor, shape_.size()});
        keep_axes(axes_of(index));
        break;
    }
  }
  keep_axes(base_.rank() - axis);
  if (!chosen_.empty()) place_choice(indices);
}

/// Integers beside tensors count as tensors, as in NumPy.
void At::place_choice(std::span<const Index> indices) {
  const auto chooses = [](const Index& index) {
    return index.kind == Index::Kind::tensor || index.kind == Index::Kind::integer;
  };
  const auto first = std::ranges::find_if(indices, chooses);
  const auto last = std::find_if(indices.rbegin(), indices.rend(), chooses).base();
  if (std::all_of(first, last, chooses)) choice_axis_ = chosen_.front().axis;
  Shape common;  // or an Error, before anything is read or written
  for (const Choice& choice : chosen_) {
    if (choice.tensor.dtype() != boolean)
      common = broadcast_shapes("at", common, choice.tensor.shape());
  }
}

Tensor At::window_part() const {
  if (!is_watched() && !base_.tracks_gradient() && !base_.spec().is_weak)
    return view_of(base_, starts_, steps_, sizes_, shape_);
  const Tensor part = window(base_, starts_, sizes_, steps_);
  return shape_ == sizes_ ? part : reshape(part, shape_);
}

namespace {

/// A value that broadcasts to a part as one that broadcasts to its window, which has size 1 where
/// the part lacks an axis.
Tensor piece_of(const Tensor& value, const Shape& part, const Shape& window) {
  return part == window ? value : reshape(expand(value, part), window);
}

}  // namespace

Tensor At::with_window(const Tensor& part) const {
  const Tensor piece = piece_of(part, shape_, sizes_);
  if (sizes_ != base_.shape()) return place(base_, piece, starts_, sizes_, steps_);
  // All of it, perhaps with axes the other way round, which undoes itself.
  const Tensor all = expand(piece, sizes_);
  const bool is_reversed = starts_ != Dims::filled(base_.rank(), 0);
  return is_reversed ? window(all, starts_, sizes_, steps_) : all;
}

namespace {

/// Where several tensors choose: rows of the part whose axes they index come first, as one.
struct Rows {
  Tensor part;     ///< with those axes first
  Dims order;      ///< its axes in the part
  Tensor rows;     ///< with them as one
  Tensor indices;  ///< of rows, int64
};

/// Masks as the indices of what they choose.
struct AxisIndices {
  std::vector<Tensor> tensors;
  Dims axes;
  std::size_t whole = 0;  ///< how many of the first are all of their axes
};
void add_choice(AxisIndices& all, const Tensor& tensor, int axis) {
  if (tensor.dtype() != boolean) {
    all.tensors.push_back(as_indices("at", tensor));
    all.axes.push_back(axis);
    return;
  }
  for (Tensor& along : nonzero(tensor)) {
    all.tensors.push_back(std::move(along));
    all.axes.push_back(axis++);
  }
}

/// Chooses all of the axes before the first chosen one, which gives the same part: its rows then
/// lie as the tensor does, which need not be rearranged.
void choose_leading_axes(AxisIndices& chosen, const Tensor& part) {
  const auto leading = static_cast<int>(chosen.axes[0]);
  int rank = 0;
  for (const Tensor& tensor : chosen.tensors) rank = std::max(rank, tensor.rank());
  for (int axis = leading - 1; axis >= 0; --axis) {
    const int64_t size = part.shape()[axis];
    Shape column = Shape::filled(rank + leading - axis, 1);
    column[0] = size;
    chosen.tensors.insert(chosen.tensors.begin(), reshape(arange(size, {}, part.device()), column));
    chosen.axes.insert(0, axis);
    ++chosen.whole;
  }
}

Rows rows_of(const Tensor& part, const AxisIndices& chosen) {
  Rows made;
  made.order = chosen.axes;
  int64_t count = 1;
  for (const int64_t axis : chosen.axes) count *= part.shape()[static_cast<int>(axis)];
  Shape rest = {count};
  for (int64_t axis = 0; axis < part.rank(); ++axis) {
    if (std::ranges::find(chosen.axes, axis) != chosen.axes.end()) continue;
    made.order.push_back(axis);
    rest.push_back(part.shape()[static_cast<int>(axis)]);
  }
  made.part = permute(part, made.order);
  made.rows = reshape(made.part, rest);
  if (chosen.tensors.size() == 1) {
    made.indices = chosen.tensors[0];
    return made;
  }
  Shape common = chosen.tensors[0].shape();  // to refuse what does not broadcast
  for (const Tensor& tensor : chosen.tensors)
    common = broadcast_shapes("at", common, tensor.shape());
  for (std::size_t i = 0; i < chosen.tensors.size(); ++i) {
    const int64_t size = part.shape()[static_cast<int>(chosen.axes[static_cast<int>(i)])];
    // Each is checked by itself, by a look-up among all indices of its axis.
    const bool is_whole = i < chosen.whole;
    const Tensor own =
        is_whole ? chosen.tensors[i] : take(arange(size, {}, part.device()), chosen.tensors[i]);
    made.indices = i == 0 ? own : made.indices * size + own;
  }
  return made;
}

/// `count` axes of x, from `from` on, put at `to`.
Tensor with_axes_moved(const Tensor& x, int count, int from, int to) {
  if (from == to || count == 0) return x;
  Dims source, destination;
  for (int i = 0; i < count; ++i) {
    source.push_back(from + i);
    destination.push_back(to + i);
  }
  return moveaxis(x, source, destination);
}
Tensor with_axes_at(const Tensor& x, int count, int to) {
  return with_axes_moved(x, count, 0, to);
}
Tensor with_axes_first(const Tensor& x, int count, int from) {
  return with_axes_moved(x, count, from, 0);
}

/// x with the axes that were put in `order` where they were.
Tensor in_former_order(const Tensor& x, const Dims& order) {
  Dims back = order;
  for (int i = 0; i < order.size(); ++i) back[static_cast<int>(order[i])] = i;
  return permute(x, back);
}

Tensor joined(const Tensor& part, const Argument& value, Arrival arrival) {
  switch (arrival) {
    case Arrival::add:
      return part + value;
    case Arrival::multiply:
      return part * value;
    case Arrival::maximum:
      return maximum(part, value);
    case Arrival::minimum:
      return minimum(part, value);
    case Arrival::set:
      break;
  }
  return expand(*Promoted("at", value, part.dtype(), part.device()).get(), part.shape());
}

/// The part where a mask from `axis` on is true replaced by `value`, of the shape of what it
/// chooses or fewer axes.
Tensor masked(const Tensor& part, const Tensor& mask, int axis, const Tensor& value) {
  const int behind = part.rank() - axis - mask.rank();
  if (value.rank() <= behind)  // the same for all that is chosen
    return where(with_trailing_axes(mask, mask.rank() + behind), value, part);
  Shape shape = value.shape();
  while (shape.size() < axis + 1 + behind) shape.insert(0, 1);
  const Tensor rows = with_axes_first(part, mask.rank(), axis);
  const Tensor values = with_axes_first(reshape(value, shape), 1, axis);
  return with_axes_at(masked_scatter(rows, mask, values), mask.rank(), axis);
}

}  // namespace

Tensor At::get() const {
  if (chosen_.empty()) return window_part();
  const Tensor part = window_part();
  if (chosen_.size() == 1 && chosen_[0].tensor.dtype() == boolean) {
    const Tensor rows = with_axes_first(part, chosen_[0].tensor.rank(), chosen_[0].axis);
    return with_axes_at(masked_select(rows, chosen_[0].tensor), 1, choice_axis_);
  }
  AxisIndices chosen;
  for (const Choice& choice : chosen_) add_choice(chosen, choice.tensor, choice.axis);
  if (chosen.tensors.size() == 1 && choice_axis_ == chosen.axes[0])
    return take(part, chosen.tensors[0], chosen.axes[0]);
  const Rows made = rows_of(part, chosen);
  return with_axes_at(take(made.rows, made.indices), made.indices.rank(), choice_axis_);
}

Tensor At::set(const Argument& value) const {
  if (!chosen_.empty()) return join(value, Arrival::set);
  const Promoted given("at", value, base_.dtype(), base_.device());
  return place(base_, piece_of(*given.get(), shape_, sizes_), starts_, sizes_, steps_);
}

Tensor At::join(const Argument& value, Arrival arrival) const {
  const Promoted given("at", value, base_.dtype(), base_.device());
  const Tensor part = window_part();
  if (chosen_.empty()) return with_window(joined(part, *given.get(), arrival));
  if (chosen_.size() == 1 && chosen_[0].tensor.dtype() == boolean) {
    const Tensor& mask = chosen_[0].tensor;
    const int axis = chosen_[0].axis;
    if (arrival == Arrival::set && choice_axis_ == axis)
      return with_window(masked(part, mask, axis, *given.get()));
    if (arrival == Arrival::set) {
      const Tensor rows = with_axes_first(part, mask.rank(), axis);
      return with_window(with_axes_at(masked(rows, mask, 0, *given.get()), mask.rank(), axis));
    }
    if (choice_axis_ == axis && given.get()->rank() <= part.rank() - axis - mask.rank()) {
      const Tensor all = joined(part, *given.get(), arrival);
      return with_window(where(with_trailing_axes(mask, part.rank() - axis), all, part));
    }
  }
  AxisIndices chosen;
  for (const Choice& choice : chosen_) add_choice(chosen, choice.tensor, choice.axis);
  if (choice_axis_ > 0) choose_leading_axes(chosen, part);
  const Rows made = rows_of(part, chosen);
  // The value has the axes of the result: those that were chosen, then the others.
  Shape shape = made.indices.shape();
  for (int i = 1; i < made.rows.rank(); ++i) shape.push_back(made.rows.shape()[i]);
  const Tensor rows = scatter(made.rows, made.indices, expand(*given.get(), shape), arrival);
  return with_window(in_former_order(reshape(rows, made.part.shape()), made.order));
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
