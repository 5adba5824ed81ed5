#include "eager/ops/create.h"

#include "core/host_access.h"
#include "core/interpreter.h"
#include "core/parallel.h"
#include "eager/apply.h"
#include "eager/elements.h"
#include "eager/infer.h"
#include "eager/launch.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create_op.h"
#include "eager/ops/family.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"
#include "tracer/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

// ---- host data

void check_count(std::string_view where, const Shape& shape, std::size_t count) {
  check_shape(where, shape);
  if (static_cast<std::size_t>(element_count(shape)) == count) return;
  throw Error(ErrorKind::shape,
              {.where = std::string(where),
               .what = fmt::format("{} values for shape {}", count, to_string(shape)),
               .expected = fmt::format("{} values", element_count(shape)),
               .got = fmt::format("{}", count),
               .fix = "Check the shape, and that all rows are of one length."});
}

/// The shape that the first elements of all levels have.
Shape shape_of(const Numbers& numbers) {
  Shape shape;
  const Numbers* level = &numbers;
  while (level->is_list()) {
    shape.push_back(static_cast<int64_t>(level->list().size()));
    if (level->list().empty()) break;
    level = &level->list().front();
  }
  return shape;
}

[[noreturn]] void throw_ragged(const Shape& shape, int level, const Numbers& numbers) {
  const std::string got =
      numbers.is_list() ? fmt::format("a list of {}", numbers.list().size()) : "a number";
  throw Error(
      ErrorKind::shape,
      {.where = "tensor",
       .what = fmt::format("lists of level {} differ", level),
       .expected = level < shape.size() ? fmt::format("a list of {}", shape[level]) : "a number",
       .got = got,
       .fix = "Give all rows the same length."});
}

/// The numbers in row-major order; checks that they are of this shape.
void flatten_into(std::vector<const Numbers*>& out, const Numbers& numbers, const Shape& shape,
                  int level) {
  const bool is_leaf = level == shape.size();
  const bool fits =
      is_leaf ? !numbers.is_list()
              : numbers.is_list() && static_cast<int64_t>(numbers.list().size()) == shape[level];
  if (!fits) throw_ragged(shape, level, numbers);
  if (is_leaf) out.push_back(&numbers);
  for (const Numbers& part : numbers.list()) flatten_into(out, part, shape, level + 1);
}

/// The numbers as elements of `dtype`, one after another from `to` on.
void store(const std::vector<const Numbers*>& elements, DType dtype, std::byte* to) {
  for (const Numbers* element : elements) {
    const Scalar& number = element->number();
    if (!fits(dtype, number)) throw_does_not_fit("tensor", dtype, number, Misfit::element);
    const uint64_t bits = element_of(dtype, number);
    std::memcpy(to, &bits, size_of(dtype));
    to += size_of(dtype);
  }
}

/// The storage of memory that somebody else owns.
struct BorrowedStorage : Storage {
  std::function<void()> end;
};

void release_borrowed(Storage* storage) noexcept {
  auto* borrowed = static_cast<BorrowedStorage*>(storage);
  if (borrowed->end) borrowed->end();
  delete borrowed;
}

// ---- formulas

constexpr auto step_formula = [](auto position, auto start, auto step) {
  return start + convert_like(start, position) * step;
};
// From both ends, so that the last element is exactly `stop`.
constexpr auto linspace_formula = [](auto position, auto start, auto stop, auto last, auto step) {
  const auto i = convert_like(start, position);
  return select(i + i < last, start + i * step, stop - (last - i) * step);
};

constexpr auto creation = family({
    create_op<3>("arange", Types<int64_t, double>{{i64, f64}}, step_formula,
                 "start + index * step."),
    create_op<5>("linspace", Types<double>{{f64}}, linspace_formula,
                 "Evenly spaced numbers, both ends included."),
});

/// Number of elements of arange from integers, of whatever size they are.
int64_t integer_range_length(int64_t start, int64_t stop, int64_t step) {
  const bool is_up = step > 0;
  if (is_up ? start >= stop : start <= stop) return 0;
  const auto low = static_cast<uint64_t>(is_up ? start : stop);
  const auto high = static_cast<uint64_t>(is_up ? stop : start);
  const uint64_t stride =
      is_up ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const uint64_t last = (high - low - 1) / stride;
  return last < static_cast<uint64_t>(INT64_MAX) ? static_cast<int64_t>(last) + 1 : INT64_MAX;
}

