// Example: softmax of x[n, m], whose operands are x, the result and scratch in its place:
//   element: max0 <- x
//   element: sum1 <- exp(x - max0), which scratch keeps
//   element: result = scratch / sum1
#include "eager/ops/row_kernels.h"

#include "core/kernel.h"
#include "eager/launch.h"
#include "eager/ops/define.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

using Level = Stage::Level;

/// Op by op many short rows are taken at once, which is faster than one by one: softmax of
/// [1000, 64] takes 50 us and 60 us, of [1000, 128] 82 and 80, of [32, 16] 2.4 and 2.2.
bool are_worth_it(int64_t rows, int64_t length) {
  return length >= 128 || (length >= 16 && rows <= 64);
}

// ---- kernels

constexpr Source operand(uint16_t index) {
  return {Source::Kind::operand, index};
}
constexpr Source reduction(uint16_t index) {
  return {Source::Kind::reduction, index};
}
constexpr Source row_value(uint16_t index) {
  return {Source::Kind::row_value, index};
}
constexpr Sink store(uint16_t index) {
  return {Sink::Kind::store, index, 0};
}
constexpr Sink accumulate(uint16_t index) {
  return {Sink::Kind::accumulate, index, 0};
}
constexpr Sink keep(uint16_t index) {
  return {Sink::Kind::row_value, index, 0};
}

/// Operands: inputs, numbers, the output, and scratch in its place if the rows keep something.
class RowKernel {
 public:
  /// `inner`: the dtype of what is computed on the way.
  RowKernel(DType dtype, DType inner, std::initializer_list<Combine> reductions,
            std::size_t row_values)
      : dtype_(dtype), inner_(inner) {
    kernel_.order = Order::lanes;
    for (const Combine combine : reductions) {
      kernel_.reductions.push_back({combine, compute_type(inner)});
    }
    kernel_.row_values.assign(row_values, compute_type(inner));
  }
  RowKernel(DType dtype, std::initializer_list<Combine> reductions, std::size_t row_values)
      : RowKernel(dtype, dtype, reductions, row_values) {}

  Source input() { return add(Role::input, StrideClass::one); }
  Source first() { return add(Role::input, StrideClass::zero); }
  Source number() {
    const Source added = add(Role::scalar, StrideClass::zero);
    kernel_.operands.back().dtype = inner_;
    return added;
  }
  Sink output(StrideClass inner) { return store(add(Role::output, inner).index); }
  /// Until the output is stored.
  Source scratch() {
    const Source added = add(Role::scratch, StrideClass::one);
    kernel_.operands.back().alias = static_cast<int16_t>(added.index - 1);
    return added;
  }

  void total(Source source, uint16_t into) {
    Stage& stage = begin(Level::element, {source}, {accumulate(into)});
    stage.sinks[0].value = argument(stage.program, compute_type(dtype_), 0).id;
    kernel_.prebuilt.stages.push_back({});
  }
  void stage(Level level, const Formula& formula, std::initializer_list<Source> sources,
             std::initializer_list<Sink> sinks) {
    Stage& stage = begin(level, sources, sinks);
    const Expr value = emit(formula, stage);
    for (Sink& sink : stage.sinks) sink.value = value.id;
  }
  /// Accumulates what the formula gives, and its square.
  void moments(const Formula& formula, std::initializer_list<Source> sources, uint16_t into,
               uint16_t squares_into) {
    Stage& stage = begin(Level::element, sources, {accumulate(into), accumulate(squares_into)});
    const Expr value = emit(formula, stage);
    stage.sinks[0].value = value.id;
    stage.sinks[1].value = (value * value).id;
  }

  Kernel take() { return std::move(kernel_); }

 private:
  Source add(Role role, StrideClass inner) {
    kernel_.operands.push_back({.role = role, .dtype = dtype_, .inner = inner, .alias = -1});
    return operand(static_cast<uint16_t>(kernel_.operands.size() - 1));
  }
  [[nodiscard]] ScalarType type_of(const Source& source) const {
    const bool is_operand = source.kind == Source::Kind::operand;
    return compute_type(is_operand ? kernel_.operands[source.index].dtype : inner_);
  }
  Expr emit(const Formula& formula, Stage& stage) {
    std::vector<Expr> arguments;
    for (const Source& source : stage.sources) {
      arguments.push_back(
          argument(stage.program, type_of(source), static_cast<uint32_t>(arguments.size())));
    }
    const Expr value = formula.emit(arguments);
    kernel_.prebuilt.stages.push_back(formula.loops(arguments[0].type, value.type));
    return value;
  }
  Stage& begin(Level level, std::initializer_list<Source> sources,
               std::initializer_list<Sink> sinks) {
    return kernel_.stages.emplace_back(
        Stage{.level = level, .program = {}, .sources = sources, .sinks = sinks});
  }

