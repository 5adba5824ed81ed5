#include "tests/op_groups.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string_view>

namespace nitinol::test {
namespace {

using Real = long double;

/// (sum of |x|^p)^(1/p), or what that tends to.
Real norm_of(const std::vector<Real>& x, Real p) {
  Real sum = 0, largest = 0, smallest = std::numeric_limits<Real>::infinity();
  for (const Real value : x) {
    sum += p == 0 ? Real(value != 0) : std::pow(std::fabs(value), p);
    largest = std::max(largest, std::fabs(value));
    smallest = std::min(smallest, std::fabs(value));
  }
  if (std::isinf(p)) return p > 0 ? largest : smallest;
  return p == 0 ? sum : std::pow(sum, 1 / p);
}

Real reduced(std::string_view op, const std::vector<Real>& x, int64_t ddof) {
  const auto count = static_cast<Real>(x.size());
  Real sum = 0;
  Real product = 1;
  std::size_t largest = 0;
  std::size_t smallest = 0;
  bool any = false;
  bool all = true;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += x[i];
    product *= x[i];
    any = any || x[i] != 0;
    all = all && x[i] != 0;
    if (std::isnan(x[largest])) continue;
    if (std::isnan(x[i])) {
      largest = smallest = i;
      continue;
    }
    if (x[i] > x[largest]) largest = i;
    if (x[i] < x[smallest]) smallest = i;
  }
  if (op == "sum") return sum;
  if (op == "prod") return product;
  if (op == "any") return any;
  if (op == "all") return all;
  if (op == "argmax") return static_cast<Real>(largest);
  if (op == "argmin") return static_cast<Real>(smallest);
  if (op == "max") return x[largest];
  if (op == "min") return x[smallest];
  const Real mean = sum / count;
  if (op == "mean") return mean;
  if (op == "logsumexp") {
    const Real most = std::isfinite(x[largest]) ? x[largest] : 0;
    Real total = 0;
    for (const Real value : x) total += std::exp(value - most);
    return std::log(total) + most;
  }
  Real squares = 0;
  for (const Real value : x) squares += (value - mean) * (value - mean);
  const Real variance = squares / std::max(count - static_cast<Real>(ddof), 0.0L);
  if (op == "var") return variance;
  if (op == "std") return std::sqrt(variance);
  throw std::runtime_error("no reference");
}

/// Calls f(values, indices) for each group of elements that differ in the axes only.
void for_each_group(const Elements& x, const Dims& axes,
                    const std::function<void(const std::vector<Real>&, std::vector<Dims>&)>& f) {
  Shape rows = x.shape;
  Shape columns = x.shape;
  for (int i = 0; i < rows.size(); ++i) {
    const bool is_reduced = std::ranges::find(axes, i) != axes.end();
    (is_reduced ? rows : columns)[i] = 1;
  }
  for_each_index(rows, [&](const Dims& row) {
    std::vector<Real> values;
    std::vector<Dims> indices;
    for_each_index(columns, [&](const Dims& column) {
      Dims index = row;
      for (int i = 0; i < index.size(); ++i) index[i] += column[i];
      values.push_back(x.at(index));
      indices.push_back(index);
    });
    f(values, indices);
  });
}

}  // namespace

std::vector<Sample> layer_norm_samples(const Op&) {
  std::vector<Sample> out;
  for (const DType dtype : list_of(floating)) {
    const Tensor x = random_values(dtype, {3, 4, 5}, 5);
    const Tensor weight = random_values(dtype, {4, 5}, 6);
    const Tensor bias = random_values(dtype, {4, 5}, 7);
    Sample sample = {
        .inputs = {x}, .attrs = {int64_t{2}, 1e-5, false, false}, .ulps = 32, .absolute = 64};
    out.push_back(sample);
    sample.inputs = {x, weight, bias};
    sample.attrs = {int64_t{2}, 1e-5, true, true};
    out.push_back(sample);
  }
  return out;
}

std::vector<Sample> group_norm_samples(const Op&) {
  std::vector<Sample> out;
  for (const DType dtype : list_of(floating)) {
    const Tensor x = random_values(dtype, {2, 6, 4}, 56);
    Sample sample = {
        .inputs = {x}, .attrs = {int64_t{3}, 1e-5, false, false}, .ulps = 32, .absolute = 64};
    out.push_back(sample);
    sample.inputs = {x, random_values(dtype, {6}, 57), random_values(dtype, {6}, 58)};
    sample.attrs = {int64_t{2}, 1e-5, true, true};
    out.push_back(sample);
  }
  return out;
}

