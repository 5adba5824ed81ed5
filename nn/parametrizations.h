// Layers whose weight is computed at each call of what is learned in its place.
//
//     nn::SpectralNorm<nn::Conv2d> first = nn::spectral_norm(nn::conv2d(3, 64, 4));
//     nn::WeightNorm<nn::Linear> out = nn::weight_norm(nn::linear(64, 1));
//
// They take Linear, convolutions, transposed ones, and each struct that has a `weight` and computes
// the same with another one.
#pragma once

#include "core/tensor.h"
#include "core/variable.h"
#include "nn/module.h"

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// layer.with_weight(weight, x) is what layer(x) is with another `weight`.
template <class L>
concept HasWeight = requires(const L& layer, const Tensor& x) {
  { layer.weight } -> std::convertible_to<const Variable&>;
  { layer.with_weight(x, x) } -> std::same_as<Tensor>;
};

namespace parametrization {

/// The axis of the weight along which outputs are: L::output_axis, else 0.
template <HasWeight L>
[[nodiscard]] constexpr int64_t output_axis() {
  if constexpr (requires { L::output_axis; }) return L::output_axis;
  return 0;
}

/// The 2-norms of the slices of `weight` along `axis`; the other axes have size 1. Throws
/// Error(value) if there is no such axis.
[[nodiscard]] Tensor norms(const Tensor& weight, int64_t axis);
/// `direction`, its slices scaled to have these norms.
[[nodiscard]] Tensor with_norms(const Tensor& direction, const Tensor& norms, int64_t axis);

/// A weight as a matrix of slices along an axis, and its first singular vectors, as far as they are
/// known.
struct Spectrum {
  Variable left;   ///< [slices]
  Variable right;  ///< [elements of a slice]
};
/// Fifteen steps from random vectors.
[[nodiscard]] Spectrum spectrum(const Tensor& weight, int64_t axis, double eps);
/// The weight divided by its largest singular value, after so many steps towards its vectors.
[[nodiscard]] Tensor with_unit_spectrum(const Tensor& weight, const Spectrum& spectrum,
                                        int64_t axis, int64_t steps, double eps);
void check_spectral_norm(int64_t steps, double eps);

}  // namespace parametrization

/// A layer whose weight is magnitude * direction / |direction| (T. Salimans, D. Kingma,
/// arXiv:1602.07868). The direction, of any length, is the layer's own `weight`.
template <HasWeight L>
struct WeightNorm {
  L layer;
  Variable magnitude;  ///< of each slice of the weight along `axis`; size 1 along the other axes
  int64_t axis = 0;
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    return layer.with_weight(parametrization::with_norms(layer.weight, magnitude, axis), x);
  }
};
/// It computes what the layer did until it is trained. By default there is a magnitude for each
/// output; for each input of a transposed convolution, as in PyTorch. Throws Error(value) for an
/// axis that the weight does not have.
template <HasWeight L>
[[nodiscard]] WeightNorm<L> weight_norm(L layer, std::optional<int64_t> axis = {}) {
  const int64_t usual = layer.weight.rank() == 2 ? parametrization::output_axis<L>() : 0;
  Variable magnitude = parameter(parametrization::norms(layer.weight, axis.value_or(usual)));
  return {
      .layer = std::move(layer), .magnitude = std::move(magnitude), .axis = axis.value_or(usual)};
}

/// A layer whose weight, as a matrix of its outputs, is divided by its largest singular value (T.
/// Miyato et al., arXiv:1802.05957). While training each call brings the vectors of that value,
/// which are no parameters, `steps` steps of the power method nearer.
template <HasWeight L>
struct SpectralNorm {
  L layer;
  Variable left, right;  ///< [outputs], [elements of the weight for each of them]
  int64_t steps = 1;
  double eps = 1e-12;  ///< the least norm by which vectors are divided
  Training training = {true, "SpectralNorm.training"};
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    parametrization::check_spectral_norm(steps, eps);
    const Tensor weight = parametrization::with_unit_spectrum(
        layer.weight, {left, right}, parametrization::output_axis<L>(), training ? steps : 0, eps);
    return layer.with_weight(weight, x);
  }
};
struct SpectralNormOptions {
  int64_t steps = 1;
  double eps = 1e-12;
};
/// The vectors are drawn, and brought fifteen steps nearer. Throws Error(value) unless steps are
/// at least 1 and eps is positive.
template <HasWeight L>
[[nodiscard]] SpectralNorm<L> spectral_norm(L layer, const SpectralNormOptions& options = {}) {
  parametrization::check_spectral_norm(options.steps, options.eps);
  const parametrization::Spectrum found =
      parametrization::spectrum(layer.weight, parametrization::output_axis<L>(), options.eps);
  return {.layer = std::move(layer),
          .left = found.left,
          .right = found.right,
          .steps = options.steps,
          .eps = options.eps};
}

}  // namespace nitinol::nn

#pragma GCC visibility pop