  DType dtype_, inner_;
  Kernel kernel_;
};

// What a stage computes, with the roundings of the expansion: an operation each.
constexpr Formula divided = formula<2>(floating_types, [](auto x, auto y) { return x / y; });
constexpr Formula power = formula<2>(floating_types, [](auto x, auto m) { return exp(x - m); });
constexpr Formula logarithm = formula<1>(floating_types, [](auto x) { return log(x); });
constexpr Formula deviation = formula<2>(floating_types, [](auto x, auto m) { return x - m; });
constexpr Formula wide_deviation =
    formula<2>(Types<float>{}, [](auto x, auto m) { return convert<double>(x - m); });
constexpr auto variance_of = [](auto s, auto q, auto n, auto rest) {
  const auto v = (q - s * s / n) / rest;
  return select(v < 0, 0, v);
};
constexpr Formula variance = formula<4>(Types<double>{}, variance_of);
constexpr Formula root_of_variance =
    formula<4>(Types<double>{},
               [](auto s, auto q, auto n, auto rest) { return sqrt(variance_of(s, q, n, rest)); });
constexpr Formula narrow_variance = formula<4>(
    Types<double>{},
    [](auto s, auto q, auto n, auto rest) { return convert<float>(variance_of(s, q, n, rest)); });
constexpr Formula narrow_root_of_variance =
    formula<4>(Types<double>{}, [](auto s, auto q, auto n, auto rest) {
      return convert<float>(sqrt(variance_of(s, q, n, rest)));
    });
// Of a row's sums, in f64.
template <class T>
constexpr Formula shift_of_row = formula<2>(Types<T>{}, [](auto s, auto n) {
  return convert<T>(convert<double>(s) / convert<double>(n));
});
template <class T>
constexpr Formula scale_of_row = formula<4>(Types<T>{}, [](auto s, auto q, auto n, auto eps) {
  const auto total = convert<double>(s), count = convert<double>(n);
  const auto v = (convert<double>(q) - total / count * total) / count;
  return convert<T>(1 / sqrt(select(v < 0, 0, v) + convert<double>(eps)));
});
constexpr Formula twice_subtracted =
    formula<3>(floating_types, [](auto x, auto m, auto l) { return x - m - l; });
constexpr Formula finite_or_zero =
    formula<1>(floating_types, [](auto x) { return select(isfinite(x), x, 0); });
constexpr Formula logarithm_plus =
    formula<2>(floating_types, [](auto x, auto m) { return log(x) + m; });
constexpr Formula normalized =
    formula<4>(floating_types, [](auto x, auto m, auto d, auto s) { return (x - m - d) * s; });
constexpr Formula normalized_times = formula<5>(
    floating_types, [](auto x, auto m, auto d, auto s, auto w) { return (x - m - d) * s * w; });
constexpr Formula normalized_plus = formula<5>(
    floating_types, [](auto x, auto m, auto d, auto s, auto b) { return (x - m - d) * s + b; });
constexpr Formula normalized_times_plus = formula<6>(
    floating_types,
    [](auto x, auto m, auto d, auto s, auto w, auto b) { return (x - m - d) * s * w + b; });

Kernel mean_kernel(DType dtype, unsigned) {
  RowKernel k(dtype, {Combine::add}, 0);
  const Source x = k.input(), count = k.number();
  const Sink out = k.output(StrideClass::zero);
  k.total(x, 0);
  k.stage(Level::row, divided, {reduction(0), count}, {out});
  return k.take();
}

/// Variant 1: the standard deviation. Of f32 in f64, from the first element; of f64 from the mean.
Kernel var_kernel(DType dtype, unsigned is_root) {
  if (dtype == f32) {
    RowKernel k(f32, f64, {Combine::add, Combine::add}, 0);
    const Source x = k.input(), first = k.first(), count = k.number(), rest = k.number();
    const Sink out = k.output(StrideClass::zero);
    k.moments(wide_deviation, {x, first}, 0, 1);
    k.stage(Level::row, is_root != 0 ? narrow_root_of_variance : narrow_variance,
            {reduction(0), reduction(1), count, rest}, {out});
    return k.take();
  }
  RowKernel k(dtype, {Combine::add, Combine::add, Combine::add}, 1);
  const Source x = k.input();
  k.first();
  const Source count = k.number(), rest = k.number();
  const Sink out = k.output(StrideClass::zero);
  k.total(x, 0);
  k.stage(Level::row, divided, {reduction(0), count}, {keep(0)});
  k.moments(deviation, {x, row_value(0)}, 1, 2);
  k.stage(Level::row, is_root != 0 ? root_of_variance : variance,
          {reduction(1), reduction(2), count, rest}, {out});
  return k.take();
}

