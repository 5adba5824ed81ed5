#include "tests/op_reference.h"

#include "bench/special_functions.h"
#include "core/host_access.h"
#include "tests/op_along.h"
#include "tests/op_groups.h"
#include "tests/op_order.h"
#include "tests/op_random.h"
#include "tests/op_windows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace nitinol::test {
namespace {

using Real = long double;
/// f(a, b, c) at one element; unused arguments are 0.
using ScalarReference = Real (*)(Real a, Real b, Real c);
constexpr Real nan_value = std::numeric_limits<Real>::quiet_NaN();

Real load(DType dtype, const std::byte* at) {
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<Real>(value);
  };
  const auto bits = [&] {
    uint16_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case boolean:
    case u8:
      return read(uint8_t{});
    case i8:
      return read(int8_t{});
    case u16:
      return read(uint16_t{});
    case i16:
      return read(int16_t{});
    case u32:
      return read(uint32_t{});
    case i32:
      return read(int32_t{});
    case u64:
      return read(uint64_t{});
    case i64:
      return read(int64_t{});
    case f32:
      return read(float{});
    case f64:
      return read(double{});
    case bf16: {
      const uint32_t wide = static_cast<uint32_t>(bits()) << 16;
      float value = 0;
      std::memcpy(&value, &wide, sizeof value);
      return value;
    }
    case f16: {
      const int exponent = bits() >> 10 & 31;
      const int fraction = bits() & 1023;
      Real size = exponent == 0 ? std::ldexp(static_cast<Real>(fraction), -24)
                                : std::ldexp(static_cast<Real>(1024 + fraction), exponent - 25);
      if (exponent == 31) size = fraction == 0 ? std::numeric_limits<Real>::infinity() : nan_value;
      return (bits() & 0x8000) != 0 ? -size : size;
    }
  }
  return 0;
}

