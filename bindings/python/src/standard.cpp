#include "bindings/python/src/standard.h"

#include "bindings/python/src/errors.h"
#include "bindings/python/src/words.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nitinol::python::standard {
namespace {

Tensor tensor_of(const Operand& operand) {
  const Argument argument = operand.argument();
  return argument.tensor() != nullptr ? *argument.tensor() : Tensor(argument.scalar());
}

// How many elements become one.
double reduced_count(const Tensor& x, const Axes& axis) {
  double count = 1;
  for (const int64_t i : normalize_axes("var", axis.dims(), x.rank()))
    count *= static_cast<double>(x.shape()[i]);
  return count;
}

SortOrder order_of(bool is_descending) {
  return is_descending ? SortOrder::descending : SortOrder::ascending;
}

Arrival arrival_of(const char* where, const std::string& word) {
  return named<Arrival>(where, "arrival", word,
                        {{"set", Arrival::set},
                         {"add", Arrival::add},
                         {"multiply", Arrival::multiply},
                         {"maximum", Arrival::maximum},
                         {"minimum", Arrival::minimum}});
}

std::optional<PadMode> pad_mode_of(const std::string& word) {
  using Mode = std::optional<PadMode>;
  return named<Mode>("pad", "mode", word,
                     {{"constant", Mode{}},
                      {"reflect", PadMode::reflect},
                      {"replicate", PadMode::replicate},
                      {"edge", PadMode::replicate},
                      {"circular", PadMode::circular},
                      {"wrap", PadMode::circular}});
}

struct Scan {
  const Tensor& x;
  std::optional<Integer> axis;
  std::optional<DType> dtype;
  bool include_initial;
};
Tensor scanned(const char* where, const Scan& given, Tensor (*scan)(const Tensor&, Integer),
               Tensor (*initial)(const Shape&, DType, Device)) {
  const Tensor& x = given.x;
  if (!given.axis && x.rank() != 1) {
    throw Error(ErrorKind::shape, {.where = where,
                                   .what = describe(x) + " has not one axis",
                                   .fix = "Say along which axis, as axis=0."});
  }
  const int along = normalize_axis(where, given.axis.value_or(0), x.rank());
  Tensor made = scan(given.dtype ? cast(x, *given.dtype) : x, along);
  if (given.dtype) made = cast(made, *given.dtype);
  if (!given.include_initial) return made;
  Shape first = made.shape();
  first[along] = 1;
  return nitinol::concat({initial(first, made.dtype(), made.device()), made}, along);
}

}  // namespace

Tensor clip(const Operand& x, const std::optional<Operand>& min,
            const std::optional<Operand>& max) {
  if (min && max) return clamp(x, *min, *max);
  if (!min && !max) return tensor_of(x);
  // At a bound, maximum gives half of the gradient to either side; clamp all of it to x.
  constexpr double unlimited = std::numeric_limits<double>::infinity();
  if (is_floating(tensor_of(x).dtype()))
    return min ? clamp(x, *min, unlimited) : clamp(x, -unlimited, *max);
  return min ? maximum(x, *min) : minimum(x, *max);
}

Tensor pad(const Tensor& x, std::span<const Padding> paddings, const std::optional<Operand>& value,
           const std::string& mode) {
  if (const std::optional<PadMode> repeated = pad_mode_of(mode))
    return nitinol::pad(x, paddings, *repeated);
  return value ? nitinol::pad(x, paddings, *value) : nitinol::pad(x, paddings);
}

std::vector<Tensor> split(const Tensor& x, const Lengths& length, Integer axis) {
  if (length.is_list) return nitinol::split(x, length.dims, axis);
  return nitinol::split(x, length.dims[0], axis);
}

Tensor sum(const Tensor& x, const Axes& axis, std::optional<DType> dtype, KeepDims keepdims) {
  if (!dtype) return nitinol::sum(x, axis, keepdims);
  return cast(nitinol::sum(cast(x, *dtype), axis, keepdims), *dtype);
}

Tensor prod(const Tensor& x, const Axes& axis, std::optional<DType> dtype, KeepDims keepdims) {
  if (!dtype) return nitinol::prod(x, axis, keepdims);
  return cast(nitinol::prod(cast(x, *dtype), axis, keepdims), *dtype);
}

Tensor var(const Tensor& x, const Axes& axis, double correction, KeepDims keepdims) {
  const double whole = std::floor(correction);
  if (whole == correction && std::abs(whole) < 0x1p62)
    return nitinol::var(x, axis, static_cast<int64_t>(whole), keepdims);
  if (!(correction > 0)) {
    throw Error(ErrorKind::value,
                {.where = "var", .what = "the correction is negative or not a number"});
  }
  const double count = reduced_count(x, axis);
  return nitinol::var(x, axis, 0, keepdims) * (count / (count - correction));
}

