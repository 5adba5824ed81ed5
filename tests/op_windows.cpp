#include "tests/op_windows.h"

#include "core/library.h"

#include <cmath>

namespace nitinol::test {
namespace {

struct Case {
  Shape x;       ///< [n, h, w, c]
  Shape weight;  ///< [out, c / groups, kh, kw]
  Dims stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  int64_t groups = 1;
};
const std::vector<Case> convolutions = {
    {.x = {2, 5, 4, 3}, .weight = {4, 3, 3, 2}},
    {.x = {1, 7, 6, 4},
     .weight = {6, 2, 3, 3},
     .stride = {2, 1},
     .padding = {1, 2},
     .dilation = {1, 2},
     .groups = 2},
    {.x = {1, 4, 5, 3}, .weight = {3, 1, 2, 2}, .stride = {1, 2}, .padding = {1, 0}, .groups = 3},
    {.x = {2, 3, 3, 5}, .weight = {2, 5, 1, 1}, .stride = {2, 2}},
    // Pixels that no window reaches.
    {.x = {1, 8, 8, 2}, .weight = {2, 2, 2, 2}, .stride = {3, 4}},
    {.x = {2, 9, 8, 32}, .weight = {16, 32, 3, 3}, .padding = {1, 1}},
    {.x = {3, 12, 11, 1}, .weight = {16, 1, 3, 3}},
    {.x = {0, 4, 4, 2}, .weight = {3, 2, 3, 3}}};

struct PoolCase {
  Shape x;
  Dims kernel, stride, padding;
};
const std::vector<PoolCase> pools = {{{2, 4, 6, 3}, {2, 2}, {2, 2}, {0, 0}},
                                     {{1, 5, 5, 2}, {3, 2}, {2, 1}, {1, 1}},
                                     {{1, 4, 4, 1}, {1, 1}, {3, 2}, {0, 0}},
                                     {{2, 3, 3, 70}, {3, 3}, {1, 1}, {1, 1}},
                                     {{0, 4, 4, 2}, {2, 2}, {2, 2}, {0, 0}}};

int64_t size_of(const Case& c, int axis) {
  const auto at = [&](const Dims& dims) { return dims[axis]; };
  return (c.x[axis + 1] + 2 * at(c.padding) - at(c.dilation) * (c.weight[axis + 2] - 1) - 1) /
             at(c.stride) +
         1;
}

int64_t flat(const Shape& shape, int64_t i, int64_t j, int64_t k, int64_t l) {
  return ((i * shape[1] + j) * shape[2] + k) * shape[3] + l;
}

long double value(const Elements& x, int64_t at) {
  return x.values[static_cast<std::size_t>(at)];
}

Elements zeros_of(const Spec& spec) {
  Elements out = {spec.dtype, spec.shape, {}};
  out.values.resize(static_cast<std::size_t>(element_count(spec.shape)));
  return out;
}

void wrap(Elements& out) {
  for (long double& element : out.values) element = wrapped(out.dtype, element);
}

}  // namespace

std::vector<Sample> convolution_samples(const Op& op) {
  std::vector<Sample> out;
  for (const DType dtype : list_of(op.accepts)) {
    for (const Case& c : convolutions) {
      const Shape y = {c.x[0], size_of(c, 0), size_of(c, 1), c.weight[0]};
      Sample sample = {.inputs = {},
                       .attrs = {c.stride, c.padding, c.dilation, c.groups},
                       .ulps = 4,
                       .absolute = 256};
      std::vector<Shape> operands = {c.x, c.weight};
      if (op.name == "conv2d_input") {
        operands = {y, c.weight};
        sample.attrs.emplace_back(Dims{c.x[1], c.x[2]});
      }
      if (op.name == "conv2d_weight") {
        operands = {c.x, y};
        sample.attrs.emplace_back(Dims{c.weight[2], c.weight[3]});
      }
      uint64_t seed = 20;
      for (const Shape& shape : operands)
        sample.inputs.push_back(random_values(dtype, shape, ++seed));
      out.push_back(sample);
    }
  }
  return out;
}

std::vector<Sample> pool_samples(const Op& op) {
  std::vector<Sample> out;
  for (const DType dtype : list_of(op.accepts)) {
    for (const PoolCase& c : pools) {
      const Windows windows = {.kernel = {c.kernel[0], c.kernel[1]},
                               .stride = {c.stride[0], c.stride[1]},
                               .padding = {c.padding[0], c.padding[1]}};
      Shape second = c.x;
      if (op.name == "window_max_input") {
        second[1] = windows.count(0, c.x[1]);
        second[2] = windows.count(1, c.x[2]);
      }
      out.push_back({.inputs = {random_values(dtype, c.x, 30), random_values(dtype, second, 31)},
                     .attrs = {c.kernel, c.stride, c.padding},
                     .ulps = 2,
                     .absolute = 16});
    }
  }
  return out;
}

Elements convolved(const Op& op, std::span<const Elements> inputs, const Attrs& attrs,
                   const Spec& result) {
  Elements out = zeros_of(result);
  const bool is_input = op.name == "conv2d_input", is_weight = op.name == "conv2d_weight";
  const Elements& x = is_input ? out : inputs[0];
  const Elements& weight = is_weight ? out : inputs[1];
  const Elements& y = is_input ? inputs[0] : is_weight ? inputs[1] : out;
  const auto pair = [&](std::size_t i) { return std::get<Dims>(attrs[i]); };
  const Dims stride = pair(0), padding = pair(1), dilation = pair(2);
  const int64_t out_group = weight.shape[0] / std::get<int64_t>(attrs[3]);
  for_each_index(y.shape, [&](const Dims& at) {
    const int64_t o = at[3];
    for_each_index(weight.shape, [&](const Dims& tap) {
      if (tap[0] != o) return;
      const int64_t h = at[1] * stride[0] - padding[0] + tap[2] * dilation[0];
      const int64_t w = at[2] * stride[1] - padding[1] + tap[3] * dilation[1];
      if (h < 0 || h >= x.shape[1] || w < 0 || w >= x.shape[2]) return;
      const int64_t c = o / out_group * weight.shape[1] + tap[1];
      const int64_t in_x = flat(x.shape, at[0], h, w, c);
      const int64_t in_y = flat(y.shape, at[0], at[1], at[2], o);
      const int64_t in_weight = flat(weight.shape, o, tap[1], tap[2], tap[3]);
      const int64_t to = is_input ? in_x : is_weight ? in_weight : in_y;
      const long double a = is_input ? value(y, in_y) : value(x, in_x);
      const long double b = is_weight ? value(y, in_y) : value(weight, in_weight);
      out.values[static_cast<std::size_t>(to)] += a * b;
    });
  });
  wrap(out);
  return out;
}

Elements pooled(const Op& op, std::span<const Elements> inputs, const Attrs& attrs,
                const Spec& result) {
  Elements out = zeros_of(result);
  const bool puts = op.name == "window_max_input";
  const Elements& x = inputs[0];
  const auto pair = [&](std::size_t i) { return std::get<Dims>(attrs[i]); };
  const Dims kernel = pair(0), stride = pair(1), padding = pair(2);
  const Shape& windows = puts ? inputs[1].shape : result.shape;
  for_each_index(windows, [&](const Dims& at) {
    int64_t largest = -1;
    for_each_index(kernel, [&](const Dims& tap) {
      const int64_t h = at[1] * stride[0] - padding[0] + tap[0];
      const int64_t w = at[2] * stride[1] - padding[1] + tap[1];
      if (h < 0 || h >= x.shape[1] || w < 0 || w >= x.shape[2]) return;
      const int64_t place = flat(x.shape, at[0], h, w, at[3]);
      const bool is_larger = largest < 0 || value(x, place) > value(x, largest);
      if (is_larger || std::isnan(value(x, place))) largest = place;
    });
    const int64_t window = flat(windows, at[0], at[1], at[2], at[3]);
    if (puts)
      out.values[static_cast<std::size_t>(largest)] += value(inputs[1], window);
    else
      out.values[static_cast<std::size_t>(window)] = value(inputs[1], largest);
  });
  wrap(out);
  return out;
}

}  // namespace nitinol::test
