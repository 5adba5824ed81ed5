#include "tests/op_samples.h"

#include "eager/ops/ops.h"
#include "tests/op_along.h"
#include "tests/op_groups.h"
#include "tests/op_order.h"
#include "tests/op_random.h"
#include "tests/op_windows.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string_view>

namespace nitinol::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_number = std::numeric_limits<double>::quiet_NaN();

std::vector<double> edge_numbers(DType dtype) {
  switch (dtype) {
    case boolean:
      return {0, 1};
    case u8:
      return {0, 1, 2, 3, 7, 100, 128, 254, 255};
    case u16:
      return {0, 1, 2, 3, 7, 100, 32768, 65534, 65535};
    case u32:
      return {0, 1, 2, 3, 7, 12345, 2147483648.0, 4294967294.0, 4294967295.0};
    case u64:
      return {0,
              1,
              2,
              3,
              7,
              12345,
              9223372036854775808.0,
              9223373136366403584.0};  // whose square fits 128 bits
    case i8:
      return {0, 1, -1, 2, -2, 3, -7, 100, 127, -127, -128};
    case i16:
      return {0, 1, -1, 2, -3, 7, -100, 32767, -32767, -32768};
    case i32:
      return {0, 1, -1, 2, -3, 7, -100, 12345, 2147483647, -2147483647, -2147483648.0};
    case i64:
      return {0, 1, -1, 2, -3, 7, -100, 12345, 2147483659.0, -9223372036854775808.0};
    case f16:
    case bf16:
    case f32:
    case f64:
      break;
  }
  std::vector<double> numbers = {0.0,  -0.0,   1,      -1,    0.5,  -0.5,  1.5,
                                 2,    -2.5,   3,      10,    -10,  0.001, -1e-7,
                                 7.25, 88.5,   -88.5,  300,   -750, 1e4,   -1e4,
                                 0.75, 3.1415, -6.283, 1e-40, inf,  -inf,  nan_number};
  if (dtype != f16) numbers.insert(numbers.end(), {1e30, -1e30, 3e38, 1.17549435e-38});
  if (dtype == f64) numbers.insert(numbers.end(), {1e300, -1e300, 5e-324, 2.2250738585072014e-308});
  return numbers;
}