int64_t real_range_length(double start, double stop, double step) {
  const DefaultFloatMode mode;
  const double count =
      computed_here(std::ceil((computed_here(stop) - start) / computed_here(step)));
  if (!(count < 0x1p62)) {
    throw Error(ErrorKind::value,
                {.where = "arange",
                 .what = fmt::format("from {} to {} by {}", start, stop, step),
                 .expected = "a finite length",
                 .got = fmt::format("{} elements", count),
                 .fix = "Check the step; linspace takes the number of elements instead."});
  }
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

bool is_integral(const Scalar& number) {
  return number.kind() != Scalar::Kind::real;
}

/// First number, distance and length of an arange.
struct Progression {
  Scalar start, step;
  int64_t length;
  bool is_integral;
};

Progression progression(const Scalar& start, const Scalar& stop, const Scalar& step) {
  if (step.to_double() == 0) {
    throw Error(ErrorKind::value, {.where = "arange",
                                   .what = "the step",
                                   .expected = "a number other than 0",
                                   .got = "0",
                                   .fix = "Use full for equal numbers."});
  }
  if (is_integral(start) && is_integral(stop) && is_integral(step)) {
    const int64_t length =
        integer_range_length(start.to_integer(), stop.to_integer(), step.to_integer());
    return {start.to_integer(), step.to_integer(), length, true};
  }
  const int64_t length = real_range_length(start.to_double(), stop.to_double(), step.to_double());
  return {start.to_double(), step.to_double(), length, false};
}

/// Throws Error(value) unless `dtype` holds both ends of a range of integers.
void check_ends(const Progression& range, DType dtype) {
  if (!range.is_integral || range.length == 0 || !is_integer(dtype)) return;
  const auto first = static_cast<uint64_t>(range.start.to_integer());
  const auto steps = static_cast<uint64_t>(range.length - 1);
  const uint64_t last = first + steps * static_cast<uint64_t>(range.step.to_integer());
  for (const uint64_t end : {first, last}) {
    const auto number = static_cast<int64_t>(end);
    if (!fits(dtype, number)) throw_does_not_fit("arange", dtype, number, Misfit::element);
  }
}

DType default_dtype(DType number) {
  return number == f64 ? f32 : number;
}

}  // namespace

Tensor tensor(const Numbers& numbers, std::optional<DType> dtype, Device device) {
  const Shape shape = shape_of(numbers);
  std::vector<const Numbers*> elements;
  flatten_into(elements, numbers, shape, 0);
  DType common = elements.empty() ? f32 : elements.front()->dtype();
  for (const Numbers* element : elements) common = promote("tensor", common, element->dtype());
  const DType stored = dtype.value_or(common);
  const Tensor out =
      filled_tensor({.dtype = stored, .shape = shape, .is_weak = false, .device = device},
                    [&](std::span<std::byte> memory) { store(elements, stored, memory.data()); });
  current().created(out);
  return out;
}

Tensor from_bytes(std::span<const std::byte> bytes, const Spec& spec) {
  if (bytes.size() % size_of(spec.dtype) != 0) {
    throw Error(ErrorKind::value,
                {.where = "from_bytes",
                 .what = fmt::format("{} bytes for {}", bytes.size(), describe(spec)),
                 .expected = fmt::format("whole elements of {} bytes", size_of(spec.dtype)),
                 .got = fmt::format("{} bytes", bytes.size()),
                 .fix = "Check the length of the memory and the dtype."});
  }
  check_count("from_span", spec.shape, bytes.size() / size_of(spec.dtype));
  const Tensor out =
      filled_tensor(spec, [&](std::span<std::byte> to) { std::ranges::copy(bytes, to.begin()); });
  current().created(out);
  return out;
}

template <class T>
Tensor from_span(std::span<const T> values, const Shape& shape) {
  return from_bytes(
      std::as_bytes(values),
      {.dtype = dtype_of<T>(), .shape = shape, .is_weak = false, .device = default_device()});
}

Tensor borrow_bytes(const void* data, const Spec& spec, const Strides& strides,
                    std::function<void()> release) {
  check_shape("borrow", spec.shape);
  if (spec.device != Device{}) {
    throw Error(ErrorKind::device, {.where = "borrow",
                                    .what = "the memory of " + describe(spec),
                                    .expected = "the host's memory: " + describe(Device{}),
                                    .got = describe(spec.device),
                                    .fix = "Borrow it on the host, then copy it: to(device)."});
  }
  if (strides.size() != spec.shape.size()) {
    throw Error(ErrorKind::shape, {.where = "borrow",
                                   .what = "the strides of " + describe(spec),
                                   .expected = fmt::format("{} strides", spec.shape.size()),
                                   .got = to_string(strides),
                                   .fix = "Give a stride, in elements, for each axis."});
  }
  if (data == nullptr && element_count(spec.shape) > 0) {
    throw Error(ErrorKind::value, {.where = "borrow",
                                   .what = "the memory of " + describe(spec),
                                   .expected = "an address",
                                   .got = "a null pointer",
                                   .fix = "Check that the memory was allocated."});
  }
  auto* storage = new BorrowedStorage;  // owned by the handle from the next line on
  StorageHandle handle = adopt<Storage>(storage);
  storage->release = release_borrowed;
  storage->end = std::move(release);
  storage->data = const_cast<void*>(data);  // is_borrowed: never written
  storage->is_borrowed = true;
  storage->bytes = static_cast<std::size_t>(element_count(spec.shape)) * size_of(spec.dtype);
  Tensor out = make_tensor(spec, strides, 0, std::move(handle));
  if (tracer::is_recording()) {  // the trace outlives the call, which the memory may not
    const Tensor copy = allocate_tensor(spec);
    eager::copy_into(out, copy);
    out = copy;
  }
  current().created(out);
  return out;
}

