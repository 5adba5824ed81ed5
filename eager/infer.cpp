#include "eager/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace nitinol {

std::string to_string(DTypes dtypes) {
  std::vector<std::string_view> words;
  const bool has_all_integers = (dtypes | integers) == dtypes;
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!dtypes.contains(dtype)) continue;
    const bool is_listed = !has_all_integers || !is_integer(dtype);
    if (is_listed || dtype == u8) words.push_back(is_listed ? name_of(dtype) : "integers");
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

void check_dtype(const Op& op, const Tensor& x) {
  check_dtype(op.name, op.accepts, x);
}

void check_dtype(std::string_view where, DTypes accepts, const Tensor& x) {
  if (accepts.contains(x.dtype())) return;
  const bool wants_floats = !accepts.contains(i32) && !accepts.contains(boolean);
  const bool wants_numbers = accepts.contains(i32);
  const std::string_view to = wants_floats ? "f32" : wants_numbers ? "i32" : "boolean";
  throw Error(ErrorKind::dtype, {.where = std::string(where),
                                 .what = fmt::format("not defined for {}", describe(x)),
                                 .expected = to_string(accepts),
                                 .got = std::string(name_of(x.dtype())),
                                 .fix = fmt::format("Cast it first: x.to({}).", to)});
}

namespace {

[[noreturn]] void throw_two_devices(const Op& op, const Tensor& a, const Tensor& b) {
  throw Error(ErrorKind::device,
              {.where = std::string(op.name),
               .what = fmt::format("operands {} on {} and {} on {}", describe(a),
                                   describe(a.device()), describe(b), describe(b.device())),
               .expected = "operands on one device",
               .got = fmt::format("{} and {}", describe(a.device()), describe(b.device())),
               .fix = "Move one of them to the other's device: x.to(device), or nn::to(model, "
                      "device) for all that a model holds."});
}

}  // namespace

Device common_device(const Op& op, Inputs inputs) {
  if (inputs.empty()) return default_device();
  const Tensor* first = nullptr;
  for (const Tensor* input : inputs) {
    if (is_anywhere(input->spec())) continue;
    if (first == nullptr) first = input;
    if (input->device() != first->device()) throw_two_devices(op, *first, *input);
  }
  return (first != nullptr ? first : inputs[0])->device();
}

namespace {

/// Throws Error(dtype) unless all inputs are of the last one's dtype.
void check_one_dtype(const Op& op, Inputs inputs) {
  for (const Tensor* input : inputs) {
    if (input->dtype() == inputs.back()->dtype()) continue;
    throw Error(ErrorKind::dtype, {.where = std::string(op.name),
                                   .what = fmt::format("operands {} and {}", describe(*input),
                                                       describe(*inputs.back())),
                                   .expected = "one dtype",
                                   .got = "two",
                                   .fix = "Cast one of them."});
  }
}

}  // namespace

Spec infer_elementwise(const Op& op, Inputs inputs, const Attrs&) {
  const Spec& last = inputs.back()->spec();
  check_dtype(op, *inputs.back());
  Spec spec = {.dtype = op.is_predicate ? boolean : last.dtype,
               .shape = last.shape,
               .is_weak = true,
               .device = common_device(op, inputs)};
  check_one_dtype(op, inputs);
  for (const Tensor* input : inputs) spec.is_weak = spec.is_weak && input->spec().is_weak;
  for (std::size_t k = inputs.size(); k-- > 0;) {
    if (inputs[k]->shape() == spec.shape) continue;
    spec.shape = broadcast_shapes(op.name, inputs[k]->shape(), spec.shape);
  }
  return spec;
}

namespace {

[[noreturn]] void throw_bad_attribute(const Op& op, std::string expected, std::string got) {
  throw Error(ErrorKind::shape, {.where = std::string(op.name),
                                 .what = "an operand or attribute does not fit",
                                 .expected = std::move(expected),
                                 .got = std::move(got),
                                 .fix = {}});
}

}  // namespace

void check_sizes(const Op& op, const Shape& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count)) {
      throw_bad_attribute(op, "sizes of at least 0 that fit in memory", to_string(sizes));
    }
  }
}