uint64_t next(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t z = state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

Tensor as(DType dtype, const std::vector<double>& numbers, const Shape& shape) {
  return cast(from_span<double>(numbers, shape), dtype);
}

using Samples = std::vector<Sample>;

// ---- elementwise

/// How far functions that subtract may be off near their zeros, or that round twice.
double ulps_of(std::string_view op) {
  static const std::map<std::string_view, double> loose = {
      {"sin", 2},         {"cos", 2},      {"tan", 2},    {"tanh", 2},   {"erf", 2},
      {"expm1", 2},       {"log1p", 2},    {"pow", 2},    {"exp2", 2},   {"log2", 2},
      {"log10", 2},       {"rsqrt", 2},    {"asin", 2},   {"acos", 2},   {"atan", 2},
      {"atan2", 2},       {"sinh", 2},     {"cosh", 2},   {"asinh", 2},  {"acosh", 2},
      {"atanh", 2},       {"erfc", 2},     {"erfinv", 2}, {"lgamma", 3}, {"digamma", 3},
      {"logaddexp", 2},   {"sigmoid", 4},  {"silu", 4},   {"gelu", 16},  {"gelu_tanh", 64},
      {"gelu_slope", 16}, {"softplus", 4}, {"elu", 2},    {"mish", 8},   {"hardswish", 2},
      {"hardsigmoid", 2}};
  const auto found = loose.find(op);
  return found == loose.end() ? 1 : found->second;
}

/// The edge cases of all operands against each other, by broadcasting.
Samples elementwise_samples(const Op& op) {
  Samples out;
  for (const DType dtype : list_of(op.accepts)) {
    const Tensor edges = edge_values(dtype);
    Sample sample = {.inputs = {}, .attrs = {}, .ulps = ulps_of(op.name), .absolute = 0};
    // gelu and silu come near zero by a factor that is the rest of a subtraction from 1, logaddexp
    // by the sum of a negative number and a logarithm, lgamma and digamma left of 0 by reflection.
    if (op.name.starts_with("gelu") || op.name == "logaddexp" || op.name.ends_with("gamma"))
      sample.absolute = 4;
    for (int k = 0; k < op.arity; ++k) {
      Shape shape = Dims::filled(op.arity, 1);
      shape[k] = edges.size();
      sample.inputs.push_back(reshape(edges, shape));
    }
    if (op.name == "where") sample.inputs[0] = cast(sample.inputs[0], boolean);
    if (op.name == "check_nonzero") sample.inputs[0] = maximum(sample.inputs[0], 1);
    if (op.name == "check_nonzero") sample.attrs = {int64_t{0}};
    out.push_back(sample);
    sample.inputs.assign(static_cast<std::size_t>(op.arity), random_values(dtype, {3, 35}, 1));
    if (op.name == "where") sample.inputs[0] = sample.inputs[0] > 0;
    if (op.name == "check_nonzero") sample.inputs[0] = maximum(sample.inputs[0], 1);
    out.push_back(sample);
  }
  return out;
}

Samples nan_to_num_samples(const Op&) {
  Samples out;
  for (const DType dtype : list_of(floating))
    out.push_back({.inputs = {edge_values(dtype)}, .attrs = {0.5, 100.0, -200.0}, .ulps = 0.51});
  return out;
}

Samples huber_samples(const Op&) {
  Samples out;
  for (const DType dtype : list_of(floating)) {
    out.push_back(
        {.inputs = {random_values(dtype, {3, 15}, 72)}, .attrs = {0.75, 0.5, 0.75}, .ulps = 4});
  }
  return out;
}

Samples glu_samples(const Op&) {
  Samples out;
  for (const DType dtype : list_of(floating)) {
    for (const int64_t axis : {0, -1}) {
      out.push_back({.inputs = {random_values(dtype, {2, 3, 6}, 73)}, .attrs = {axis}, .ulps = 8});
    }
  }
  return out;
}

Samples lerp_samples(const Op&) {
  Samples out;
  for (const DType dtype : list_of(floating)) {
    Sample sample = {.inputs = {random_values(dtype, {3, 15}, 70),
                                random_values(dtype, {3, 15}, 71), as(dtype, {0.25}, {})},
                     .attrs = {},
                     .ulps = 4,
                     .absolute = 4};
    out.push_back(sample);
    sample.inputs[2] = as(dtype, {0, 0.25, 0.5, 1}, {4, 1, 1});
    out.push_back(sample);
  }
  return out;
}

Samples cast_samples(const Op&) {
  Samples out;
  for (const DType from : list_of(any_dtype)) {
    for (const DType to : list_of(any_dtype)) {
      // Two roundings: a float64 goes to 16 bits by way of float32.
      out.push_back({.inputs = {edge_values(from)}, .attrs = {to, false}, .ulps = 0.51});
    }
  }
  return out;
}

Samples check_fits_samples(const Op&) {
  Samples out;
  for (const DType dtype : {u8, i8, u16, i16, u32, i32, u64}) {
    const Tensor x = cast(random_values(dtype, {3, 5}, 13), i64);
    out.push_back({.inputs = {x}, .attrs = {dtype}, .ulps = 0});
    if (dtype != u64)
      out.push_back({.inputs = {cast(edge_values(dtype), i64)}, .attrs = {dtype}, .ulps = 0});
    out.push_back({.inputs = {cast(abs(x), u64)}, .attrs = {i64}, .ulps = 0});
  }
  return out;
}

Samples transfer_samples(const Op&) {
  Samples out;
  for (const DType dtype : list_of(any_dtype)) {
    const Tensor x = edge_values(dtype);
    for (const int64_t index : {0, 1}) {
      const auto kind = static_cast<int64_t>(Device::Kind::reference);
      out.push_back({.inputs = {x}, .attrs = {kind, index}, .ulps = 0});
    }
  }
  return out;
}

/// Of a world of one; more ranks are tests/dist's.
Samples collective_samples(const Op& op) {
  Samples out;
  const bool has_parts = op.name == "rank_exchange";
  for (const DType dtype : list_of(op.accepts)) {
    for (const Shape& shape : {Shape{1, 3, 2}, Shape{1}, Shape{1, 0}, Shape{5}, Shape{}}) {
      if (has_parts && (shape.size() == 0 || shape[0] != 1)) continue;
      out.push_back({.inputs = {random_values(dtype, shape, 15)},
                     .attrs = {int64_t{0}, int64_t{1}, int64_t{0}, int64_t{0}, shape},
                     .ulps = 0});
    }
  }
  return out;
}

// ---- reductions

struct Axed {
  Shape shape;
  Dims axes;
};
const std::vector<Axed> reductions = {{{7}, {}},
                                      {{}, {}},
                                      {{3, 5}, {1}},
                                      {{3, 5}, {0}},
                                      {{2, 3, 4}, {0, 2}},
                                      {{2, 3, 4}, {1}},
                                      {{2, 3, 4}, {-1, 0}},
                                      {{600, 3}, {0}},
                                      {{2, 4500}, {1}},
                                      {{1, 4}, {0}},
                                      {{4, 1}, {1}},
                                      {{0, 3}, {1}},
                                      {{2, 1, 2, 1, 2, 1, 2, 3}, {1, 2, 4, 7}}};

Samples reduce_samples(const Op& op) {
  Samples out;
  const bool is_arg = op.name.starts_with("arg");
  const bool is_product = op.name == "prod";
  for (const DType dtype : list_of(op.accepts)) {
    for (const Axed& sample : reductions) {
      if (is_arg && sample.axes.size() > 1) continue;
      if (is_product && element_count(sample.shape) > 100 && is_integer(dtype)) continue;
      Tensor x = random_values(dtype, sample.shape, 2);
      if (is_product && is_floating(dtype)) x = cast(x * 0.05 + 1, dtype);
      const double terms = static_cast<double>(std::max<int64_t>(x.size(), 1));
      for (const bool keep : {false, true}) {
        out.push_back({.inputs = {x},
                       .attrs = {sample.axes, keep},
                       .ulps = is_product ? 2 * terms : 1,
                       .absolute = op.name == "sum" ? std::sqrt(terms) + 8 : 0});
      }
    }
    if (!is_product && op.name != "sum") {
      out.push_back({.inputs = {edge_values(dtype)}, .attrs = {Dims{}, false}});
    }
  }
  return out;
}

Samples statistics_samples(const Op& op) {
  Samples out;
  for (const DType dtype : list_of(numeric)) {
    for (const Axed& axed : reductions) {
      if (element_count(axed.shape) == 0) continue;
      const Tensor x = random_values(dtype, axed.shape, 3);
      Sample sample = {.inputs = {x}, .attrs = {axed.axes, true}, .ulps = 16, .absolute = 64};
      if (op.name == "var" || op.name == "std") sample.attrs.emplace_back(int64_t{0});
      out.push_back(sample);
    }
  }
  return out;
}

Samples softmax_samples(const Op&) {
  Samples out;
  for (const DType dtype : list_of(numeric)) {
    for (const int64_t axis : {-1, 0, 1}) {
      out.push_back({.inputs = {random_values(dtype, {4, 6, 5}, 4)},
                     .attrs = {axis},
                     .ulps = 32,
                     .absolute = 4});
    }
  }
  return out;
}

Samples likelihood_samples(const Op& op) {
  Samples out;
  for (const DType dtype : list_of(floating)) {
    for (const double smoothing : {0.0, 0.1}) {
      for (const Shape& shape : {Shape{5}, Shape{3, 4}, Shape{2, 3, 70}}) {
        Shape rows = shape;
        rows.erase(rows.size() - 1);
        Sample sample = {.inputs = {random_values(dtype, shape, 40),
                                    remainder(random_values(i64, rows, 42), shape.back())},
                         .attrs = {smoothing},
                         .ulps = 16,
                         .absolute = 16};
        if (op.arity == 3)
          sample.inputs.insert(sample.inputs.begin(), random_values(dtype, rows, 41));
        out.push_back(sample);
      }
    }
  }
  return out;
}

// ---- movement

Samples move_samples(const std::vector<Shape>& shapes, const Attrs& attrs) {
  Samples out;
  for (const DType dtype : list_of(any_dtype)) {
    Sample sample = {.inputs = {}, .attrs = attrs, .ulps = 0, .absolute = 0};
    uint64_t seed = 8;
    for (const Shape& shape : shapes) sample.inputs.push_back(random_values(dtype, shape, ++seed));
    out.push_back(sample);
  }
  return out;
}

void append(Samples& out, Samples more) {
  out.insert(out.end(), more.begin(), more.end());
}

Samples reshape_samples(const Op&) {
  Samples out = move_samples({{2, 3, 4}}, {Dims{4, 6}});
  append(out, move_samples({{6}}, {Dims{1, 6, 1}}));
  append(out, move_samples({{1}}, {Dims{}}));
  append(out, move_samples({{0, 3}}, {Dims{5, 0}}));
  return out;
}

Samples permute_samples(const Op&) {
  Samples out = move_samples({{2, 3, 4}}, {Dims{2, 0, 1}});
  append(out, move_samples({{}}, {Dims{}}));
  return out;
}

Samples expand_samples(const Op&) {
  Samples out = move_samples({{3, 1}}, {Dims{2, 3, 4}});
  append(out, move_samples({{}}, {Dims{2, 2}}));
  return out;
}

Samples slice_samples(const Op&) {
  Samples out = move_samples({{5, 7}}, {Dims{1, 6}, Dims{2, 3}, Dims{2, -3}});
  append(out, move_samples({{5}}, {Dims{0}, Dims{0}, Dims{1}}));
  return out;
}

Samples concat_samples(const Op&) {
  Samples out = move_samples({{2, 3}, {2, 1}, {2, 0}}, {int64_t{1}});
  append(out, move_samples({{2, 3}, {1, 3}}, {int64_t{0}}));
  return out;
}

Samples place_samples(const Op&) {
  Samples out = move_samples({{4, 5}, {2, 2}}, {Dims{0, 4}, Dims{2, 2}, Dims{3, -2}});
  append(out, move_samples({{4, 5}, {}}, {Dims{1, 0}, Dims{1, 5}, Dims{1, 1}}));
  return out;
}

Samples take_samples(const Op&) {
  Samples out = move_samples({{4, 3}}, {});
  for (Sample& sample : out) sample.inputs.push_back(tensor({{0, 3, -1}, {1, -4, 1}}, i64));
  return out;
}

Samples scatter_add_samples(const Op& op) {
  Samples out;
  for (const DType dtype : list_of(op.accepts)) {
    const auto add = [&](const Shape& shape, const Tensor& indices) {
      const Tensor values = random_values(dtype, shape, 12);
      out.push_back({.inputs = {values, indices}, .attrs = {int64_t{4}}, .ulps = 2, .absolute = 2});
    };
    add({2, 3, 2, 5}, tensor({{0, 3, -1}, {1, 3, 3}}, i64));
    add({6}, tensor({0, 3, 3, 1, -4, 0}, i64));
    add({3}, tensor(2, i64));
    add({0, 3}, zeros({0}, i64));
  }
  return out;
}

Samples matmul_samples(const Op&) {
  Samples out;
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{3, 4}, {4, 5}},          {{1, 70}, {70, 1}}, {{2, 3, 4}, {4, 2}},
      {{2, 1, 3, 4}, {3, 4, 2}}, {{2, 0}, {0, 3}},   {{33, 65}, {65, 17}}};
  for (const DType dtype : list_of(numeric)) {
    for (const auto& [a, b] : shapes) {
      out.push_back({.inputs = {random_values(dtype, a, 10), random_values(dtype, b, 11)},
                     .attrs = {},
                     .ulps = 4,
                     .absolute = 64});
    }
  }
  return out;
}