std::vector<Sample> batch_samples(const Op& op) {
  std::vector<Sample> out;
  for (const DType dtype : list_of(floating)) {
    const DType wide = dtype == f64 ? f64 : f32;
    for (const int64_t axis : {1, 2}) {
      const Shape features = {axis == 1 ? 3 : 5};
      const auto number = [&](uint64_t seed) { return random_values(wide, features, seed); };
      Sample sample = {.inputs = {random_values(dtype, {4, 3, 5}, 50)},
                       .attrs = {axis},
                       .ulps = 32,
                       .absolute = 64};
      if (op.name != "batch_mean") sample.inputs.push_back(number(51));
      if (op.name == "batch_variance") sample.inputs.push_back(number(52) * 0.1);
      if (op.name == "batch_norm") {
        sample.inputs.push_back(abs(number(53)) + 0.5);
        sample.attrs = {axis, 1e-5, false, false, false};
        out.push_back(sample);
        const Tensor weight = random_values(dtype, features, 54);
        sample.inputs = {sample.inputs[0], sample.inputs[1], sample.inputs[2],
                         number(55) * 0.1, weight,           weight * 2};
        sample.attrs = {axis, 1e-5, true, true, true};
      }
      out.push_back(sample);
    }
  }
  return out;
}

std::vector<Sample> rms_norm_samples(const Op&) {
  std::vector<Sample> out;
  for (const DType dtype : list_of(floating)) {
    const Tensor x = random_values(dtype, {3, 4, 5}, 8);
    Sample sample = {.inputs = {x}, .attrs = {int64_t{1}, 1e-6, false}, .ulps = 16, .absolute = 1};
    out.push_back(sample);
    sample.inputs = {x, random_values(dtype, {4, 5}, 9)};
    sample.attrs = {int64_t{2}, 1e-6, true};
    out.push_back(sample);
  }
  return out;
}

Elements reduction(const Op& op, const Elements& x, const Attrs& attrs, const Spec& spec) {
  Elements out = {spec.dtype, spec.shape, {}};
  const Dims axes = normalize_axes(op.name, std::get<Dims>(attrs[0]), x.shape.size());
  const bool is_norm = op.name == "vector_norm";
  const int64_t ddof = attrs.size() > 2 && !is_norm ? std::get<int64_t>(attrs[2]) : 0;
  for_each_group(x, axes, [&](const std::vector<Real>& values, std::vector<Dims>&) {
    const Real value = is_norm ? norm_of(values, static_cast<Real>(std::get<double>(attrs[2])))
                               : reduced(op.name, values, ddof);
    out.values.push_back(wrapped(spec.dtype, value));
  });
  return out;
}

std::vector<Sample> vector_norm_samples(const Op&) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::vector<Sample> out;
  for (const DType dtype : list_of(floating)) {
    for (const double p : {2.0, 1.0, 3.0, 0.0, inf, -inf}) {
      Sample sample = {
          .inputs = {random_values(dtype, {3, 40}, 60)}, .attrs = {Dims{1}, false, p}, .ulps = 16};
      out.push_back(sample);
      sample.attrs[0] = Dims{};
      sample.attrs[1] = true;
      out.push_back(sample);
    }
  }
  return out;
}

std::vector<Sample> vecdot_samples(const Op&) {
  std::vector<Sample> out;
  for (const DType dtype : list_of(numeric)) {
    for (const int64_t axis : {-1, -2}) {
      out.push_back(
          {.inputs = {random_values(dtype, {2, 3, 12}, 61), random_values(dtype, {2, 3, 12}, 62)},
           .attrs = {axis},
           .ulps = 4,
           .absolute = 64});
    }
  }
  return out;
}

Elements dotted(std::span<const Elements> inputs, const Attrs& attrs, const Spec& spec) {
  Elements products = inputs[0], out = {spec.dtype, spec.shape, {}};
  for (std::size_t i = 0; i < products.values.size(); ++i)
    products.values[i] *= inputs[1].values[i];
  const Dims axes = {std::get<int64_t>(attrs[0]) + products.shape.size()};
  for_each_group(products, axes, [&](const std::vector<Real>& values, std::vector<Dims>&) {
    out.values.push_back(wrapped(spec.dtype, reduced("sum", values, 0)));
  });
  return out;
}