Tensor stddev(const Tensor& x, const Axes& axis, double correction, KeepDims keepdims) {
  if (std::floor(correction) == correction && std::abs(correction) < 0x1p62)
    return nitinol::stddev(x, axis, static_cast<int64_t>(correction), keepdims);
  return sqrt(var(x, axis, correction, keepdims));
}

Tensor cumulative_sum(const Tensor& x, std::optional<Integer> axis, std::optional<DType> dtype,
                      bool include_initial) {
  return scanned("cumulative_sum", {x, axis, dtype, include_initial}, cumsum, zeros);
}

Tensor cumulative_prod(const Tensor& x, std::optional<Integer> axis, std::optional<DType> dtype,
                       bool include_initial) {
  return scanned("cumulative_prod", {x, axis, dtype, include_initial}, cumprod, ones);
}

Tensor sort(const Tensor& x, Integer axis, bool descending, bool /*stable*/) {
  return nitinol::sort(x, axis, order_of(descending));
}

Tensor argsort(const Tensor& x, Integer axis, bool descending, bool /*stable*/) {
  return nitinol::argsort(x, axis, order_of(descending));
}

Ordered topk(const Tensor& x, Integer k, Integer axis, bool largest) {
  return nitinol::topk(x, k, axis, order_of(largest));
}

Tensor searchsorted(const Operand& x1, const Operand& x2, const std::string& side,
                    const std::optional<Tensor>& sorter) {
  const auto chosen =
      named<Side>("searchsorted", "side", side, {{"left", Side::left}, {"right", Side::right}});
  if (!sorter) return nitinol::searchsorted(x1, x2, chosen);
  return nitinol::searchsorted(take(tensor_of(x1), *sorter), x2, chosen);
}

Tensor bucketize(const Operand& x, const Operand& boundaries, bool right) {
  return nitinol::searchsorted(boundaries, x, right ? Side::right : Side::left);
}

Tensor quantile(const Tensor& x, const Operand& q, std::optional<Integer> axis, KeepDims keepdims) {
  const Argument shares = q.argument();
  if (shares.tensor() != nullptr) return nitinol::quantile(x, *shares.tensor(), axis, keepdims);
  return nitinol::quantile(x, shares.scalar().to_double(), axis, keepdims);
}

Tensor scatter(const Tensor& x, const Tensor& indices, const Operand& values,
               const std::string& arrival) {
  return nitinol::scatter(x, indices, values, arrival_of("scatter", arrival));
}

Tensor put_along_axis(const Tensor& x, const Tensor& indices, const Operand& values, Integer axis,
                      const std::string& arrival) {
  return scatter_along(x, axis, indices, values, arrival_of("put_along_axis", arrival));
}

Tensor tensordot(const Tensor& x1, const Tensor& x2, Integer axes, const std::optional<Dims>& axes1,
                 const std::optional<Dims>& axes2) {
  if (axes1 || axes2)
    return nitinol::tensordot(x1, x2, axes1.value_or(Dims()), axes2.value_or(Dims()));
  return nitinol::tensordot(x1, x2, axes);
}

Tensor trace(const Tensor& x, Integer offset, std::optional<DType> dtype) {
  if (!dtype) return nitinol::trace(x, offset);
  return cast(nitinol::trace(cast(x, *dtype), offset), *dtype);
}

Tensor matrix_norm(const Tensor& x, KeepDims keepdims, const std::string& ord) {
  const auto norm = named<MatrixNorm>("matrix_norm", "ord", ord,
                                      {{"fro", MatrixNorm::frobenius},
                                       {"1", MatrixNorm::one},
                                       {"-1", MatrixNorm::minus_one},
                                       {"inf", MatrixNorm::infinity},
                                       {"-inf", MatrixNorm::minus_infinity}});
  return nitinol::matrix_norm(x, norm, keepdims);
}

std::vector<Tensor> meshgrid(std::span<const Tensor> arrays, const std::string& indexing) {
  const bool is_xy = named<bool>("meshgrid", "indexing", indexing, {{"xy", true}, {"ij", false}});
  return nitinol::meshgrid(arrays, is_xy);
}

Tensor empty_like(const Tensor& x, std::optional<DType> dtype, std::optional<Device> device) {
  return zeros_like(x, dtype, device);
}

Tensor astype(const Tensor& x, DType dtype, bool /*copy*/, std::optional<Device> device) {
  const Tensor made = cast(x, dtype);
  return device ? to(made, *device) : made;
}

Tensor reshape(const Tensor& x, const Shape& shape, std::optional<bool> copy) {
  if (copy == false && !is_contiguous(x.shape(), x.strides())) {
    throw Error(ErrorKind::value,
                {.where = "reshape",
                 .what = "the elements of " + describe(x) +
                         " do not lie in row-major order, and copy=False forbids a copy",
                 .fix = "Leave copy out."});
  }
  const Tensor made = nitinol::reshape(x, shape);
  return copy == true ? nitinol::copy(made) : made;
}