// ---- creation

Samples arange_samples(const Op&) {
  Samples out;
  for (const DType dtype : list_of(any_dtype)) {
    out.push_back({.inputs = {tensor(int64_t{-3}), tensor(int64_t{2})},
                   .attrs = {Dims{9}, dtype},
                   .ulps = 1});
    out.push_back(
        {.inputs = {tensor(0.5), tensor(0.125)}, .attrs = {Dims{2, 20}, dtype}, .ulps = 1});
  }
  return out;
}

Samples linspace_samples(const Op&) {
  Samples out;
  for (const DType dtype : list_of(floating)) {
    out.push_back({.inputs = {tensor(-1.0), tensor(2.0), tensor(10.0), tensor(0.3)},
                   .attrs = {Dims{11}, dtype},
                   .ulps = 2,
                   .absolute = 2});
  }
  return out;
}

Samples random_samples(const Op& op) {
  const DType dtype = op.name == "randint" ? i64 : op.name.ends_with("_f64") ? f64 : f32;
  Sample sample = {.inputs = {tensor(int64_t{-77}), tensor(int64_t{1} << 33)},
                   .attrs = {Dims{10, 7}, dtype},
                   .ulps = 4,
                   .absolute = op.name.starts_with("randn") ? 1e-9 : 0};
  if (op.name == "randint") {
    sample.inputs.push_back(tensor(int64_t{-5}));
    sample.inputs.push_back(tensor(int64_t{1000}));
  }
  return {sample};
}