Real sign_of(Real x) {
  return x > 0 ? 1 : x < 0 ? -1 : x;
}
Real maximum(Real a, Real b) {
  if (std::isnan(a) || std::isnan(b)) return nan_value;
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
Real minimum(Real a, Real b) {
  return -maximum(-a, -b);
}
Real remainder_of(Real a, Real b) {
  if (b == 0 || std::isinf(a) || std::isnan(a) || std::isnan(b)) return nan_value;
  const Real r = std::fmod(a, b);
  return r != 0 && std::signbit(r) != std::signbit(b) ? r + b : r;
}
Real floor_divide(Real a, Real b) {
  const Real r = remainder_of(a, b);
  if (std::isinf(a)) return b == 0 ? a / b : nan_value;
  if (std::isnan(r)) return a / b;
  if (std::isinf(b)) return r == a ? 0 : -1;
  return std::round((a - r) / b);
}
Real integer_power(Real a, Real b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (std::fmod(b, 2.0L) == 0 ? 1 : -1) : 0;
  unsigned __int128 result = 1;
  const auto base = static_cast<unsigned __int128>(static_cast<__int128>(a));
  unsigned __int128 square = base;
  for (auto n = static_cast<uint64_t>(b); n != 0; n >>= 1) {
    if ((n & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<Real>(static_cast<int64_t>(static_cast<uint64_t>(result)));
}
/// Of unsigned numbers beyond int64 the same bits.
int64_t as_int(Real x) {
  return static_cast<int64_t>(static_cast<uint64_t>(static_cast<__int128>(x)));
}

#define NITINOL_REF(expression)        \
  [](Real a, Real b, Real c) -> Real { \
    static_cast<void>(b);              \
    static_cast<void>(c);              \
    return expression;                 \
  }

const std::map<std::string_view, ScalarReference>& functions() {
  static const std::map<std::string_view, ScalarReference> table = {
      {"abs", NITINOL_REF(std::fabs(a))},
      {"neg", NITINOL_REF(-a)},
      {"sign", NITINOL_REF(a == 0 ? 0 : sign_of(a))},
      {"square", NITINOL_REF(a * a)},
      {"floor", NITINOL_REF(std::floor(a))},
      {"ceil", NITINOL_REF(std::ceil(a))},
      {"round", NITINOL_REF(std::nearbyint(a))},
      {"trunc", NITINOL_REF(std::trunc(a))},
      {"relu", NITINOL_REF(a <= 0 ? 0 : a)},
      {"sqrt", NITINOL_REF(std::sqrt(a))},
      {"rsqrt", NITINOL_REF(1 / std::sqrt(a))},
      {"reciprocal", NITINOL_REF(1 / a)},
      {"exp", NITINOL_REF(std::exp(a))},
      {"exp2", NITINOL_REF(std::exp2(a))},
      {"expm1", NITINOL_REF(std::expm1(a))},
      {"log", NITINOL_REF(std::log(a))},
      {"log1p", NITINOL_REF(std::log1p(a))},
      {"log2", NITINOL_REF(std::log2(a))},
      {"log10", NITINOL_REF(std::log10(a))},
      {"sin", NITINOL_REF(std::sin(a))},
      {"cos", NITINOL_REF(std::cos(a))},
      {"tan", NITINOL_REF(std::tan(a))},
      {"tanh", NITINOL_REF(std::tanh(a))},
      {"erf", NITINOL_REF(std::erf(a))},
      {"cbrt", NITINOL_REF(std::cbrt(a))},
      {"asin", NITINOL_REF(std::asin(a))},
      {"acos", NITINOL_REF(std::acos(a))},
      {"atan", NITINOL_REF(std::atan(a))},
      {"sinh", NITINOL_REF(std::sinh(a))},
      {"cosh", NITINOL_REF(std::cosh(a))},
      {"asinh", NITINOL_REF(std::asinh(a))},
      {"acosh", NITINOL_REF(std::acosh(a))},
      {"atanh", NITINOL_REF(std::atanh(a))},
      {"erfc", NITINOL_REF(std::erfc(a))},
      {"erfinv", NITINOL_REF(special::erfinv(a))},
      {"lgamma", NITINOL_REF(std::lgamma(a))},
      {"digamma", NITINOL_REF(special::digamma(a))},
      {"signbit", NITINOL_REF(std::signbit(a) && !std::isnan(a))},
      {"atan2", NITINOL_REF(std::atan2(a, b))},
      {"hypot", NITINOL_REF(std::hypot(a, b))},
      {"logaddexp", NITINOL_REF(a == b ? a + std::log(2.0L)
                                       : maximum(a, b) + std::log1p(std::exp(-std::fabs(a - b))))},
      {"fmax", NITINOL_REF(std::fmax(a, b))},
      {"fmin", NITINOL_REF(std::fmin(a, b))},
      {"fmod", NITINOL_REF(std::fmod(a, b))},
      {"sigmoid", NITINOL_REF(1 / (1 + std::exp(-a)))},
      {"gelu", NITINOL_REF(0.5L * a * (1 + std::erf(a * std::sqrt(0.5L))))},
      {"gelu_slope", NITINOL_REF(special::gelu_slope(a))},
      {"gelu_tanh",
       NITINOL_REF(0.5L * a *
                   (1 + std::tanh(0.79788456080286535588L * (a + 0.044715L * a * a * a))))},
      {"silu", NITINOL_REF(a / (1 + std::exp(-a)))},
      {"softplus", NITINOL_REF(maximum(a, 0) + std::log1p(std::exp(-std::fabs(a))))},
      {"leaky_relu", NITINOL_REF(a > 0 ? a : a * b)},
      {"elu", NITINOL_REF(a > 0 ? a : b * std::expm1(a))},
      {"mish", NITINOL_REF(a * std::tanh(std::log1p(std::exp(a))))},
      {"hardsigmoid", NITINOL_REF(minimum(maximum((a + 3) / 6, 0), 1))},
      {"hardswish", NITINOL_REF(a <= -3 ? 0 : a * minimum((a + 3) / 6, 1))},
      {"isnan", NITINOL_REF(std::isnan(a))},
      {"isinf", NITINOL_REF(std::isinf(a))},
      {"isfinite", NITINOL_REF(std::isfinite(a))},
      {"logical_not", NITINOL_REF(a == 0)},
      {"copy", NITINOL_REF(a)},
      {"cast", NITINOL_REF(a)},
      {"add", NITINOL_REF(a + b)},
      {"sub", NITINOL_REF(a - b)},
      {"mul", NITINOL_REF(a * b)},
      {"div", NITINOL_REF(a / b)},
      {"floor_divide", NITINOL_REF(floor_divide(a, b))},
      {"remainder", NITINOL_REF(remainder_of(a, b))},
      {"pow", NITINOL_REF(std::pow(a, b))},
      {"integer_pow", NITINOL_REF(integer_power(a, b))},
      {"maximum", NITINOL_REF(maximum(a, b))},
      {"minimum", NITINOL_REF(minimum(a, b))},
      {"copysign", NITINOL_REF(std::isnan(b) ? std::fabs(a) : std::copysign(a, b))},
      {"clamp", NITINOL_REF(minimum(maximum(a, b), c))},
      {"fma", NITINOL_REF(std::fma(a, b, c))},
      {"eq", NITINOL_REF(a == b)},
      {"ne", NITINOL_REF(a != b)},
      {"lt", NITINOL_REF(a < b)},
      {"le", NITINOL_REF(a <= b)},
      {"gt", NITINOL_REF(a > b)},
      {"ge", NITINOL_REF(a >= b)},
      {"logical_and", NITINOL_REF(a != 0 && b != 0)},
      {"logical_or", NITINOL_REF(a != 0 || b != 0)},
      {"logical_xor", NITINOL_REF((a != 0) != (b != 0))},
      {"bitwise_and", NITINOL_REF(static_cast<Real>(as_int(a) & as_int(b)))},
      {"bitwise_or", NITINOL_REF(static_cast<Real>(as_int(a) | as_int(b)))},
      {"bitwise_xor", NITINOL_REF(static_cast<Real>(as_int(a) ^ as_int(b)))},
      {"where", NITINOL_REF(a != 0 ? b : c)},
      {"lerp", NITINOL_REF(a + c * (b - a))},
      {"check_nonzero", NITINOL_REF(a)},
      {"check_fits", NITINOL_REF(a)},
      {"transfer", NITINOL_REF(a)},
  };
  return table;
}

/// The index into `input` that broadcasting to `index` reads.
Dims broadcast_index(const Shape& input, const Dims& index) {
  Dims from;
  const int shift = index.size() - input.size();
  for (int i = 0; i < input.size(); ++i) from.push_back(input[i] == 1 ? 0 : index[i + shift]);
  return from;
}

int bits_of(DType dtype) {
  return static_cast<int>(8 * size_of(dtype));
}

/// Ops that depend on the width of their operands.
std::optional<Real> by_width(std::string_view op, DType dtype, Real a, Real b) {
  if (op == "bitwise_not") return dtype == boolean ? Real(a == 0) : -a - 1;
  if (op == "nextafter") {
    return dtype == f64 ? Real(std::nextafter(static_cast<double>(a), static_cast<double>(b)))
                        : Real(std::nextafter(static_cast<float>(a), static_cast<float>(b)));
  }
  if (op != "left_shift" && op != "right_shift") return std::nullopt;
  if (b < 0 || b >= bits_of(dtype)) return op == "right_shift" && a < 0 ? -1 : 0;
  const auto count = static_cast<int>(b);
  if (op == "right_shift") return static_cast<Real>(static_cast<__int128>(a) >> count);
  return static_cast<Real>(static_cast<int64_t>(static_cast<uint64_t>(as_int(a)) << count));
}

/// What cast does to a number out of the integer's range.
Real saturated(DType from, DType to, Real value) {
  if (to == boolean) return value != 0;
  if (!is_floating(from) || is_floating(to)) return value;
  if (std::isnan(value)) return 0;
  const Real high = std::ldexp(1.0L, bits_of(to) - (is_unsigned(to) ? 0 : 1)) - 1;
  const Real low = is_unsigned(to) ? 0 : -high - 1;
  return std::clamp(std::trunc(value), low, high);
}

Real elementwise_at(const Op& op, std::span<const Elements> inputs, const Dims& index,
                    DType result) {
  std::array<Real, 3> x = {};
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    x[k] = inputs[k].at(broadcast_index(inputs[k].shape, index));
  }
  const DType dtype = inputs.back().dtype;
  if (op.name == "cast") x[0] = saturated(dtype, result, x[0]);
  if (const std::optional<Real> special = by_width(op.name, dtype, x[0], x[1])) {
    return wrapped(result, *special);
  }
  const bool is_division = op.name == "floor_divide" || op.name == "remainder" || op.name == "fmod";
  if (is_division && is_integer(dtype) && x[1] == 0) x[1] = 1;
  const auto function = functions().find(op.name);
  if (function == functions().end()) throw std::runtime_error("no reference");
  return wrapped(result, function->second(x[0], x[1], x[2]));
}

// ---- movement

Elements viewed(const Op& op, const Elements& x, const Attrs& attrs, const Spec& spec) {
  Elements out = {spec.dtype, spec.shape, {}};
  if (op.name == "reshape") {
    out.values = x.values;
    return out;
  }
  for_each_index(spec.shape, [&](const Dims& index) {
    Dims from = index;
    if (op.name == "expand") from = broadcast_index(x.shape, index);
    for (int i = 0; i < x.shape.size(); ++i) {
      if (op.name == "permute") from[static_cast<int>(std::get<Dims>(attrs[0])[i])] = index[i];
      if (op.name == "slice") {
        from[i] = std::get<Dims>(attrs[0])[i] + index[i] * std::get<Dims>(attrs[2])[i];
      }
    }
    out.values.push_back(x.at(from));
  });
  return out;
}

Elements concatenated(std::span<const Elements> inputs, const Attrs& attrs, const Spec& spec) {
  Elements out = {spec.dtype, spec.shape, {}};
  const auto axis = static_cast<int>(std::get<int64_t>(attrs[0]));
  for_each_index(spec.shape, [&](const Dims& index) {
    Dims from = index;
    std::size_t k = 0;
    while (from[axis] >= inputs[k].shape[axis]) from[axis] -= inputs[k++].shape[axis];
    out.values.push_back(inputs[k].at(from));
  });
  return out;
}

Elements placed(std::span<const Elements> inputs, const Attrs& attrs) {
  Elements out = inputs[0];
  const Strides strides = strides_of(out.shape);
  const Shape& sizes = std::get<Dims>(attrs[1]);
  for_each_index(sizes, [&](const Dims& index) {
    int64_t flat = 0;
    for (int i = 0; i < sizes.size(); ++i) {
      flat += strides[i] * (std::get<Dims>(attrs[0])[i] + index[i] * std::get<Dims>(attrs[2])[i]);
    }
    out.values[static_cast<std::size_t>(flat)] =
        inputs[1].at(broadcast_index(inputs[1].shape, index));
  });
  return out;
}

Elements taken(std::span<const Elements> inputs, const Spec& spec) {
  Elements out = {spec.dtype, spec.shape, {}};
  const Shape& indices = inputs[1].shape;
  for_each_index(spec.shape, [&](const Dims& index) {
    Dims which;
    for (int i = 0; i < indices.size(); ++i) which.push_back(index[i]);
    const int64_t row = as_int(inputs[1].at(which));
    Dims from = {row < 0 ? row + inputs[0].shape[0] : row};
    for (int i = indices.size(); i < index.size(); ++i) from.push_back(index[i]);
    out.values.push_back(inputs[0].at(from));
  });
  return out;
}

Elements scattered(std::span<const Elements> inputs, const Spec& spec) {
  Elements out = {spec.dtype, spec.shape, {}};
  for_each_index(spec.shape, [&](const Dims& to) {
    Real sum = 0;
    for_each_index(inputs[1].shape, [&](const Dims& which) {
      const int64_t row = as_int(inputs[1].at(which));
      if ((row < 0 ? row + spec.shape[0] : row) != to[0]) return;
      Dims from = which;
      for (int i = 1; i < to.size(); ++i) from.push_back(to[i]);
      sum += inputs[0].at(from);
    });
    out.values.push_back(wrapped(spec.dtype, sum));
  });
  return out;
}

Elements product(std::span<const Elements> inputs, const Spec& spec) {
  Elements out = {spec.dtype, spec.shape, {}};
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  for_each_index(spec.shape, [&](const Dims& index) {
    Dims left = index;
    Dims right = index;
    Real sum = 0;
    for (int64_t k = 0; k < a.back(); ++k) {
      left[index.size() - 1] = k;
      right[index.size() - 2] = k;
      sum += inputs[0].at(broadcast_index(a, left)) * inputs[1].at(broadcast_index(b, right));
    }
    out.values.push_back(wrapped(spec.dtype, sum));
  });
  return out;
}

Elements without_nan(const Elements& x, const Attrs& attrs) {
  Elements out = x;
  for (Real& value : out.values) {
    if (!std::isfinite(value))
      value = std::get<double>(attrs[std::isnan(value) ? 0 : value > 0 ? 1 : 2]);
  }
  return out;
}

Elements bent(const Elements& x, const Attrs& attrs) {
  const Real delta = std::get<double>(attrs[0]);
  Elements out = x;
  for (Real& value : out.values) {
    const Real d = std::fabs(value);
    value = d <= delta ? d * d * std::get<double>(attrs[1])
                       : (d - delta / 2) * std::get<double>(attrs[2]);
  }
  return out;
}

Elements gated(const Elements& x, const Attrs& attrs, const Spec& result) {
  const auto given = std::get<int64_t>(attrs[0]);
  const auto axis = static_cast<int>(given < 0 ? given + x.shape.size() : given);
  Elements out = {result.dtype, result.shape, {}};
  for_each_index(result.shape, [&](const Dims& index) {
    Dims gate = index;
    gate[axis] += result.shape[axis];
    out.values.push_back(x.at(index) / (1 + std::exp(-x.at(gate))));
  });
  return out;
}

// ---- creation

Elements created(const Op& op, std::span<const Elements> inputs, const Spec& spec) {
  Elements out = {spec.dtype, spec.shape, {}};
  for (int64_t i = 0; i < element_count(spec.shape); ++i) {
    const auto n = static_cast<Real>(i);
    const auto x = [&](std::size_t k) { return inputs[k].values[0]; };
    Real value = 0;
    if (op.name == "arange") {
      value = x(0) + n * x(1);
    } else if (op.name == "linspace") {
      value = x(0) + n * (x(1) - x(0)) / x(2);
    } else {
      const auto counter = static_cast<uint64_t>(as_int(x(1))) + static_cast<uint64_t>(i);
      value = random_value(op.name, counter, static_cast<uint64_t>(as_int(x(0))), inputs);
    }
    out.values.push_back(wrapped(spec.dtype, saturated(inputs[0].dtype, spec.dtype, value)));
  }
  return out;
}

}  // namespace

long double wrapped(DType dtype, long double value) {
  if (!is_integer(dtype)) return value;
  const auto exact = static_cast<unsigned __int128>(static_cast<__int128>(value));
  const auto low = static_cast<uint64_t>(exact);
  switch (dtype) {
    case u8:
      return static_cast<uint8_t>(low);
    case i8:
      return static_cast<int8_t>(low);
    case u16:
      return static_cast<uint16_t>(low);
    case i16:
      return static_cast<int16_t>(low);
    case u32:
      return static_cast<uint32_t>(low);
    case i32:
      return static_cast<int32_t>(low);
    case u64:
      return static_cast<Real>(low);
    default:
      return static_cast<Real>(static_cast<int64_t>(low));
  }
}

std::size_t Elements::place(const Dims& indices) const {
  int64_t flat = 0;
  for (int i = 0; i < indices.size(); ++i) flat = flat * shape[i] + indices[i];
  return static_cast<std::size_t>(flat);
}

Elements elements_of(const Tensor& tensor) {
  const TensorData& data = tensor.internals();
  Elements out = {data.spec.dtype, data.spec.shape, {}};
  const HostElements elements(data);
  for_each_index(data.spec.shape, [&](const Dims& index) {
    out.values.push_back(load(data.spec.dtype, elements.at(index)));
  });
  return out;
}

void for_each_index(const Shape& shape, const std::function<void(const Dims&)>& f) {
  Dims index = Dims::filled(shape.size(), 0);
  for (int64_t left = element_count(shape); left > 0; --left) {
    f(index);
    for (int i = shape.size() - 1; i >= 0; --i) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

Elements reference(const Op& op, std::span<const Tensor> inputs, const Attrs& attrs,
                   const Spec& result) {
  std::vector<Elements> given;
  for (const Tensor& input : inputs) given.push_back(elements_of(input));
  if (op.kind == OpKind::elementwise || op.kind == OpKind::transfer || op.name == "lerp" ||
      op.name.starts_with("check_")) {
    Elements out = {result.dtype, result.shape, {}};
    for_each_index(result.shape, [&](const Dims& index) {
      out.values.push_back(elementwise_at(op, given, index, result.dtype));
    });
    return out;
  }
  if (op.name.starts_with("rank_")) return {result.dtype, result.shape, given[0].values};
  if (op.kind == OpKind::view) return viewed(op, given[0], attrs, result);
  if (op.kind == OpKind::create) return created(op, given, result);
  if (op.name == "concat") return concatenated(given, attrs, result);
  if (op.name == "place") return placed(given, attrs);
  if (op.name == "take") return taken(given, result);
  if (op.name == "scatter_add") return scattered(given, result);
  if (op.name == "gather" || op.name == "take_along") return gathered(given, attrs, result);
  if (op.name == "scatter_add_along") return scattered_along(given, attrs, result);
  if (op.name.starts_with("cum") || op.name == "logcumsumexp") return scanned(op, given[0], attrs);
  for (const std::string_view name :
       {"scatter", "sort", "argsort", "searchsorted", "masked_select", "nonzero"}) {
    if (op.name == name) return ordered(op, given, attrs, result);
  }
  if (op.name == "permutation") return random_order(given[0], result.shape[0]);
  if (op.name == "matmul") return product(given, result);
  if (op.name.starts_with("conv2d")) return convolved(op, given, attrs, result);
  if (op.name.starts_with("window_max")) return pooled(op, given, attrs, result);
  if (op.name.starts_with("log_likelihood")) return likelihood(given, attrs, result);
  if (op.name.starts_with("batch_")) return of_batch(op, given, attrs, result);
  if (op.name == "nan_to_num") return without_nan(given[0], attrs);
  if (op.name == "huber") return bent(given[0], attrs);
  if (op.name == "glu") return gated(given[0], attrs, result);
  if (op.name == "vecdot") return dotted(given, attrs, result);
  if (op.name == "group_norm") return of_groups(given, attrs);
  const bool normalises = op.name == "softmax" || op.name == "log_softmax" ||
                          (op.name.ends_with("_norm") && op.name != "vector_norm");
  if (normalises) return normalisation(op, given, attrs);
  return reduction(op, given[0], attrs, result);
}

}  // namespace nitinol::test