Kernel logsumexp_kernel(DType dtype, unsigned) {
  RowKernel k(dtype, {Combine::maximum, Combine::add}, 1);
  const Source x = k.input();
  const Sink out = k.output(StrideClass::zero);
  k.total(x, 0);
  k.stage(Level::row, finite_or_zero, {reduction(0)}, {keep(0)});
  k.stage(Level::element, power, {x, row_value(0)}, {accumulate(1)});
  k.stage(Level::row, logarithm_plus, {reduction(1), row_value(0)}, {out});
  return k.take();
}

Kernel softmax_kernel(DType dtype, unsigned) {
  RowKernel k(dtype, {Combine::maximum, Combine::add}, 0);
  const Source x = k.input();
  const Sink out = k.output(StrideClass::one);
  const Source powers = k.scratch();
  k.total(x, 0);
  k.stage(Level::element, power, {x, reduction(0)}, {accumulate(1), store(powers.index)});
  k.stage(Level::element, divided, {powers, reduction(1)}, {out});
  return k.take();
}

Kernel log_softmax_kernel(DType dtype, unsigned) {
  RowKernel k(dtype, {Combine::maximum, Combine::add}, 1);
  const Source x = k.input();
  const Sink out = k.output(StrideClass::one);
  k.total(x, 0);
  k.stage(Level::element, power, {x, reduction(0)}, {accumulate(1)});
  k.stage(Level::row, logarithm, {reduction(1)}, {keep(0)});
  k.stage(Level::element, twice_subtracted, {x, reduction(0), row_value(0)}, {out});
  return k.take();
}

/// Variants: 1 has a weight, 2 a bias, 3 both.
Kernel layer_norm_kernel(DType dtype, unsigned variant) {
  RowKernel k(dtype, {Combine::add, Combine::add, Combine::add}, 3);
  const Source x = k.input();
  const Source weight = (variant & 1U) != 0 ? k.input() : x;
  const Source bias = (variant & 2U) != 0 ? k.input() : x;
  const Source count = k.number(), eps = k.number();
  const Sink out = k.output(StrideClass::one);
  const Source mean = row_value(0), shift = row_value(1), scale = row_value(2);
  k.total(x, 0);
  k.stage(Level::row, divided, {reduction(0), count}, {keep(0)});
  k.moments(deviation, {x, mean}, 1, 2);
  k.stage(Level::row, dtype == f32 ? shift_of_row<float> : shift_of_row<double>,
          {reduction(1), count}, {keep(1)});
  k.stage(Level::row, dtype == f32 ? scale_of_row<float> : scale_of_row<double>,
          {reduction(1), reduction(2), count, eps}, {keep(2)});
  switch (variant) {
    case 0:
      k.stage(Level::element, normalized, {x, mean, shift, scale}, {out});
      break;
    case 1:
      k.stage(Level::element, normalized_times, {x, mean, shift, scale, weight}, {out});
      break;
    case 2:
      k.stage(Level::element, normalized_plus, {x, mean, shift, scale, bias}, {out});
      break;
    default:
      k.stage(Level::element, normalized_times_plus, {x, mean, shift, scale, weight, bias}, {out});
  }
  return k.take();
}

// ---- calls

/// Elements of a row if `x` is of rows that a kernel may take: its last `axes` axes, contiguous.
std::optional<int64_t> row_length(Inputs inputs, int axes) {
  const TensorData& x = inputs[0]->internals();
  const int rank = x.spec.shape.size();
  if (axes < 1 || axes > rank || x.spec.shape[rank - 1] == 1) return std::nullopt;
  for (const Tensor* input : inputs) {
    const TensorData& data = input->internals();
    if (data.spec.dtype != x.spec.dtype || data.spec.device != x.spec.device ||
        (data.spec.dtype != f32 && data.spec.dtype != f64) || data.spec.is_weak ||
        !is_contiguous(data.spec.shape, data.strides)) {
      return std::nullopt;
    }
  }
  int64_t length = 1;
  for (int i = rank - axes; i < rank; ++i) length *= x.spec.shape[i];
  const int64_t count = element_count(x.spec.shape);
  if (count == 0 || !are_worth_it(count / length, length)) return std::nullopt;
  return length;
}

/// How many axes there are if they are the last ones, each once; else 0.
int last_axes(const Tensor& x, const Dims& axes) {
  const int rank = x.rank();
  if (axes.empty()) return rank;  // all
  std::array<bool, max_rank> is_given = {};
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank) return 0;
    is_given[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  const auto count = static_cast<int>(std::ranges::count(is_given, true));
  for (int i = rank - count; i < rank; ++i) {
    if (!is_given[static_cast<std::size_t>(i)]) return 0;
  }
  return count == axes.size() ? count : 0;
}