using Maker = Samples (*)(const Op&);
const std::map<std::string_view, Maker>& makers() {
  static const std::map<std::string_view, Maker> table = {
      {"cast", cast_samples},
      {"nan_to_num", nan_to_num_samples},
      {"lerp", lerp_samples},
      {"huber", huber_samples},
      {"glu", glu_samples},
      {"vecdot", vecdot_samples},
      {"vector_norm", vector_norm_samples},
      {"mean", statistics_samples},
      {"var", statistics_samples},
      {"std", statistics_samples},
      {"logsumexp", statistics_samples},
      {"softmax", softmax_samples},
      {"log_softmax", softmax_samples},
      {"layer_norm", layer_norm_samples},
      {"rms_norm", rms_norm_samples},
      {"group_norm", group_norm_samples},
      {"batch_mean", batch_samples},
      {"batch_shift", batch_samples},
      {"batch_variance", batch_samples},
      {"batch_norm", batch_samples},
      {"log_likelihood", likelihood_samples},
      {"log_likelihood_gradient", likelihood_samples},
      {"reshape", reshape_samples},
      {"permute", permute_samples},
      {"expand", expand_samples},
      {"slice", slice_samples},
      {"concat", concat_samples},
      {"place", place_samples},
      {"take", take_samples},
      {"scatter_add", scatter_add_samples},
      {"gather", gather_samples},
      {"take_along", gather_samples},
      {"scatter_add_along", scatter_add_along_samples},
      {"cumsum", scan_samples},
      {"cumprod", scan_samples},
      {"cummax", scan_samples},
      {"cummin", scan_samples},
      {"logcumsumexp", scan_samples},
      {"scatter", scatter_samples},
      {"sort", sort_samples},
      {"argsort", sort_samples},
      {"searchsorted", search_samples},
      {"masked_select", mask_samples},
      {"nonzero", mask_samples},
      {"matmul", matmul_samples},
      {"conv2d", convolution_samples},
      {"conv2d_input", convolution_samples},
      {"conv2d_weight", convolution_samples},
      {"window_max", pool_samples},
      {"window_max_input", pool_samples},
      {"arange", arange_samples},
      {"linspace", linspace_samples},
      {"rand_f32", random_samples},
      {"rand_f64", random_samples},
      {"randn_f32", random_samples},
      {"randn_f64", random_samples},
      {"randint", random_samples},
      {"permutation", permutation_samples},
      {"check_nonzero", elementwise_samples},
      {"check_fits", check_fits_samples},
      {"transfer", transfer_samples},
      {"rank_exchange", collective_samples},
      {"rank_gather", collective_samples},
      {"rank_reduce", collective_samples},
      {"rank_broadcast", collective_samples},
      {"rank_permute", collective_samples}};
  return table;
}

}  // namespace