void check_shape(std::string_view where, const Shape& shape) {
  int64_t elements = 1;
  double count = 1;
  bool fits = true;
  for (const int64_t size : shape) {
    count *= static_cast<double>(size);
    fits = fits && !__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements);
    if (size >= 0) continue;
    throw Error(ErrorKind::shape, {.where = std::string(where),
                                   .what = fmt::format("shape {}", to_string(shape)),
                                   .expected = "sizes of at least 0",
                                   .got = fmt::format("{}", size),
                                   .fix = "Check how the shape is computed."});
  }
  if (fits) return;
  throw Error(ErrorKind::shape, {.where = std::string(where),
                                 .what = fmt::format("shape {}", to_string(shape)),
                                 .expected = "as many elements as memory could hold",
                                 .got = fmt::format("{:.3g}", count),
                                 .fix = "Check how the shape is computed."});
}

void check_axis(const Op& op, int64_t axis, int rank) {
  if (axis >= 0 && axis < rank) return;
  throw_bad_attribute(op, fmt::format("0 <= axis < {}", rank), fmt::format("{}", axis));
}

void check_permutation(const Op& op, const Dims& axes, int rank) {
  for (const int64_t axis : axes) check_axis(op, axis, rank);
  Dims sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  const bool repeats = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (axes.size() == rank && !repeats) return;
  throw_bad_attribute(op, fmt::format("all {} axes, each once", rank), to_string(axes));
}

void check_step(const Op& op, int64_t step) {
  if (step != 0) return;
  throw Error(ErrorKind::value, {.where = std::string(op.name),
                                 .what = "a range with step 0",
                                 .expected = "a step other than 0",
                                 .got = "0",
                                 .fix = {}});
}

void check_window(const Op& op, const Shape& shape, const Dims& starts, const Shape& sizes,
                  const Dims& steps) {
  check_sizes(op, sizes);
  const int rank = shape.size();
  bool fits = starts.size() == rank && sizes.size() == rank && steps.size() == rank;
  const bool is_empty = element_count(sizes) == 0;
  for (int i = 0; fits && !is_empty && i < rank; ++i) {
    int64_t last = 0;
    fits = !__builtin_mul_overflow(sizes[i] - 1, steps[i], &last) &&
           !__builtin_add_overflow(last, starts[i], &last) && starts[i] >= 0 &&
           starts[i] < shape[i] && last >= 0 && last < shape[i];
  }
  if (fits) return;
  throw_bad_attribute(
      op, fmt::format("a window inside {}", to_string(shape)),
      fmt::format("{} from {} by {}", to_string(sizes), to_string(starts), to_string(steps)));
}

Spec infer_create(const Op& op, Inputs inputs, const Attrs& attrs) {
  check_one_dtype(op, inputs);
  for (const Tensor* input : inputs) {
    check_dtype(op, *input);
    if (input->rank() != 0) throw_bad_attribute(op, "numbers", describe(*input));
  }
  check_sizes(op, attr<Dims>(attrs, 0));
  return {.dtype = attr<DType>(attrs, 1),
          .shape = attr<Dims>(attrs, 0),
          .is_weak = false,
          .device = common_device(op, inputs)};
}

LibraryCall library_call(LibraryCall::Kind kind, Inputs inputs, const Spec& result) {
  LibraryCall call = {.kind = kind, .operands = {}, .threads = 0};
  call.operands.reserve(inputs.size() + 1);
  for (const Tensor* x : inputs)
    call.operands.push_back({x->dtype(), x->shape(), x->internals().strides});
  call.operands.push_back({result.dtype, result.shape, strides_of(result.shape)});
  return call;
}

LibraryCall call_along(LibraryCall::Kind kind, Inputs inputs, const Attrs& attrs,
                       const Spec& spec) {
  LibraryCall call = library_call(kind, inputs, spec);
  call.axis = static_cast<int>(attr<int64_t>(attrs, 0));
  return call;
}

void throw_value(std::string_view where, std::string_view what, std::string_view expected,
                 std::string got) {
  throw Error(ErrorKind::value, {.where = std::string(where),
                                 .what = std::string(what),
                                 .expected = std::string(expected),
                                 .got = std::move(got),
                                 .fix = {}});
}

}  // namespace nitinol