Elements normalisation(const Op& op, std::span<const Elements> inputs, const Attrs& attrs) {
  const Elements& x = inputs[0];
  Elements out = {is_floating(x.dtype) ? x.dtype : f32, x.shape, {}};
  out.values.resize(x.values.size());
  Dims axes;
  const int64_t number = std::get<int64_t>(attrs[0]);
  if (!op.name.ends_with("_norm"))
    axes.push_back(number < 0 ? number + x.shape.size() : number);
  else
    for (int64_t i = x.shape.size() - number; i < x.shape.size(); ++i) axes.push_back(i);
  for_each_group(x, axes, [&](const std::vector<Real>& values, std::vector<Dims>& indices) {
    const Real most = reduced("max", values, 0);
    const Real total = reduced("logsumexp", values, 0);
    const Real mean = reduced("mean", values, 0);
    const Real variance = reduced("var", values, 0);
    for (std::size_t k = 0; k < values.size(); ++k) {
      Real value = 0;
      if (op.name == "softmax") value = std::exp(values[k] - total);
      if (op.name == "log_softmax") value = (values[k] - most) - (total - most);
      if (op.name.ends_with("_norm")) {
        const bool is_centred = op.name == "layer_norm";
        const Real square = is_centred ? variance : variance + mean * mean;
        value =
            (values[k] - (is_centred ? mean : 0)) / std::sqrt(square + std::get<double>(attrs[1]));
        std::size_t next = 1;
        if (std::get<bool>(attrs[2])) value *= inputs[next++].values[k];
        if (is_centred && std::get<bool>(attrs[3])) value += inputs[next].values[k];
      }
      out.values[out.place(indices[k])] = value;
    }
  });
  return out;
}

Elements of_groups(std::span<const Elements> inputs, const Attrs& attrs) {
  const Elements& x = inputs[0];
  const auto groups = static_cast<std::size_t>(x.shape[0] * std::get<int64_t>(attrs[0]));
  const std::size_t each = x.values.size() / groups;
  const std::size_t pixels = x.values.size() / static_cast<std::size_t>(x.shape[0] * x.shape[1]);
  Elements out = x;
  for (std::size_t k = 0; k < x.values.size(); ++k) {
    const auto first = x.values.begin() + static_cast<std::ptrdiff_t>(k / each * each);
    const std::vector<Real> values(first, first + static_cast<std::ptrdiff_t>(each));
    const Real variance = reduced("var", values, 0) + std::get<double>(attrs[1]);
    const std::size_t feature = k / pixels % static_cast<std::size_t>(x.shape[1]);
    std::size_t next = 1;
    out.values[k] = (x.values[k] - reduced("mean", values, 0)) / std::sqrt(variance);
    if (std::get<bool>(attrs[2])) out.values[k] *= inputs[next++].values[feature];
    if (std::get<bool>(attrs[3])) out.values[k] += inputs[next].values[feature];
  }
  return out;
}

Elements of_batch(const Op& op, std::span<const Elements> inputs, const Attrs& attrs,
                  const Spec& spec) {
  const Elements& x = inputs[0];
  const auto axis = static_cast<int>(std::get<int64_t>(attrs[0]));
  Elements out = {spec.dtype, spec.shape, {}};
  out.values.resize(static_cast<std::size_t>(element_count(spec.shape)));
  Dims axes;
  for (int i = 0; i < x.shape.size(); ++i) {
    if (i != axis) axes.push_back(i);
  }
  std::size_t feature = 0;
  for_each_group(x, axes, [&](const std::vector<Real>& values, std::vector<Dims>& indices) {
    const auto number = [&](std::size_t input) { return inputs[input].values[feature]; };
    if (op.name == "batch_norm") {
      std::size_t next = 3;
      const Real mean = number(1) + (std::get<bool>(attrs[2]) ? number(next++) : 0);
      const Real weight = std::get<bool>(attrs[3]) ? number(next++) : 1;
      const Real bias = std::get<bool>(attrs[4]) ? number(next) : 0;
      const Real scale = weight / std::sqrt(number(2) + std::get<double>(attrs[1]));
      for (std::size_t k = 0; k < values.size(); ++k) {
        out.values[out.place(indices[k])] = (values[k] - mean) * scale + bias;
      }
    } else {
      const Real from = op.name == "batch_mean" ? 0 : number(1);
      Real total = 0;
      for (const Real value : values)
        total += op.name == "batch_variance" ? (value - from) * (value - from) : value - from;
      const Real shift = op.name == "batch_variance" ? number(2) : 0;
      out.values[feature] = total / static_cast<Real>(values.size()) - shift * shift;
    }
    ++feature;
  });
  return out;
}

}  // namespace nitinol::test