std::vector<const Tensor*> Sample::pointers() const {
  std::vector<const Tensor*> out;
  for (const Tensor& input : inputs) out.push_back(&input);
  return out;
}

std::string Sample::describe(const Op& op) const {
  std::string text = std::string(op.name) + "(";
  for (const Tensor& input : inputs) text += nitinol::describe(input) + " ";
  return text + to_string(op, attrs) + ")";
}

std::vector<Sample> samples(const Op& op) {
  if (const auto found = makers().find(op.name); found != makers().end()) {
    return found->second(op);
  }
  if (op.kind == OpKind::elementwise) return elementwise_samples(op);
  if (op.kind == OpKind::reduce) return reduce_samples(op);
  throw std::runtime_error(fmt::format("{} has no samples: add them to op_samples.cpp", op.name));
}

Tensor edge_values(DType dtype) {
  const std::vector<double> numbers = edge_numbers(dtype);
  return as(dtype, numbers, {static_cast<int64_t>(numbers.size())});
}

Tensor random_values(DType dtype, const Shape& shape, uint64_t seed) {
  std::vector<double> numbers(static_cast<std::size_t>(element_count(shape)));
  uint64_t state = seed;
  for (double& number : numbers) {
    const double u = (static_cast<double>(next(state) >> 11) + 0.5) * 0x1p-53;
    const double v = static_cast<double>(next(state) >> 11) * 0x1p-53;
    number = std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
    if (is_integer(dtype)) number = std::round(number * 3);
    if (dtype == boolean) number = number > 0 ? 1 : 0;
    if (is_unsigned(dtype)) number = std::fabs(number);
  }
  return as(dtype, numbers, shape);
}

std::vector<DType> list_of(DTypes dtypes) {
  std::vector<DType> out;
  for (int i = 0; i < dtype_count; ++i) {
    if (dtypes.contains(static_cast<DType>(i))) out.push_back(static_cast<DType>(i));
  }
  return out;
}

std::vector<Tensor> strided_variants(const Tensor& x) {
  if (x.rank() == 0) return {};
  std::vector<Tensor> out;
  Dims reversed;
  for (int i = x.rank() - 1; i >= 0; --i) reversed.push_back(i);
  out.push_back(permute(copy(permute(x, reversed)), reversed));
  out.push_back(slice(concat({x, x}, -1), -1, {0, x.shape().back()}));
  out.push_back(flip(copy(flip(x))));
  return out;
}

}  // namespace nitinol::test
