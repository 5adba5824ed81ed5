#include "autograd/check.h"

#include "core/error.h"
#include "eager/ops/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace nitinol::autograd {
namespace {

/// Numbers without pattern, the same in each run: errors in a gradient do not cancel.
Tensor weights_like(const Tensor& result, std::size_t k) {
  const Tensor positions = reshape(arange(result.size(), f64, result.device()), result.shape());
  return cos(positions * 1.7 + (static_cast<double>(k) + 0.3)) + 0.2;
}

double weighted_sum(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const NoGradients scope;
  const std::vector<Tensor> results = f(inputs);
  double total = 0;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!is_floating(results[k].dtype())) continue;
    total += sum(cast(results[k], f64) * weights_like(results[k], k)).item<double>({});
  }
  return total;
}

/// The gradient of the weighted sum as a function of the inputs.
std::vector<Tensor> weighted_gradient(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  Arguments arguments;
  std::vector<Tensor> marked;
  for (const Tensor& input : inputs) marked.push_back(arguments.add(input));
  const EnabledScope scope(true);
  const DifferentiationScope depth(1);
  const std::vector<Tensor> all = f(marked);
  std::vector<Tensor> results;
  std::vector<Tensor> seeds;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (!is_floating(all[k].dtype())) continue;
    results.push_back(all[k]);
    seeds.push_back(cast(weights_like(all[k], k), all[k].dtype()));
  }
  return arguments.gradients(results, seeds);
}

void check_input(const TensorFunction& f, const std::vector<Tensor>& inputs, std::size_t k,
                 const Tensor& gradient, const GradientCheck& options, int order) {
  const auto analytic = gradient.to_vector<double>({});
  auto elements = inputs[k].to_vector<double>({});
  std::vector<Tensor> shifted = inputs;
  const auto sum_at = [&](std::size_t i, double value) {
    const double kept = std::exchange(elements[i], value);
    shifted[k] = from_span<double>(elements, inputs[k].shape());
    elements[i] = kept;
    return weighted_sum(f, shifted);
  };
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const double h = options.step * std::max(1.0, std::abs(elements[i]));
    const double up = elements[i] + h;
    const double down = elements[i] - h;
    const double numeric = (sum_at(i, up) - sum_at(i, down)) / (up - down);
    const double allowed = options.tolerance * std::max(1.0, std::abs(numeric));
    if (std::abs(analytic[i] - numeric) <= allowed) continue;
    throw Error(
        ErrorKind::value,
        {.where = "check_gradients",
         .what = fmt::format("derivative of order {} by element {} of tensor {} ({})", order, i, k,
                             describe(inputs[k])),
         .expected =
             fmt::format("{:.9g} by central differences around {:.6g}", numeric, elements[i]),
         .got = fmt::format("{:.9g}", analytic[i]),
         .fix = "Check the gradient rule; where the function has a kink or jump near the argument, "
                "choose another argument."});
  }
}

void check_order(const TensorFunction& f, const std::vector<Tensor>& inputs,
                 const GradientCheck& options, int order) {
  const std::vector<Tensor> gradients = weighted_gradient(f, inputs);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (is_floating(inputs[k].dtype())) check_input(f, inputs, k, gradients[k], options, order);
  }
  if (order >= options.order) return;
  check_order([&f](const std::vector<Tensor>& x) { return weighted_gradient(f, x); }, inputs,
              options, order + 1);
}

}  // namespace

void check_gradients(const TensorFunction& f, const std::vector<Tensor>& inputs,
                     const GradientCheck& options) {
  std::vector<Tensor> wide;
  for (const Tensor& input : inputs) {
    wide.push_back(is_floating(input.dtype()) ? copy(cast(stop_gradient(input), f64)) : input);
  }
  check_order(f, wide, options, 1);
}

}  // namespace nitinol::autograd