template <class T>
Tensor borrow(const T* data, const Shape& shape, std::function<void()> release) {
  const Spec spec = {.dtype = dtype_of<T>(), .shape = shape, .is_weak = false, .device = {}};
  return borrow_bytes(data, spec, strides_of(shape), std::move(release));
}

namespace {

Tensor filled(std::string_view where, const Shape& shape, const Argument& value,
              std::optional<DType> dtype, Device device) {
  check_shape(where, shape);
  const DType stored = dtype.value_or(default_dtype(common_dtype(where, {&value})));
  const bool is_host_number = value.tensor() == nullptr;
  if (is_host_number && !fits(stored, value.scalar()))
    throw_does_not_fit(where, stored, value.scalar(), Misfit::element);
  const Promoted number(where, value, stored, device);
  return copy(expand(cast(*number.get(), number.get()->dtype()), shape));
}

}  // namespace

Tensor full(const Shape& shape, const Argument& value, std::optional<DType> dtype, Device device) {
  return filled("full", shape, value, dtype, device);
}

Tensor zeros(const Shape& shape, DType dtype, Device device) {
  return filled("zeros", shape, 0, dtype, device);
}

Tensor ones(const Shape& shape, DType dtype, Device device) {
  return filled("ones", shape, 1, dtype, device);
}

Tensor full_like(const Tensor& like, const Argument& value) {
  return full(like.shape(), value, like.dtype(), like.device());
}

Tensor zeros_like(const Tensor& like) {
  return zeros(like.shape(), like.dtype(), like.device());
}

Tensor empty(const Shape& shape, DType dtype, Device device) {
  return zeros(shape, dtype, device);
}

Tensor empty_like(const Tensor& like) {
  return zeros_like(like);
}

Tensor ones_like(const Tensor& like) {
  return ones(like.shape(), like.dtype(), like.device());
}

Tensor arange(const Scalar& stop, std::optional<DType> dtype, Device device) {
  return arange(0, stop, 1, dtype, device);
}

Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step,
              std::optional<DType> dtype, Device device) {
  const Progression range = progression(start, stop, step);
  const DType computed = range.is_integral ? i64 : f64;
  const DType result = dtype.value_or(default_dtype(computed));
  check_shape("arange", {range.length});
  check_ends(range, result);
  const Tensor first = constant(range.start, computed, false, device);
  const Tensor distance = constant(range.step, computed, false, device);
  return apply(creation["arange"], {&first, &distance}, {Shape{range.length}, result});
}

Tensor linspace(double start, double stop, Integer count, DType dtype, Device device) {
  check_shape("linspace", {count});
  if (!is_floating(dtype)) {
    throw Error(ErrorKind::dtype, {.where = "linspace",
                                   .what = "the result's dtype",
                                   .expected = "a floating dtype",
                                   .got = std::string(name_of(dtype)),
                                   .fix = "Round and cast the result, or use arange."});
  }
  if (count == 1) return full({1}, start, dtype, device);
  const Tensor first = constant(start, f64, false, device);
  const Tensor end = constant(stop, f64, false, device);
  const auto steps = static_cast<double>(count - 1);
  const Tensor last = constant(steps, f64, false, device);
  const Tensor step = constant((stop - start) / steps, f64, false, device);
  return apply(creation["linspace"], {&first, &end, &last, &step}, {Shape{count}, dtype});
}

Tensor eye(Integer rows, std::optional<Integer> columns, Integer diagonal, DType dtype,
           Device device) {
  const Shape shape = {rows, columns.value_or(rows)};
  check_shape("eye", shape);
  const int64_t offset = std::clamp<int64_t>(diagonal, -shape[0], shape[1]);  // or beyond a corner
  const Tensor row = unsqueeze(arange(shape[0], {}, device), 1);
  return cast(arange(shape[1], {}, device) - offset == row, dtype);
}

std::span<const Op> create_ops() {
  return creation.ops;
}

#define NITINOL_INSTANTIATE(T)                                 \
  template Tensor from_span(std::span<const T>, const Shape&); \
  template Tensor borrow(const T*, const Shape&, std::function<void()>);
NITINOL_INSTANTIATE(bool)
NITINOL_INSTANTIATE(uint8_t)
NITINOL_INSTANTIATE(int8_t)
NITINOL_INSTANTIATE(uint16_t)
NITINOL_INSTANTIATE(int16_t)
NITINOL_INSTANTIATE(uint32_t)
NITINOL_INSTANTIATE(int32_t)
NITINOL_INSTANTIATE(uint64_t)
NITINOL_INSTANTIATE(int64_t)
NITINOL_INSTANTIATE(float)
NITINOL_INSTANTIATE(double)
#undef NITINOL_INSTANTIATE

}  // namespace nitinol