/// A value per element.
Tensor per_element(const eager::RowLaunch& launch) {
  const Tensor out = allocate_tensor(launch.inputs[0]->spec());
  eager::compute_rows(launch, out);
  return out;
}

/// A value per row, whose axes, the op's first attribute, go or stay as ones. `numbers_of(length)`
/// are the kernel's numbers.
template <class Numbers>
Tensor per_row(eager::RowLaunch launch, const Attrs& attrs, Numbers numbers_of) {
  const Inputs inputs = launch.inputs;
  const int axes = last_axes(*inputs[0], std::get<Dims>(attrs[0]));
  const auto length = row_length(inputs, axes);
  if (!length) return {};
  Spec spec = inputs[0]->spec();
  const Shape shape = spec.shape;
  spec.shape = {};
  for (int i = 0; i < shape.size(); ++i) {
    if (i < shape.size() - axes)
      spec.shape.push_back(shape[i]);
    else if (std::get<bool>(attrs[1]))  // keepdims
      spec.shape.push_back(1);
  }
  const Tensor out = allocate_tensor(spec);
  const auto numbers = numbers_of(*length);
  launch.numbers = numbers;
  launch.length = *length;
  eager::compute_rows(launch, out);
  return out;
}

Tensor fused_variance(const Op& op, Inputs inputs, const Attrs& attrs, unsigned is_root) {
  const auto numbers_of = [&attrs](int64_t length) {
    const int64_t rest = std::max<int64_t>(length - std::get<int64_t>(attrs[2]), 0);
    return std::array{static_cast<double>(length), static_cast<double>(rest)};
  };
  return per_row({.op = op,
                  .make = var_kernel,
                  .variant = is_root,
                  .inputs = inputs,
                  .numbers = {},
                  .number_dtype = f64,
                  .has_first = true},
                 attrs, numbers_of);
}

Tensor fused_over_last(const Op& op, Inputs inputs, const Attrs& attrs,
                       Kernel (*make)(DType, unsigned), bool has_scratch) {
  const bool is_last = std::get<int64_t>(attrs[0]) == inputs[0]->rank() - 1;
  const auto length = row_length(inputs, is_last ? 1 : 0);
  if (!length) return {};
  return per_element({.op = op,
                      .make = make,
                      .inputs = inputs,
                      .numbers = {},
                      .length = *length,
                      .has_scratch = has_scratch});
}

}  // namespace

Tensor fused_mean(const Op& op, Inputs inputs, const Attrs& attrs) {
  return per_row({.op = op,
                  .make = mean_kernel,
                  .inputs = inputs,
                  .numbers = {},
                  .number_dtype = inputs[0]->dtype()},
                 attrs, [](int64_t length) { return std::array{static_cast<double>(length)}; });
}

Tensor fused_var(const Op& op, Inputs inputs, const Attrs& attrs) {
  return fused_variance(op, inputs, attrs, 0);
}

Tensor fused_std(const Op& op, Inputs inputs, const Attrs& attrs) {
  return fused_variance(op, inputs, attrs, 1);
}

Tensor fused_logsumexp(const Op& op, Inputs inputs, const Attrs& attrs) {
  return per_row({.op = op, .make = logsumexp_kernel, .inputs = inputs, .numbers = {}}, attrs,
                 [](int64_t) { return std::array<double, 0>(); });
}

Tensor fused_softmax(const Op& op, Inputs inputs, const Attrs& attrs) {
  return fused_over_last(op, inputs, attrs, softmax_kernel, true);
}

Tensor fused_log_softmax(const Op& op, Inputs inputs, const Attrs& attrs) {
  return fused_over_last(op, inputs, attrs, log_softmax_kernel, false);
}

Tensor fused_layer_norm(const Op& op, Inputs inputs, const Attrs& attrs) {
  const auto axes = static_cast<int>(std::get<int64_t>(attrs[0]));
  const auto length = row_length(inputs, axes);
  if (!length) return {};
  const unsigned variant =
      (std::get<bool>(attrs[2]) ? 1U : 0U) | (std::get<bool>(attrs[3]) ? 2U : 0U);
  const std::array numbers = {static_cast<double>(*length), std::get<double>(attrs[1])};
  return per_element({.op = op,
                      .make = layer_norm_kernel,
                      .variant = variant,
                      .inputs = inputs,
                      .numbers = numbers,
                      .number_dtype = inputs[0]->dtype(),
                      .length = *length});
}

}  // namespace nitinol