Tensor expand_dims(const Tensor& x, Integer axis) {
  const int rank = x.rank();
  if (axis < -rank - 1 || axis > rank) {
    throw_python(bounds_error(),
                 fmt::format("expand_dims: axis {} for a new axis of {}: expected {} to {}",
                             int64_t{axis}, describe(x), -rank - 1, rank));
  }
  return unsqueeze(x, axis);
}

Tensor transpose(const Tensor& x, const std::optional<Dims>& axis1, std::optional<Integer> axis2) {
  if (axis1 && axis1->size() != 1) {
    if (axis2) {
      throw Error(ErrorKind::value, {.where = "transpose",
                                     .what = "axes in a tuple, and axis2",
                                     .expected = "one tuple of all axes, or two integers",
                                     .got = "both"});
    }
    return permute(x, *axis1);
  }
  return nitinol::transpose(x, axis1 ? Integer((*axis1)[0]) : Integer(-2), axis2.value_or(-1));
}

Tensor matrix_transpose(const Tensor& x) {
  return nitinol::transpose(x);
}

Tensor concat(std::span<const Tensor> arrays, std::optional<Integer> axis) {
  if (axis) return nitinol::concat(arrays, *axis);
  std::vector<Tensor> flat;
  for (const Tensor& array : arrays) flat.push_back(flatten(array));
  return nitinol::concat(flat, 0);
}

Tensor repeat(const Tensor& x, const Operand& repeats, std::optional<Integer> axis) {
  const Argument counts = repeats.argument();
  if (counts.tensor() != nullptr && counts.tensor()->rank() > 0)
    return nitinol::repeat(x, *counts.tensor(), axis);
  if (counts.tensor() != nullptr)
    return nitinol::repeat(x, cast(*counts.tensor(), i64).item<int64_t>(), axis);
  if (counts.scalar().kind() != Scalar::Kind::integer) {
    throw Error(ErrorKind::value, {.where = "repeat",
                                   .what = "repeats",
                                   .expected = "an integer, or some",
                                   .got = fmt::format("{}", counts.scalar().to_double())});
  }
  return nitinol::repeat(x, counts.scalar().to_integer(), axis);
}

Tensor diff(const Tensor& x, Integer n, Integer axis, const std::optional<Tensor>& prepend,
            const std::optional<Tensor>& append) {
  std::vector<Tensor> parts = {x};
  if (prepend) parts.insert(parts.begin(), *prepend);
  if (append) parts.push_back(*append);
  return nitinol::diff(parts.size() == 1 ? x : nitinol::concat(parts, axis), n, axis);
}

Tensor take_along_axis(const Tensor& x, const Tensor& indices, Integer axis) {
  return gather(x, axis, indices);
}

Tensor zeros_like(const Tensor& x, std::optional<DType> dtype, std::optional<Device> device) {
  if (!dtype && !device) return nitinol::zeros_like(x);
  return zeros(x.shape(), dtype.value_or(x.dtype()), device.value_or(x.device()));
}

Tensor ones_like(const Tensor& x, std::optional<DType> dtype, std::optional<Device> device) {
  if (!dtype && !device) return nitinol::ones_like(x);
  return ones(x.shape(), dtype.value_or(x.dtype()), device.value_or(x.device()));
}

Tensor full_like(const Tensor& x, const Fill& fill_value, std::optional<DType> dtype,
                 std::optional<Device> device) {
  const Operand& value = fill_value.of("full_like", dtype.value_or(x.dtype()));
  if (!dtype && !device) return nitinol::full_like(x, value);
  return nitinol::full(x.shape(), value, dtype.value_or(x.dtype()), device.value_or(x.device()));
}

Tensor full(const Shape& shape, const Fill& fill_value, std::optional<DType> dtype, Device device) {
  return nitinol::full(shape, fill_value.of("full", dtype), dtype, device);
}

Tensor arange(const Scalar& start, const std::optional<Scalar>& stop, const Scalar& step,
              std::optional<DType> dtype, Device device) {
  if (!stop) return nitinol::arange(0, start, step, dtype, device);
  return nitinol::arange(start, *stop, step, dtype, device);
}

Tensor linspace(double start, double stop, Integer num, DType dtype, Device device, bool endpoint) {
  if (endpoint || num < 0) return nitinol::linspace(start, stop, num, dtype, device);
  const Tensor with_end = nitinol::linspace(start, stop, num + 1, dtype, device);
  return slice(with_end, 0, {.start = 0, .stop = num});
}

}  // namespace nitinol::python::standard
